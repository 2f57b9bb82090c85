"""The entries that a switch says it holds, ours and others'."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from os_ken.ofproto import ofproto_v1_4 as ofp

from flowsieve.flow.entry import LABEL_TABLES, Action, Deliver, Flow, Output
from flowsieve.header.address import WIDTH, Prefix
from flowsieve.header.match import PREFIX_MASKS, Masked, Match, PrefixMatch, match_on
from flowsieve.header.tag import LABEL_GROUPS
from flowsieve.southbound.openflow.packed import (
    CLONE,
    CLONES,
    DESTINATIONS,
    NICIRA,
    SET_DESTINATION,
    SET_ETH_DST,
    SHAPES,
    SOURCES,
    goto,
    match_bytes,
)
from flowsieve.southbound.openflow.wire import (
    ADMISSION_TABLE,
    CONTENT_TABLE,
    DETOUR_COOKIE,
    DETOUR_COOKIES,
    ETH_TYPES,
    GUARD_COOKIE,
    HAND_OVER,
    LINK_GROUPS,
    NOT_OWNER,
    SERVICE_COOKIE,
    ProtocolError,
    owner_of,
)

_STATS = struct.Struct(
    "!HB9xH10xQQ8xHH"
)  # length, table, priority, cookie, packets; kind and length of the match
_MATCH_AT = _STATS.size - 4
_FAMILIES = {struct.pack("!H", number): family for family, number in ETH_TYPES.items()}
_ETH_TYPE = bytes.fromhex("80000a02")
_GOTO = goto(0)
# By class and number of a field: the family, and whether it is the source.
_ADDRESSES = {
    0x8000 << 7 | number: (family, numbers is SOURCES)
    for numbers in (SOURCES, DESTINATIONS)
    for family, number in numbers.items()
}
_ADDRESS_AT = 14  # in the match on a prefix of some length
_AROUND = {  # by the bytes of an address: from what stands around it to the length of the prefix
    WIDTH[family] // 8: {SHAPES[family][length].around: length for length in range(1, WIDTH[family] + 1)}
    for family in (6, 4)
}


class SwitchEntry(NamedTuple):
    """An entry as the switch put it into bytes: the match with its padding, then the instructions."""

    cookie: int
    priority: int
    match: bytes
    instructions: bytes
    table: int = CONTENT_TABLE
    packets: int = 0  # that have met it

    @property
    def ours(self) -> bool:
        """Whether an owner of ours made it, as its cookie tells."""
        return self.owner is not None

    @property
    def owner(self) -> int | None:
        """Whose entry it is, as its cookie tells; None if it is no owner's."""
        return owner_of(self.cookie)

    @property
    def service(self) -> bool:
        """Whether it is one of ours that is no content: it hands packets over, takes events in, leads around a link."""
        kind = self.cookie & NOT_OWNER
        return kind in (SERVICE_COOKIE, GUARD_COOKIE) or kind & DETOUR_COOKIES == DETOUR_COOKIE

    @property
    def admits(self) -> bool:
        """Whether it is one of those that say what is taken in."""
        return self.cookie & NOT_OWNER == GUARD_COOKIE and self.table == ADMISSION_TABLE

    @property
    def hands_over(self) -> bool:
        """Whether it is one of those that hand packets to the controller; they may be events that come too late."""
        ours = self.cookie & NOT_OWNER == SERVICE_COOKIE and self.table == ADMISSION_TABLE
        return ours and self.instructions.endswith(HAND_OVER)

    @property
    def labelled(self) -> bool:
        """Whether it is in a table for labels, and about labels."""
        return self.table in LABEL_TABLES and _in_groups(self.destination, LABEL_GROUPS)

    @property
    def destination(self) -> Prefix | None:
        """The prefix that holds every destination it matches, whatever else it asks for; None if there is none."""
        parts = _parts(self.match)
        return parts and _leading(parts[1])

    @property
    def flow(self) -> Flow | None:
        """The entry as a flow; None if it matches or does what flows cannot say."""
        applied, onward = _goes_on(self.instructions)
        match, actions = match_in(self.match), _actions(applied, onward is not None)
        if match is None or actions is None or (onward is not None and onward <= self.table):
            return None
        return Flow(match, self.priority, actions, self.owner, self.table, onward)


def entries_in(body: bytes) -> Iterator[SwitchEntry]:
    """The entries in one part of a switch's answer."""
    at = 0
    while at < len(body):
        if len(body) - at < _STATS.size + 4:
            raise ProtocolError(f"an entry is cut off at byte {at} of {len(body)}")
        length, table, priority, cookie, packets, kind, match_length = _STATS.unpack_from(body, at)
        match_at, end = at + _MATCH_AT, at + length
        instructions_at = match_at + (match_length + 7) // 8 * 8
        if kind != ofp.OFPMT_OXM or match_length < 4 or instructions_at > end or end > len(body):
            raise ProtocolError(f"an entry of length {length} at byte {at} of {len(body)} does not add up")
        match, instructions = body[match_at:instructions_at], body[instructions_at:end]
        yield SwitchEntry(cookie, priority, match, instructions, table, packets)
        at = end


def within(entries: Iterable[SwitchEntry], groups: Iterable[Prefix]) -> list[SwitchEntry]:
    """The content entries to be kept in order: with the cookie of an owner, or for destinations in our groups.

    Service entries are kept in order elsewhere; one that reaches into our groups would be no such entry, unless it
    says what is taken in, or hands over what comes too late.
    """
    wide = tuple(groups)
    return [
        entry
        for entry in entries
        if (entry.table in (ADMISSION_TABLE, CONTENT_TABLE) or entry.labelled)
        and not (entry.admits or entry.hands_over)
        and ((entry.ours and not entry.service) or _in_groups(entry.destination, wide))
    ]


def delete_strict(xid: int, entry: SwitchEntry) -> bytes:
    """The message that removes exactly this entry, whatever it matches."""
    return _mod(xid, ofp.OFPFC_DELETE_STRICT, 0, entry, entry.match)


def add(xid: int, entry: SwitchEntry) -> bytes:
    """The message that makes this entry, in the place of one with the same match and priority."""
    return _mod(xid, ofp.OFPFC_ADD, entry.cookie, entry, entry.match + entry.instructions)


def _mod(xid: int, command: int, cookie: int, entry: SwitchEntry, body: bytes) -> bytes:
    head = struct.pack(
        "!BBHIQQBBHHHIIIHH",
        ofp.OFP_VERSION, ofp.OFPT_FLOW_MOD, 48 + len(body), xid, cookie, 0, entry.table, command, 0, 0,
        entry.priority, ofp.OFP_NO_BUFFER, ofp.OFPP_ANY, ofp.OFPG_ANY, 0, 0,
    )  # fmt: skip
    return head + body


def _in_groups(prefix: Prefix | None, groups: tuple[Prefix, ...]) -> bool:
    return prefix is not None and any(group.covers(prefix) for group in groups)


@lru_cache(maxsize=1 << 16)
def match_in(match: bytes) -> Match | None:
    """The match whose `match_bytes` these are, if there is one.

    Tables are large, many switches have the same matches, and they are read again and again: so prefixes take a short
    way, and what was read last is remembered.
    """
    for width, lengths in _AROUND.items():
        length = lengths.get(match[:_ADDRESS_AT] + match[_ADDRESS_AT + width :])
        if length is not None:
            number, shift = int.from_bytes(match[_ADDRESS_AT : _ADDRESS_AT + width]), 8 * width - length
            bits = number >> shift
            whole = bits << shift == number
            return PrefixMatch(Prefix(6 if width == 16 else 4, bits, length)) if whole else None
    parts = _parts(match)
    found = match_on(*parts) if parts is not None else None
    return found if found is not None and match == match_bytes(found) else None


def fields_in(match: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The fields that a match asks for, each as its head and its value."""
    (length,) = struct.unpack_from("!H", match, 2)
    at = 4
    while at + 4 <= length:
        end = at + 4 + match[at + 3]
        yield match[at : at + 4], match[at + 4 : end]
        at = end


def _parts(match: bytes) -> tuple[Masked | None, Masked] | None:
    """What a match asks of the source and the destination, whatever else it asks for; None if it names no family."""
    family = None
    found: dict[bool, Masked] = {}  # by whether it is the source
    for field, value in fields_in(match):
        if field == _ETH_TYPE:
            family = _FAMILIES.get(value)
        elif (number := int.from_bytes(field[:3]) >> 1) in _ADDRESSES:
            of, source = _ADDRESSES[number]
            if (part := _masked(of, value, bool(field[2] & 1))) is not None:
                found[source], family = part, family or of
    if family is None or any(part.family != family for part in found.values()):
        return None
    return found.get(True), found.get(False, Masked(family, 0, 0))


def _masked(family: int, value: bytes, masked: bool) -> Masked | None:
    size = WIDTH[family] // 8
    if len(value) != (2 * size if masked else size):
        return None
    mask = int.from_bytes(value[size:]) if masked else PREFIX_MASKS[family][-1]
    return Masked(family, int.from_bytes(value[:size]) & mask, mask)


def _leading(part: Masked) -> Prefix:
    """The leading bits that are asked for; bits asked for after a gap are left out."""
    width = WIDTH[part.family]
    free = (PREFIX_MASKS[part.family][-1] ^ part.mask).bit_length()
    return Prefix(part.family, part.value >> free, width - free)


def _goes_on(instructions: bytes) -> tuple[bytes, int | None]:
    """What instructions do at once, and in which table they let a packet go on; None if in none."""
    if len(instructions) >= len(_GOTO) and instructions[-8:-4] == _GOTO[:4]:
        return instructions[:-8], instructions[-4]
    return instructions, None


@lru_cache(maxsize=1 << 16)
def _actions(instructions: bytes, goes_on: bool) -> tuple[Action, ...] | None:
    """The copies that the instructions send, or None if they do more; decrementing the hop limit is expected.

    What goes on in a later table must do so as it came: then deliveries are made in clones, and otherwise in none.
    """
    if not instructions:
        return ()
    if len(instructions) < 8:
        return None
    kind, length = struct.unpack_from("!HH", instructions)
    if kind != ofp.OFPIT_APPLY_ACTIONS or length != len(instructions):
        return None
    actions: list[Action] = []
    at = 8
    while at + 8 <= length:
        (size,) = struct.unpack_from("!H", instructions, at + 2)
        if size < 8 or at + size > length:
            return None
        whole = _cloned(instructions, at, at + size) if goes_on else _deliver(instructions, at)
        if whole is not None:
            delivery, at = whole
            actions.append(delivery)
            continue
        kind, _, port = struct.unpack_from("!HHI", instructions, at)
        if kind == ofp.OFPAT_OUTPUT and not _delivered(actions):
            actions.append(Output(port))
        elif kind == ofp.OFPAT_GROUP and port in LINK_GROUPS and not _delivered(actions):
            actions.append(Output(port - LINK_GROUPS.start))
        elif kind != ofp.OFPAT_DEC_NW_TTL or actions:
            return None
        at += size
    return tuple(actions) if at == length else None


def _delivered(actions: list[Action]) -> bool:
    """Whether the last copy was readdressed; what is sent after it would be as well."""
    return bool(actions) and isinstance(actions[-1], Deliver)


def _cloned(instructions: bytes, at: int, end: int) -> tuple[Deliver, int] | None:
    """The delivery that an action makes in a clone, and where it ends; None if it makes none, or does more."""
    head = ofp.OFPAT_EXPERIMENTER, end - at, NICIRA, CLONES
    if end - at < CLONE.size or CLONE.unpack_from(instructions, at) != head:
        return None
    found = _deliver(instructions[:end], at + CLONE.size)
    return found if found is not None and found[1] == end else None


def _deliver(instructions: bytes, at: int) -> tuple[Deliver, int] | None:
    """The delivery that three actions from here on make, and where they end; None if they make none."""
    if not instructions.startswith(SET_ETH_DST, at):
        return None
    mac_at, address_at = at + 8, at + 16
    heads = SET_DESTINATION.items()
    family = next((each for each, head in heads if instructions.startswith(head, address_at)), None)
    if family is None:
        return None
    width, output_at = WIDTH[family], address_at + int.from_bytes(SET_DESTINATION[family][2:4])
    if len(instructions) < output_at + 16:
        return None
    kind, size, port = struct.unpack_from("!HHI", instructions, output_at)
    if (kind, size) != (ofp.OFPAT_OUTPUT, 16):
        return None
    mac = int.from_bytes(instructions[mac_at : mac_at + 6])
    number = int.from_bytes(instructions[address_at + 8 : address_at + 8 + width // 8])
    return Deliver(port, mac, Prefix(family, number, width)), output_at + 16
