"""Detours in OpenFlow: a fast-failover group for each link, and entries that pass marked packets on.

| table | what comes in | what becomes of it |
|---|---|---|
| 0 | at a port, with a mark | one off its hop limit, out of another port |
| 0 | at a port, with a mark that ends here | the content table, without mark, as if it had come in by the link |
| 2 | with a mark that it was just given, by the link that is dead | dropped: it would go back to where it came from |
| 2 | … by the port that the detour begins with | out of that port again |
| 2 | … by any other | out of that port |

Content entries, those in tables for labels too, send to the group of a link instead of its port. The group sends out of
the port, or, while the port is dead, gives packets their mark and has them looked up in table 2.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from os_ken.ofproto import ofproto_v1_4 as ofp
from os_ken.ofproto import ofproto_v1_4_parser as parser

from flowsieve.flow.detours import Arrival, Protection, Way
from flowsieve.header.frame import ETH_TYPES
from flowsieve.southbound.openflow.entries import SwitchEntry, add, delete_strict, fields_in
from flowsieve.southbound.openflow.packed import NICIRA, Packer
from flowsieve.southbound.openflow.punts import match_fields
from flowsieve.southbound.openflow.wire import (
    ADMISSION_TABLE,
    CONTENT_TABLE,
    DETOUR_COOKIE,
    DETOUR_COOKIES,
    DETOUR_TABLE,
    FIELDS,
    LAST_LINK_PORT,
    LINK_GROUPS,
    PROTOCOL,
    ProtocolError,
    to_bytes,
)

RELAY_PRIORITY = 1950  # before what says which events are taken in
MULTICAST = {6: ("ff00::", "ff00::"), 4: ("224.0.0.0", "240.0.0.0")}
_TAGGED = ofp.OFPVID_PRESENT
_VLAN = 0x8100
_NX_RESUBMIT_IN_PORT = 0xFFF8
_IN_PORT, _VLAN_VID = bytes.fromhex("80000004"), bytes.fromhex("80000c02")
_DESC = struct.Struct("!HBxI")  # length, kind, number
_BUCKET = struct.Struct("!HHII4x")  # length, weight, watched port, watched group
_HEAD = struct.Struct("!HH")
# Sets the port that a packet came in on, as Open vSwitch's own action does (NXAST_REG_LOAD of NXM_OF_IN_PORT).
_LOAD_IN_PORT = struct.Struct("!HHIHHIQ")
_REG_LOAD, _NXM_IN_PORT = 7, 0x00000002
_UNLIKE_ANY = Way(0, 0)

Message = Callable[[int], bytes]


class NoGroup(Exception):
    """A port whose number no group can have."""


class LinkGroup(NamedTuple):
    """The group of a link's port, and the way that it takes when the port is dead."""

    port: int
    way: Way | None


@dataclass(frozen=True, slots=True)
class Held:
    """What of detours a switch holds."""

    groups: tuple[LinkGroup, ...]
    entries: tuple[SwitchEntry, ...]

    @property
    def protection(self) -> Protection:
        """What it comes to; entries that are of no use for it are passed over."""
        relays: dict[Arrival, int] = {}
        landings: dict[Arrival, int] = {}
        for entry in self.entries:
            arrival = _arrival(entry)
            if entry.table != ADMISSION_TABLE or arrival is None:
                continue
            for port, made in ((_out(entry), relays), (_landed(entry), landings)):
                if port is not None:
                    made[arrival] = port
        ways = {group.port: group.way for group in self.groups if group.way is not None}
        # A way counts where the entries are there that it needs.
        there = {_key(entry): _done(entry) for entry in self.entries}
        whole = {
            port: way
            for port, way in ways.items()
            if all(there.get(_key(each)) == _done(each) for each in _way_entries(port, way))
        }
        return Protection(frozenset(group.port for group in self.groups), whole, relays, landings)


# What makes a switch protect its links as it should.


@dataclass(frozen=True, slots=True)
class DetourChanges:
    """What makes a switch do about dead links what it should, in this order and all at once.

    The content entries that are `resent` send to the groups that there are from then on, or to ports where there is no
    group any more.
    """

    new_groups: tuple[LinkGroup, ...] = ()
    changed_groups: tuple[LinkGroup, ...] = ()
    install: tuple[SwitchEntry, ...] = ()
    resent: tuple[SwitchEntry, ...] = ()
    remove: tuple[SwitchEntry, ...] = ()
    old_groups: tuple[LinkGroup, ...] = ()

    @property
    def messages(self) -> list[Message]:
        return [
            *(partial(group_mod, group=group, command=ofp.OFPGC_ADD) for group in self.new_groups),
            *(partial(group_mod, group=group, command=ofp.OFPGC_MODIFY) for group in self.changed_groups),
            *(partial(add, entry=entry) for entry in (*self.install, *self.resent)),
            *(partial(delete_strict, entry=entry) for entry in self.remove),
            *(partial(group_delete, port=group.port) for group in self.old_groups),
        ]


def detour_changes(
    held: Held, wanted: Protection, content: Iterable[SwitchEntry], packer: Packer
) -> DetourChanges:
    """The least that has to be done; what is there already stays."""
    for port in wanted.links:
        if port > LAST_LINK_PORT:
            raise NoGroup(f"port {port} gets no group; right is a port up to {LAST_LINK_PORT}")
    there = {group.port: group for group in held.groups}
    groups = [LinkGroup(port, wanted.ways.get(port)) for port in sorted(wanted.links)]
    entries = {_key(entry): entry for entry in entries_of(wanted)}
    known = {_key(entry): _done(entry) for entry in held.entries}
    return DetourChanges(
        new_groups=tuple(group for group in groups if group.port not in there),
        changed_groups=tuple(group for group in groups if there.get(group.port, group) != group),
        install=tuple(entry for key, entry in entries.items() if known.get(key) != _done(entry)),
        resent=tuple(each for entry in content if (each := _regrouped(entry, packer)) is not None),
        remove=tuple(entry for entry in held.entries if _key(entry) not in entries),
        old_groups=tuple(group for port, group in there.items() if port not in wanted.links),
    )


def closing(port: int, grouped: bool) -> list[Message]:
    """The messages after which nothing gets around a port: no way begins there, and none ends there."""
    strip = [partial(group_mod, group=LinkGroup(port, None), command=ofp.OFPGC_MODIFY)] if grouped else []
    return [*strip, partial(_landings_delete, port=port)] if port <= LAST_LINK_PORT else []


def entries_of(protection: Protection) -> Iterator[SwitchEntry]:
    """The entries of a switch for detours, beside its groups."""
    family = protection.family
    for arrival, out in protection.relays.items():
        actions = [parser.OFPActionDecNwTtl(), parser.OFPActionOutput(out)]
        yield _entry(ADMISSION_TABLE, RELAY_PRIORITY, _marked(arrival, family), _apply(actions))
    for arrival, port in protection.landings.items():
        instructions = _apply([parser.OFPActionPopVlan()], _load_in_port(port)) + _GO_ON
        yield _entry(ADMISSION_TABLE, RELAY_PRIORITY, _marked(arrival, family), instructions, port)
    for port, way in protection.ways.items():
        yield from _way_entries(port, way)


def _way_entries(port: int, way: Way) -> Iterator[SwitchEntry]:
    mark = way.mark | _TAGGED
    back = _apply([parser.OFPActionOutput(ofp.OFPP_IN_PORT)])
    yield _entry(DETOUR_TABLE, 2, {"in_port": port, "vlan_vid": mark}, b"")
    yield _entry(DETOUR_TABLE, 2, {"in_port": way.via, "vlan_vid": mark}, back)
    yield _entry(DETOUR_TABLE, 1, {"vlan_vid": mark}, _apply([parser.OFPActionOutput(way.via)]))


def _regrouped(entry: SwitchEntry, packer: Packer) -> SwitchEntry | None:
    """A content entry that sends as it should; None if it does, or does what no flow says."""
    sends_events = entry.table == CONTENT_TABLE or entry.labelled
    if not sends_events or not entry.ours or entry.service or (flow := entry.flow) is None:
        return None
    right = entry._replace(instructions=packer.instructions(flow))
    return right if _done(right) != _done(entry) else None


# Messages.


def group_mod(xid: int, *, group: LinkGroup, command: int) -> bytes:
    """Have the group of a link made, or changed."""
    port, way = group
    buckets = [_bucket(port, [parser.OFPActionOutput(port)])]
    if way is not None:
        given = [
            parser.OFPActionPushVlan(_VLAN),
            parser.OFPActionSetField(vlan_vid=way.mark | _TAGGED),
            parser.NXActionResubmitTable(_NX_RESUBMIT_IN_PORT, DETOUR_TABLE),
        ]
        buckets.append(_bucket(way.via, given))
    message = parser.OFPGroupMod(PROTOCOL, command, ofp.OFPGT_FF, LINK_GROUPS[port], buckets)
    return to_bytes(message, xid)


def group_delete(xid: int, *, port: int) -> bytes:
    """Have the group of a link removed; entries that still send to it would go with it."""
    message = parser.OFPGroupMod(PROTOCOL, ofp.OFPGC_DELETE, ofp.OFPGT_FF, LINK_GROUPS[port], [])
    return to_bytes(message, xid)


def groups_request(xid: int) -> bytes:
    """Ask for all groups."""
    return to_bytes(parser.OFPGroupDescStatsRequest(PROTOCOL, 0), xid)


def detour_entries_request(xid: int) -> bytes:
    """Ask for the entries of detours, in whatever table."""
    message = parser.OFPFlowStatsRequest(
        PROTOCOL, table_id=ofp.OFPTT_ALL, cookie=DETOUR_COOKIE, cookie_mask=DETOUR_COOKIES
    )
    return to_bytes(message, xid)


def groups_in(body: bytes) -> Iterator[LinkGroup]:
    """The groups of links in one part of a switch's answer; others are passed over."""
    at = 0
    while at < len(body):
        if len(body) - at < _DESC.size:
            raise ProtocolError(f"a group is cut off at byte {at} of {len(body)}")
        length, kind, number = _DESC.unpack_from(body, at)
        if length < _DESC.size or at + length > len(body):
            raise ProtocolError(f"a group of length {length} at byte {at} of {len(body)} does not add up")
        if number in LINK_GROUPS:
            port = number - LINK_GROUPS.start
            buckets = list(_buckets(body[at + _DESC.size : at + length]))
            yield LinkGroup(port, _way(port, buckets) if kind == ofp.OFPGT_FF else _UNLIKE_ANY)
        at += length


def _landings_delete(xid: int, *, port: int) -> bytes:
    message = parser.OFPFlowMod(
        PROTOCOL,
        cookie=_cookie(port),
        cookie_mask=0xFFFF_FFFF_FFFF_FFFF,
        table_id=ADMISSION_TABLE,
        command=ofp.OFPFC_DELETE,
        out_port=ofp.OFPP_ANY,
        out_group=ofp.OFPG_ANY,
        match=parser.OFPMatch(),
    )
    return to_bytes(message, xid)


# Bytes.


def _bucket(watched: int, actions: list[object]) -> object:
    return parser.OFPBucket(watch_port=watched, watch_group=ofp.OFPG_ANY, actions=actions)


def _buckets(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The watched port and the actions of each bucket."""
    at = 0
    while at + _BUCKET.size <= len(data):
        length, _, port, _ = _BUCKET.unpack_from(data, at)
        if length < _BUCKET.size or at + length > len(data):
            raise ProtocolError(f"a bucket of length {length} at byte {at} of {len(data)} does not add up")
        yield port, data[at + _BUCKET.size : at + length]
        at += length


def _way(port: int, buckets: list[tuple[int, bytes]]) -> Way | None:
    """The way that a group takes, if it is one of ours."""
    firsts = list(_actions(buckets[0][1])) if buckets else []
    if [(port, firsts)] != [(watched, firsts) for watched, _ in buckets[:1]] or firsts != [_output(port)]:
        return _UNLIKE_ANY
    if len(buckets) == 1:
        return None
    via, given = buckets[1][0], list(_actions(buckets[1][1]))
    for kind, body in given:
        if kind == ofp.OFPAT_SET_FIELD and body[:4] == _VLAN_VID:
            return Way(int.from_bytes(body[4:6]) & ~_TAGGED, via)
    return _UNLIKE_ANY


def _entry(
    table: int, priority: int, match: Mapping[str, object], instructions: bytes, landing: int = 0
) -> SwitchEntry:
    packed = bytearray()
    parser.OFPMatch(**match).serialize(packed, 0)
    return SwitchEntry(_cookie(landing), priority, bytes(packed), instructions, table)


def _cookie(landing: int) -> int:
    """A landing's cookie has the port that packets are taken to come in at: so it is found when that is closed."""
    return DETOUR_COOKIE | landing << 4


def _marked(arrival: Arrival, family: int) -> dict[str, object]:
    return {
        "in_port": arrival.port,
        "vlan_vid": arrival.mark | _TAGGED,
        "eth_type": ETH_TYPES[family],
        FIELDS[family]: MULTICAST[family],
    }


def _apply(actions: list[object], more: bytes = b"") -> bytes:
    packed = bytearray()
    parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, actions).serialize(packed, 0)
    body = bytes(packed[8:]) + more
    return struct.pack("!HH4x", ofp.OFPIT_APPLY_ACTIONS, 8 + len(body)) + body


def _load_in_port(port: int) -> bytes:
    bits = 16 - 1  # from the first on, all but one
    return _LOAD_IN_PORT.pack(
        ofp.OFPAT_EXPERIMENTER, _LOAD_IN_PORT.size, NICIRA, _REG_LOAD, bits, _NXM_IN_PORT, port
    )


_GO_ON = struct.pack("!HHB3x", ofp.OFPIT_GOTO_TABLE, 8, CONTENT_TABLE)


def _key(entry: SwitchEntry) -> tuple[int, int, frozenset[tuple[bytes, bytes]]]:
    return entry.table, entry.priority, match_fields(entry.match)


def _done(entry: SwitchEntry) -> list[tuple[int, list[tuple[int, bytes]] | bytes]]:
    """What an entry does, in a form that does not depend on how a switch writes it."""
    found: list[tuple[int, list[tuple[int, bytes]] | bytes]] = []
    for kind, body in _actions(entry.instructions):
        found.append((kind, list(_actions(body[4:])) if kind == ofp.OFPIT_APPLY_ACTIONS else body))
    return found


def _actions(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The kind and body of each instruction or action; of an output just the port."""
    at = 0
    while at + 8 <= len(data):
        kind, length = _HEAD.unpack_from(data, at)
        if length < 8 or at + length > len(data):
            raise ProtocolError(f"an action of length {length} at byte {at} of {len(data)} does not add up")
        body = data[at + 4 : at + length]
        yield kind, body[:4] if kind == ofp.OFPAT_OUTPUT and len(body) == 12 else body
        at += length


def _output(port: int) -> tuple[int, bytes]:
    return ofp.OFPAT_OUTPUT, port.to_bytes(4)


def _arrival(entry: SwitchEntry) -> Arrival | None:
    fields = dict(fields_in(entry.match))
    if _IN_PORT not in fields or _VLAN_VID not in fields:
        return None
    return Arrival(int.from_bytes(fields[_IN_PORT]), int.from_bytes(fields[_VLAN_VID]) & ~_TAGGED)


def _out(entry: SwitchEntry) -> int | None:
    """Out of which port an entry passes marked packets on, if it does just that."""
    match _done(entry):
        case [(ofp.OFPIT_APPLY_ACTIONS, [(ofp.OFPAT_DEC_NW_TTL, _), (ofp.OFPAT_OUTPUT, port)])]:
            return int.from_bytes(port)
    return None


def _landed(entry: SwitchEntry) -> int | None:
    """At which port an entry takes marked packets to have come in, if it does just that."""
    port = entry.cookie >> 4 & LAST_LINK_PORT
    right = _apply([parser.OFPActionPopVlan()], _load_in_port(port)) + _GO_ON
    return port if port and _done(entry) == _done(entry._replace(instructions=right)) else None
