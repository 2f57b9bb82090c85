"""A switch's guard in OpenFlow: entries of the first table that hand events on to the second, or drop them.

| priority | what comes in | what becomes of it |
|---|---|---|
| 1902 | at a host's port, from its address, to what its gate admits | metered, then the content table |
| 1901 | at a host's port, to the group | dropped, and counted |
| 1901 | at a port to another switch, to the group | the content table |
| 1900 | at any port, to the group | dropped; the content table where the guard is open |

What has a VLAN tag never gets to the content table this way.

Where several owners share a switch, each has such entries for its parts of the group, and meters of its own: neither
changes those of another.
"""

from __future__ import annotations

import struct
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from os_ken.ofproto import ofproto_v1_4 as ofp
from os_ken.ofproto import ofproto_v1_4_parser as parser

from flowsieve.errors import SwitchError
from flowsieve.flow.guard import GUARD_PRIORITY, Admitted, Guard, Refusals, asked_of
from flowsieve.header.address import WIDTH, Prefix, address_text
from flowsieve.header.frame import ETH_TYPES
from flowsieve.header.match import PREFIX_MASKS
from flowsieve.header.tag import POOLS
from flowsieve.southbound.openflow.entries import SwitchEntry, fields_in
from flowsieve.southbound.openflow.punts import METERS, Fields, Meter, match_fields
from flowsieve.southbound.openflow.wire import (
    ADMISSION_TABLE,
    CONTENT_TABLE,
    FIELDS,
    GUARD_COOKIE,
    PROTOCOL,
    SOURCE_FIELDS,
    ProtocolError,
    cookie_of,
    to_bytes,
)

GROUPS = tuple(tag.group for pool in POOLS.values() for tag in pool)
GUARD_METERS = range(METERS.stop, METERS.stop + 0x10000)  # behind those of service entries
_OTHERS_METERS = range(GUARD_METERS.stop, 0x40000)  # for guards of other owners than the first
_EACH = 0x100  # of them
_IN_PORT = bytes.fromhex("80000004")
_ON = struct.pack("!HHB3x", ofp.OFPIT_GOTO_TABLE, 8, CONTENT_TABLE)
_METERED = struct.Struct("!HHI")
_COUNTS = struct.Struct(
    "!IH6xI8x8x8x"
)  # meter, length, entries; packets, bytes and seconds are of no interest
_BAND = struct.Struct("!Q8x")


class NoMeter(SwitchError):
    """More hosts are at a switch than there are meters."""


class MeterCount(NamedTuple):
    """How many packets a meter has dropped."""

    number: int
    dropped: int


@dataclass(frozen=True, slots=True)
class GuardChanges:
    """What makes a switch's guard the one that is wanted, in this order."""

    new_meters: tuple[Meter, ...] = ()
    changed_meters: tuple[Meter, ...] = ()
    install: tuple[SwitchEntry, ...] = ()
    remove: tuple[SwitchEntry, ...] = ()
    old_meters: tuple[Meter, ...] = ()

    @property
    def entries(self) -> bool:
        """Whether entries change, and not only how many packets they let through."""
        return bool(self.install or self.remove)


def guard_changes(entries: Iterable[SwitchEntry], meters: Iterable[Meter], guard: Guard) -> GuardChanges:
    """The least that has to be done; what is there already stays, with what it has counted."""
    own, cookie = meters_of(guard.owner), GUARD_COOKIE | cookie_of(guard.owner)
    rates = {meter.number: meter.rate for meter in meters if meter.number in own}
    wanted = {_key(entry): entry for entry in guard_entries(guard)}
    limits = {meter.number: meter.rate for meter in guard_meters(guard)}
    kept, remove = set(), []
    for entry in entries:
        if entry.cookie != cookie:
            continue
        there = wanted.get(_key(entry))
        if there is None:
            remove.append(entry)
        elif there.instructions == entry.instructions:
            kept.add(_key(entry))
    return GuardChanges(
        new_meters=tuple(Meter(each, rate) for each, rate in limits.items() if each not in rates),
        changed_meters=tuple(
            Meter(each, rate) for each, rate in limits.items() if each in rates and rates[each] != rate
        ),
        install=tuple(entry for key, entry in wanted.items() if key not in kept),
        remove=tuple(remove),
        old_meters=tuple(Meter(each, None) for each in rates if each not in limits),
    )


def guard_entries(guard: Guard) -> Iterator[SwitchEntry]:
    """The entries of a guard."""
    entry, numbers = partial(_entry, guard.owner), _numbers(guard)
    for part in guard.within:
        yield entry(GUARD_PRIORITY, _match(part, admits=guard.open), _ON if guard.open else b"")
        for port in guard.links:
            yield entry(GUARD_PRIORITY + 1, _match(part, port, admits=True), _ON)
        for gate in guard.gates:
            yield entry(GUARD_PRIORITY + 1, _match(part, gate.port), b"")
    for gate in guard.gates:
        metered = _METERED.pack(ofp.OFPIT_METER, 8, numbers[gate.port]) if gate.rate else b""
        for some in gate.admitted:
            match = _match(some, gate.port, gate.source, admits=True)
            yield entry(GUARD_PRIORITY + 2, match, metered + _ON)


def guard_meters(guard: Guard) -> Iterator[Meter]:
    """The meters of a guard."""
    numbers = _numbers(guard)
    return (Meter(numbers[gate.port], gate.rate) for gate in guard.gates if gate.rate)


def _numbers(guard: Guard) -> dict[int, int]:
    return meter_numbers((gate.port for gate in guard.gates if gate.rate), guard.owner)


def meters_of(owner: int) -> range:
    """The meters that there are for an owner's guards."""
    first = (owner - 1) * _EACH
    return _OTHERS_METERS[first : first + _EACH] if owner else GUARD_METERS


def meter_numbers(ports: Iterable[int], owner: int = 0) -> dict[int, int]:
    """The meter of each host's port: of the port's own number as far as these go, else of the highest that are free.

    A switch may call its ports anything up to 32 bits; there are not so many meters.
    """
    there, sorted_ports = meters_of(owner), sorted(ports)
    own = {port: there[port] for port in sorted_ports if port < len(there)}
    taken = set(own.values())
    free = (number for number in reversed(there) if number not in taken)
    beyond = dict(zip(sorted_ports[len(own) :], free, strict=False))
    if len(own) + len(beyond) < len(sorted_ports):
        raise NoMeter(f"{len(sorted_ports):,} hosts are at it; there are {len(there):,} meters for them")
    return own | beyond


def refusals_in(entries: Iterable[SwitchEntry], meters: Iterable[MeterCount]) -> dict[int, Refusals]:
    """What each host's port has refused, by all owners' guards, as entries that drop and meters have counted."""
    outside, over_rate, guarded = Counter[int](), Counter[int](), defaultdict[int, set[int]](set)
    for entry in entries:
        if not entry.instructions and (port := _port(entry)) is not None:
            outside[port] += entry.packets
            guarded[entry.owner or 0].add(port)
    limited = {each.number: each.dropped for each in meters}
    for owner, ports in guarded.items():
        if any(number in meters_of(owner) for number in limited):
            over_rate.update({port: limited.get(n, 0) for port, n in meter_numbers(ports, owner).items()})
    return {port: Refusals(count, over_rate[port]) for port, count in outside.items()}


# Bytes.


def meter_counts_request(xid: int) -> bytes:
    """Ask what all meters have counted."""
    return to_bytes(parser.OFPMeterStatsRequest(PROTOCOL, 0, ofp.OFPM_ALL), xid)


def meter_counts_in(body: bytes) -> Iterator[MeterCount]:
    """What meters have dropped, from one part of a switch's answer."""
    at = 0
    while at < len(body):
        if len(body) - at < _COUNTS.size:
            raise ProtocolError(f"a meter's counts are cut off at byte {at} of {len(body)}")
        number, length, _ = _COUNTS.unpack_from(body, at)
        bands = body[at + _COUNTS.size : at + length]
        if length < _COUNTS.size or at + length > len(body) or len(bands) % _BAND.size:
            raise ProtocolError(f"counts of length {length} at byte {at} of {len(body)} do not add up")
        yield MeterCount(number, sum(dropped for (dropped,) in _BAND.iter_unpack(bands)))
        at += length


def _entry(owner: int, priority: int, match: bytes, instructions: bytes) -> SwitchEntry:
    return SwitchEntry(GUARD_COOKIE | cookie_of(owner), priority, match, instructions, ADMISSION_TABLE)


def _match(
    some: Admitted, port: int | None = None, source: Prefix | None = None, *, admits: bool = False
) -> bytes:
    family = some.family
    fields: dict[str, object] = {"in_port": port} if port is not None else {}
    fields["eth_type"] = ETH_TYPES[family]
    if admits:  # what bears a mark goes around a dead link; nobody else sends events with a VLAN id
        fields["vlan_vid"] = ofp.OFPVID_NONE
    if source is not None:
        fields[SOURCE_FIELDS[family]] = _asked(source)
    fields[FIELDS[family]] = _asked(some)
    packed = bytearray()
    parser.OFPMatch(**fields).serialize(packed, 0)
    return bytes(packed)


def _asked(some: Admitted) -> object:
    """The addresses that an entry asks for."""
    family, asked = some.family, asked_of(some)
    value, mask = address_text(family, asked.value), address_text(family, asked.mask)
    return (value, mask) if asked.mask != PREFIX_MASKS[family][WIDTH[family]] else value


def _port(entry: SwitchEntry) -> int | None:
    """The port that an entry names, if it names one."""
    return next((int.from_bytes(value) for field, value in fields_in(entry.match) if field == _IN_PORT), None)


def _key(entry: SwitchEntry) -> tuple[int, Fields]:
    """What tells entries of one table apart; a switch may put the fields into an order of its own."""
    return entry.priority, match_fields(entry.match)
