"""Entries of others as far as they concern us: which events they may match, and what they would do to them.

An event is a UDP datagram without a VLAN tag, sent to the port of events and to the MAC address of its group. Of its
source and of where it comes in, nothing is known.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from os_ken.ofproto import ofproto_v1_4 as ofp
from os_ken.ofproto import ofproto_v1_4_parser as parser

from flowsieve.flow.entry import LABEL_TABLES
from flowsieve.flow.others import Foreign, SentCopy
from flowsieve.header.address import WIDTH, Prefix, address_text
from flowsieve.header.frame import UDP
from flowsieve.header.tag import LABEL_GROUPS
from flowsieve.protocol.addresses import EVENT_PORT
from flowsieve.southbound.openflow.entries import SwitchEntry, fields_in
from flowsieve.southbound.openflow.packed import DESTINATIONS, SET_DESTINATION, SET_ETH_DST
from flowsieve.southbound.openflow.ports import MAX_PORT
from flowsieve.southbound.openflow.wire import CONTENT_TABLE, SERVICE_COOKIE

_INSTRUCTION = struct.Struct("!HH")
_ACTION = struct.Struct("!HHI")
_HIDDEN = {ofp.OFPP_CONTROLLER, ofp.OFPP_LOCAL}  # whoever is there is no host of ours
_FLOODING = {ofp.OFPP_ALL, ofp.OFPP_FLOOD, ofp.OFPP_NORMAL}
_PORTS = {
    ofp.OFPP_CONTROLLER: "controller",
    ofp.OFPP_LOCAL: "local",
    ofp.OFPP_IN_PORT: "in_port",
    ofp.OFPP_ALL: "all",
    ofp.OFPP_FLOOD: "flood",
    ofp.OFPP_NORMAL: "normal",
    ofp.OFPP_TABLE: "table",
}
_GROUP_MACS = {6: (0x3333 << 32, 0xFFFF << 32), 4: (0x01005E << 24, 0xFFFFFF80 << 16)}  # value and mask
_FAMILIES = {0x86DD: 6, 0x0800: 4}
_MOST_TEXT = 300  # characters


def foreign_in(entries: Iterable[SwitchEntry], groups: Iterable[Prefix]) -> tuple[Foreign, ...]:
    """The entries of others that events may meet: in the content's table, in one that is passed before it, or in one
    for labels that these come to.

    Entries of the content's table within our groups are set right by whoever owns these, and are not told; nor are
    those of tables for labels within groups of labels. A table before the content's in which nothing of ours lets
    events go on counts as an entry of others that drops them. Service entries match no events, but for those that come
    too late: another one that does is not ours.
    """
    wide = tuple(groups)
    ours, theirs = list[SwitchEntry](), list[SwitchEntry]()
    for entry in entries:
        if entry.hands_over:
            continue  # of events, those that come too late
        if entry.table <= CONTENT_TABLE or entry.table in LABEL_TABLES:
            (ours if entry.ours and entry.cookie != SERVICE_COOKIE else theirs).append(entry)
    found = [_miss(table) for table in range(CONTENT_TABLE) if not any(_opens(each, table) for each in ours)]
    for entry in theirs:
        told = foreign(entry)
        if told is None or not any(told.within(group) for group in wide):
            continue
        if entry.table in LABEL_TABLES:
            found += _among_labels(told, entry, wide, ours)
            continue
        if entry.table == CONTENT_TABLE and told.reach and any(group.covers(told.reach) for group in wide):
            continue
        # In a table that is passed before that of the content, ours say of all events whether they go on; what they
        # say is kept in order elsewhere. So nothing meets what is below them, and what is beside them only perhaps.
        beside = [each.priority for each in ours if each.table == entry.table < CONTENT_TABLE]
        if not beside or entry.priority >= min(beside):
            above = not beside or entry.priority > max(beside)
            found.append(replace(told, certain=told.certain and above))
    return tuple(found)


def _among_labels(
    told: Foreign, entry: SwitchEntry, groups: Iterable[Prefix], ours: Iterable[SwitchEntry]
) -> Iterator[Foreign]:
    """An entry in a table for labels that is not about them alone, once for each group of labels that comes there.

    Ours say of all labels of a group what becomes of them: nothing meets what is below, and what is beside perhaps.
    """
    for group in LABEL_GROUPS:
        here = (each for each in ours if each.table == entry.table)
        beside = [each.priority for each in here if (to := each.destination) and group.covers(to)]
        wider = told.reach is None or (told.reach != group and told.reach.covers(group))
        if group in groups and wider and beside and entry.priority >= min(beside):
            yield replace(told, reach=group, certain=told.certain and entry.priority > max(beside))


def _opens(entry: SwitchEntry, table: int) -> bool:
    """Whether it lets events go on from a table to that of the content."""
    told = foreign(entry) if entry.table == table else None
    return told is not None and told.goes_on


def _miss(table: int) -> Foreign:
    text = f"table {table} lets nothing go on to table {CONTENT_TABLE}"
    return Foreign(0, text, certain=True, ahead=CONTENT_TABLE - table, missing=True)


def foreign(entry: SwitchEntry) -> Foreign | None:
    """An entry of somebody else; None if it matches no event."""
    asked = _match(entry.match)
    if asked is None:
        return None
    done = _Reading()
    for kind, body in _parts(entry.instructions, _INSTRUCTION.size):
        done.instruct(kind, body)
    if done.goes_on and (done.perhaps or (done.mac, done.address) != (None, None)):
        done.wonder("it lets events go on changed, or only some of them")
    text = f"table={entry.table} priority={entry.priority} {_match_text(entry.match)} -> {done.text}"
    return Foreign(
        entry.priority,
        text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}…",
        asked.reach,
        asked.certain,
        asked.in_port,
        tuple(done.copies),
        done.perhaps,
        done.floods,
        done.goes_on,
        done.riddle,
        max(0, CONTENT_TABLE - entry.table),
    )


# Matches.


class _Asked(NamedTuple):
    """What a match asks of events, as in `Foreign`."""

    reach: Prefix | None
    certain: bool
    in_port: int | None


def _match(match: bytes) -> _Asked | None:
    """What a match asks of events; None if none can match."""
    family, reach, certain, in_port = None, None, True, None
    values: dict[int, tuple[int, int, int]] = {}
    for head, body in fields_in(match):
        size = len(body) // 2 if head[2] & 1 else len(body)
        mask = int.from_bytes(body[size:]) if head[2] & 1 else (1 << 8 * size) - 1
        values[int.from_bytes(head[:3]) >> 1] = int.from_bytes(body[:size]) & mask, mask, size
    for number, (value, mask, size) in values.items():
        whole = mask == (1 << 8 * size) - 1
        if number == _field(ofp.OFPXMT_OFB_ETH_TYPE):
            family = _FAMILIES.get(value)
            if family is None:
                return None
        elif number in _KNOWN:
            if (value ^ _KNOWN[number]) & mask:
                return None
        elif number == _field(ofp.OFPXMT_OFB_ETH_DST):
            if all((value ^ mac) & mask & sure for mac, sure in _GROUP_MACS.values()):
                return None
            certain = certain and not any((value ^ mac | ~sure) & mask for mac, sure in _GROUP_MACS.values())
        elif number in _DESTINATION_FIELDS and 8 * size == WIDTH[_DESTINATION_FIELDS[number]]:
            width = WIDTH[_DESTINATION_FIELDS[number]]
            free = (((1 << width) - 1) ^ mask).bit_length()  # bits asked for after a gap are left out
            reach = Prefix(_DESTINATION_FIELDS[number], value >> free, width - free)
            certain = certain and mask == ((1 << width) - 1) >> free << free
        elif number == _field(ofp.OFPXMT_OFB_IN_PORT) and whole:
            in_port = value
        elif mask:
            certain = False
    if reach is None and family is not None:
        reach = Prefix(family, 0, 0)
    return _Asked(reach, certain, in_port)


def _field(number: int) -> int:
    return int(ofp.OFPXMC_OPENFLOW_BASIC << 7 | number)


# What these fields of an event have; 0 for no VLAN tag.
_KNOWN = {
    _field(ofp.OFPXMT_OFB_IP_PROTO): UDP,
    _field(ofp.OFPXMT_OFB_UDP_DST): EVENT_PORT,
    _field(ofp.OFPXMT_OFB_VLAN_VID): 0,
}
_DESTINATION_FIELDS = {_field(number): family for family, number in DESTINATIONS.items()}


def _match_text(match: bytes) -> str:
    """A match as people read it."""
    try:
        fields = parser.OFPMatch.parser(match, 0).items()
    except Exception:  # whatever os-ken makes of a field that it does not know
        return match.hex()
    said = []
    for name, value in fields:
        what, _, mask = (value[0], "/", value[1]) if isinstance(value, tuple) else (value, "", None)
        said.append(f"{name}={_number(what)}" + (f"/{_number(mask)}" if mask is not None else ""))
    return ",".join(said) or "any"


def _number(value: object) -> str:
    return f"{value:#x}" if isinstance(value, int) and value > 0xFF else str(value)


# Instructions.


@dataclass(slots=True)
class _Reading:
    """What the instructions of an entry do to an event, read one after the other; as in `Foreign`."""

    copies: list[SentCopy] = field(default_factory=list)
    perhaps: bool = False
    floods: bool = False
    goes_on: bool = False
    riddle: str | None = None
    mac: int | None = None
    address: Prefix | None = None
    said: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return ",".join(self.said) or "drop"

    def instruct(self, kind: int, body: bytes) -> None:
        if kind == ofp.OFPIT_APPLY_ACTIONS:
            for action, rest in _parts(body[4:], _INSTRUCTION.size):
                self.act(action, rest)
        elif kind == ofp.OFPIT_GOTO_TABLE and body:
            self.said.append(f"goto_table:{body[0]}")
            self.goes_on = body[0] == CONTENT_TABLE
            if not self.goes_on:
                self.wonder(f"it lets them go on in table {body[0]}")
        elif kind == ofp.OFPIT_METER:
            self.said.append("meter")
            self.perhaps = True
        elif kind != ofp.OFPIT_CLEAR_ACTIONS:
            self.said.append(f"instruction {kind}")
            self.wonder(f"it has an instruction of kind {kind}")

    def act(self, kind: int, body: bytes) -> None:
        whole = _INSTRUCTION.pack(kind, len(body) + _INSTRUCTION.size) + body
        if kind == ofp.OFPAT_OUTPUT and len(body) >= 4:
            self._output(int.from_bytes(body[:4]))
        elif whole.startswith(SET_ETH_DST):
            self.mac = int.from_bytes(whole[8:14])
            self.said.append(f"set_eth_dst:{self.mac:012x}")
        elif (family := next((f for f, head in SET_DESTINATION.items() if whole.startswith(head)), 0)) != 0:
            number = int.from_bytes(whole[8 : 8 + WIDTH[family] // 8])
            self.address = Prefix(family, number, WIDTH[family])
            self.said.append(f"set_dst:{address_text(family, number)}")
        elif kind in (ofp.OFPAT_DEC_NW_TTL, ofp.OFPAT_SET_QUEUE):
            self.said.append("dec_ttl" if kind == ofp.OFPAT_DEC_NW_TTL else "set_queue")
        else:
            self.said.append(
                f"group:{int.from_bytes(body[:4])}" if kind == ofp.OFPAT_GROUP else f"action {kind}"
            )
            self.wonder("it hands them to a group" if kind == ofp.OFPAT_GROUP else "it changes them")

    def _output(self, port: int) -> None:
        self.said.append(f"output:{_PORTS.get(port, port)}")
        changed = (self.mac, self.address) != (None, None)
        if 1 <= port <= MAX_PORT:
            self.copies.append(SentCopy(port, self.mac, self.address))
        elif port in _FLOODING and not changed:
            self.floods = True
        elif port not in _HIDDEN:
            self.wonder(f"it sends them to {_PORTS.get(port, hex(port))}")

    def wonder(self, why: str) -> None:
        self.riddle = self.riddle or why


def _parts(data: bytes, head: int) -> Iterator[tuple[int, bytes]]:
    """The kind and the body of each instruction or action in a list of them."""
    at = 0
    while at + head <= len(data):
        kind, length = _INSTRUCTION.unpack_from(data, at)
        if length < 8 or at + length > len(data):
            yield 0xFFFF, b""  # no list that a switch should send: nobody can tell what it does
            return
        yield kind, data[at + head : at + length]
        at += length
