"""Flow-mods packed straight into bytes, many times as fast as by os-ken; `plain_flow_mods` has the plain twin.

A packet that is readdressed for a host and goes on in a later table is readdressed in a clone (an action of Open
vSwitch's own), so that it goes on as it came. In an entry that ends there, plain actions do.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Sequence
from functools import lru_cache

from os_ken.ofproto import ofproto_v1_4 as ofp

from flowsieve.flow.diff import FlowOp, OpKind, Ports
from flowsieve.flow.entry import Action, Deliver, Flow, Output
from flowsieve.flow.entry_steps import EntrySteps, PortActions
from flowsieve.header.address import WIDTH
from flowsieve.header.encoding import Encoding
from flowsieve.header.match import PREFIX_MASKS, Match, PrefixMatch
from flowsieve.index.dz import Dz
from flowsieve.southbound.openflow.wire import (
    BUNDLE_FLAGS,
    COMMANDS,
    CONTENT_TABLE,
    ETH_TYPES,
    LINK_GROUPS,
    VERSION,
    cookie_of,
)

# Header; cookie, its mask and the table as one; command; timeouts; priority; all up to the match as one.
_FLOW_MOD = struct.Struct("!2sHI17sB4sH16s")
_NO_TIMEOUTS = bytes(4)
_NOTHING_ELSE = struct.pack("!IIIHH", ofp.OFP_NO_BUFFER, ofp.OFPP_ANY, ofp.OFPG_ANY, 0, 0)
_FLOW_MOD_HEAD = bytes([VERSION, ofp.OFPT_FLOW_MOD])
# Header; bundle; padding and flags as one.
_BUNDLE_ADD = struct.Struct("!2sHII4s")
_BUNDLE_ADD_HEAD = bytes([VERSION, ofp.OFPT_BUNDLE_ADD_MESSAGE])
_FLAGS = struct.pack("!xxH", BUNDLE_FLAGS)
# Both, up to the command: what stands behind it in all messages about one dz is the same.
_BUNDLED = struct.Struct("!2sHII4s2sHI17sB")
_ALONE = struct.Struct("!2sHI17sB")
_BEFORE_TAIL = _ALONE.size

SOURCES = {4: ofp.OFPXMT_OFB_IPV4_SRC, 6: ofp.OFPXMT_OFB_IPV6_SRC}
DESTINATIONS = {4: ofp.OFPXMT_OFB_IPV4_DST, 6: ofp.OFPXMT_OFB_IPV6_DST}
_ETH_TYPE = ofp.OFPXMC_OPENFLOW_BASIC << 16 | ofp.OFPXMT_OFB_ETH_TYPE << 9 | 2
SET_ETH_DST = struct.pack(
    "!HHI", ofp.OFPAT_SET_FIELD, 16, ofp.OFPXMC_OPENFLOW_BASIC << 16 | ofp.OFPXMT_OFB_ETH_DST << 9 | 6
)
SET_DESTINATION = {
    family: struct.pack(
        "!HHI",
        ofp.OFPAT_SET_FIELD,
        -(-(8 + WIDTH[family] // 8) // 8) * 8,
        ofp.OFPXMC_OPENFLOW_BASIC << 16 | field << 9 | WIDTH[family] // 8,
    )
    for family, field in DESTINATIONS.items()
}
# The head of a clone, before the actions that are done to it (NXAST_CLONE): kind, length, whose action, which.
CLONE = struct.Struct("!HHIH6x")
NICIRA, CLONES = 0x2320, 42
_MOST_REMEMBERED = 1 << 16
NOTHING = None, b""


def _field(number: int, family: int, mask: int) -> tuple[bytes, bytes]:
    """What stands before and behind the address in a field of a match; nothing where no bit of it is asked for."""
    if not mask:
        return b"", b""
    width = WIDTH[family] // 8
    behind = b"" if mask == PREFIX_MASKS[family][-1] else mask.to_bytes(width)
    head = ofp.OFPXMC_OPENFLOW_BASIC << 16 | number << 9 | bool(behind) << 8 | width + len(behind)
    return struct.pack("!I", head), behind


class MatchShape:
    """What the matches on all prefixes of one family and length have in common: all but the address.

    A match on the family alone has no address; one on a whole address has no mask.
    """

    __slots__ = ("before", "behind", "shift", "size", "width")

    def __init__(self, family: int, length: int) -> None:
        self.shift = WIDTH[family] - length
        self.width = WIDTH[family] // 8 if length else 0  # bytes of the address
        head, mask = _field(DESTINATIONS[family], family, PREFIX_MASKS[family][length])
        fields = struct.pack("!IH", _ETH_TYPE, ETH_TYPES[family]) + head
        unpadded = 4 + len(fields) + self.width + len(mask)
        self.before = struct.pack("!HH", ofp.OFPMT_OXM, unpadded) + fields
        self.behind = mask + bytes(-unpadded % 8)
        self.size = len(self.before) + self.width + len(self.behind)

    @property
    def around(self) -> bytes:
        """All but the address."""
        return self.before + self.behind


SHAPES = {
    family: tuple(MatchShape(family, length) for length in range(width + 1))
    for family, width in WIDTH.items()
}


def match_bytes(match: Match) -> bytes:
    """A match with its padding."""
    if isinstance(match, PrefixMatch):
        prefix = match.destination
        shape = SHAPES[prefix.family][prefix.length]
        return shape.before + (prefix.bits << shape.shift).to_bytes(shape.width) + shape.behind
    family, fields = match.family, [struct.pack("!IH", _ETH_TYPE, ETH_TYPES[match.family])]
    for number, part in zip((SOURCES[family], DESTINATIONS[family]), match.parts, strict=True):
        if part is not None and part.mask:
            head, mask = _field(number, family, part.mask)
            fields += head, part.value.to_bytes(WIDTH[family] // 8), mask
    body = b"".join(fields)
    return struct.pack("!HH", ofp.OFPMT_OXM, 4 + len(body)) + body + bytes(-(4 + len(body)) % 8)


def _mark(owner: int | None, table: int) -> bytes:
    """The cookie of an owner's entry, its mask and the table."""
    return struct.pack("!QQB", cookie_of(owner), 0, table)


class _Tails(dict[Dz, bytes]):
    """What stands behind the command in all messages about the entry for a dz, up to what the entry does.

    What is wanted somewhere stands in the tables all along the way there, so few are made often.
    """

    def __init__(self, encoding: Encoding) -> None:
        super().__init__()
        self._encoding = encoding

    def __missing__(self, dz: Dz) -> bytes:
        if len(self) >= _MOST_REMEMBERED:
            self.clear()
        match, priority = self._encoding.match_of(dz), self._encoding.priority_of(dz)
        tail = self[dz] = _NO_TIMEOUTS + priority.to_bytes(2) + _NOTHING_ELSE + match_bytes(match)
        return tail


@lru_cache(maxsize=8)
def _tails_of(encoding: Encoding) -> _Tails:
    return _Tails(encoding)


class Packer:
    """Packs operations; with `decrement`, entries that send packets on take one off their hop limit first.

    A packet that goes on in later tables comes to that of the content first, so those decrement nothing. What goes to
    one of the ports that are `grouped` is sent to that port's group.
    """

    def __init__(self, decrement: bool = True, grouped: Collection[int] = ()) -> None:
        self.decrement = decrement
        self.grouped = frozenset(grouped)
        # By the actions, plain outputs as their ports alone: numbers are found faster than values.
        self._instructions: dict[tuple[tuple[int | Deliver, ...], int, int | None], bytes] = {}
        # Of the entries that send to some ports, and by what actions they do; it is the same from batch to batch.
        self._by_ports: dict[Ports, bytes] = {}
        self._acting: PortActions | None = None

    def pack(self, first_xid: int, ops: Sequence[FlowOp], bundle: int | None = None) -> bytes:
        """A message per operation, with xids that count up; inside a bundle if one is named."""
        if isinstance(ops, EntrySteps):
            return self._pack_steps(first_xid, ops, bundle)
        parts: list[bytes] = []
        put, known = parts.append, self._instructions.get
        # Actions of this batch, and whence and where they let go on; many entries have the same ones.
        seen: dict[tuple[int, int, int | None], tuple[object, bytes]] = {}
        flow_mod, bundle_add = _FLOW_MOD.pack, _BUNDLE_ADD.pack
        install, modify, remove = (COMMANDS[kind] for kind in (OpKind.INSTALL, OpKind.MODIFY, OpKind.REMOVE))
        owner: int | None = 0
        table = CONTENT_TABLE
        mark = _mark(owner, table)
        for xid, op in enumerate(ops, first_xid):
            flow, kind = op.flow, op.kind
            if flow.owner != owner or flow.table != table:
                owner, table = flow.owner, flow.table
                mark = _mark(owner, table)
            match = flow.match
            # As `match_bytes` does it, without joining what is joined below.
            if isinstance(match, PrefixMatch):
                prefix = match.destination
                shape = SHAPES[prefix.family][prefix.length]
                before, behind, match_size = shape.before, shape.behind, shape.size
                address = (prefix.bits << shape.shift).to_bytes(shape.width)
            else:
                before, address, behind = match_bytes(match), b"", b""
                match_size = len(before)
            if kind is OpKind.REMOVE:
                command, instructions = remove, b""
            else:
                command = install if kind is OpKind.INSTALL else modify
                place = id(flow.actions), table, flow.onward
                same, instructions = seen.get(place, NOTHING)
                if same is not flow.actions:
                    whole = _keyed(flow.actions), table, flow.onward
                    instructions = known(whole) or self._pack_instructions(*whole)
                    seen[place] = flow.actions, instructions
            size = 48 + match_size + len(instructions)
            if bundle is not None:
                put(bundle_add(_BUNDLE_ADD_HEAD, size + 16, xid, bundle, _FLAGS))
            head = flow_mod(
                _FLOW_MOD_HEAD, size, xid, mark, command, _NO_TIMEOUTS, flow.priority, _NOTHING_ELSE
            )
            parts += (head, before, address, behind, instructions)
        return b"".join(parts)

    def _pack_steps(self, first_xid: int, steps: EntrySteps, bundle: int | None) -> bytes:
        """The same of changes, without making a value of any of them."""
        if self._acting is not steps.actions:
            self._acting, self._by_ports = steps.actions, {}
        tails, by_ports, parts = _tails_of(steps.encoding), self._by_ports, list[bytes]()
        mark, alone, bundled = _mark(steps.owner, CONTENT_TABLE), _ALONE.pack, _BUNDLED.pack
        install, modify, remove = (COMMANDS[kind] for kind in (OpKind.INSTALL, OpKind.MODIFY, OpKind.REMOVE))
        for xid, (dz, old, new) in enumerate(steps.changes, first_xid):
            tail = tails[dz]
            if new is None:
                command, instructions = remove, b""
            else:
                command = modify if old is not None else install
                known = by_ports.get(new)
                instructions = known if known is not None else self._instructions_to(new, steps.actions)
            size = _BEFORE_TAIL + len(tail) + len(instructions)
            if bundle is None:
                head = alone(_FLOW_MOD_HEAD, size, xid, mark, command)
            else:
                head = bundled(
                    _BUNDLE_ADD_HEAD, size + 16, xid, bundle, _FLAGS, _FLOW_MOD_HEAD, size, xid, mark, command
                )
            parts += (head, tail, instructions)
        return b"".join(parts)

    def _instructions_to(self, ports: Ports, actions: PortActions) -> bytes:
        whole = _keyed(actions[ports]), CONTENT_TABLE, None
        if len(self._by_ports) >= _MOST_REMEMBERED:
            self._by_ports.clear()
        packed = self._by_ports[ports] = self._instructions.get(whole) or self._pack_instructions(*whole)
        return packed

    def instructions(self, flow: Flow) -> bytes:
        """What an entry does."""
        whole = _keyed(flow.actions), flow.table, flow.onward
        return self._instructions.get(whole) or self._pack_instructions(*whole)

    def _pack_instructions(self, actions: tuple[int | Deliver, ...], table: int, onward: int | None) -> bytes:
        if not actions and onward is None:
            return b""  # an entry without instructions drops
        if len(self._instructions) >= _MOST_REMEMBERED:
            self._instructions.clear()
        counted = self.decrement and table == CONTENT_TABLE
        parts = [struct.pack("!HH4x", ofp.OFPAT_DEC_NW_TTL, 8) if counted else b""]
        for action in actions:
            if isinstance(action, Deliver):
                copy = _readdress(action) + _output(action.port)
                parts.append(copy if onward is None else _cloned(copy))
            elif action in self.grouped:
                parts.append(struct.pack("!HHI", ofp.OFPAT_GROUP, 8, LINK_GROUPS[action]))
            else:
                parts.append(_output(action))
        body = b"".join(parts)
        packed = struct.pack("!HH4x", ofp.OFPIT_APPLY_ACTIONS, 8 + len(body)) + body if body else b""
        if onward is not None:
            packed += goto(onward)
        self._instructions[actions, table, onward] = packed
        return packed


def _keyed(actions: Sequence[Action]) -> tuple[int | Deliver, ...]:
    return tuple([action.port if isinstance(action, Output) else action for action in actions])


def goto(table: int) -> bytes:
    """The instruction that lets a packet go on in a table."""
    return struct.pack("!HHB3x", ofp.OFPIT_GOTO_TABLE, 8, table)


def _output(port: int) -> bytes:
    return struct.pack("!HHIH6x", ofp.OFPAT_OUTPUT, 16, port, ofp.OFPCML_MAX)


def _cloned(actions: bytes) -> bytes:
    """The action that does others to a clone."""
    return CLONE.pack(ofp.OFPAT_EXPERIMENTER, CLONE.size + len(actions), NICIRA, CLONES) + actions


def _readdress(action: Deliver) -> bytes:
    """The two actions that give a packet a new destination."""
    address = action.address
    return b"".join(
        [
            SET_ETH_DST + action.mac.to_bytes(6) + bytes(2),
            SET_DESTINATION[address.family] + address.first.to_bytes(address.width // 8),
            bytes(-(8 + address.width // 8) % 8),
        ]
    )
