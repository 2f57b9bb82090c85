"""A switch's guard in OpenFlow: entries of the first table that hand events on to the second, or drop them.

| priority | what comes in | what becomes of it |
|---|---|---|
| 1902 | at a host's port, from its address, to a prefix that it has advertised | metered, then the content table |
| 1901 | at a host's port, to the group | dropped, and counted |
| 1901 | at a port to another switch, to the group | the content table |
| 1900 | at any port, to the group | dropped; the content table where the guard is open |
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from os_ken.ofproto import ofproto_v1_4 as ofp
from os_ken.ofproto import ofproto_v1_4_parser as parser

from flowsieve.errors import SwitchError
from flowsieve.flow.guard import GUARD_PRIORITY, Guard, Refusals
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
    to_bytes,
)

GROUPS = tuple(tag.group for pool in POOLS.values() for tag in pool)
# The meter of a host's port has the port's number, behind those of service entries.
GUARD_METERS = range(METERS.stop, METERS.stop + 0x10000)
_IN_PORT = bytes.fromhex("80000004")
_ON = struct.pack("!HHB3x", ofp.OFPIT_GOTO_TABLE, 8, CONTENT_TABLE)
_METERED = struct.Struct("!HHI")
_COUNTS = struct.Struct(
    "!IH6xI8x8x8x"
)  # meter, length, entries; packets, bytes and seconds are of no interest
_BAND = struct.Struct("!Q8x")


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
    rates = {meter.number: meter.rate for meter in meters if meter.number in GUARD_METERS}
    wanted = {_key(entry): entry for entry in guard_entries(guard)}
    limits = {meter.number: meter.rate for meter in guard_meters(guard)}
    kept, remove = set(), []
    for entry in entries:
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
    yield _entry(GUARD_PRIORITY, _match(guard.group), _ON if guard.open else b"")
    for port in guard.links:
        yield _entry(GUARD_PRIORITY + 1, _match(guard.group, port), _ON)
    for gate in guard.gates:
        yield _entry(GUARD_PRIORITY + 1, _match(guard.group, gate.port), b"")
        metered = _METERED.pack(ofp.OFPIT_METER, 8, _meter(gate.port)) if gate.rate else b""
        for prefix in gate.admitted:
            yield _entry(GUARD_PRIORITY + 2, _match(prefix, gate.port, gate.source), metered + _ON)


def guard_meters(guard: Guard) -> Iterator[Meter]:
    """The meters of a guard."""
    return (Meter(_meter(gate.port), gate.rate) for gate in guard.gates if gate.rate)


def refusals_in(entries: Iterable[SwitchEntry], meters: Iterable[MeterCount]) -> dict[int, Refusals]:
    """What each host's port has refused, as the entries that drop and the meters have counted."""
    limited = {
        each.number - GUARD_METERS.start: each.dropped for each in meters if each.number in GUARD_METERS
    }
    found = {}
    for entry in entries:
        port = _port(entry)
        if port is not None and not entry.instructions:
            found[port] = Refusals(entry.packets, limited.get(port, 0))
    return found


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


def _entry(priority: int, match: bytes, instructions: bytes) -> SwitchEntry:
    return SwitchEntry(GUARD_COOKIE, priority, match, instructions, ADMISSION_TABLE)


def _match(prefix: Prefix, port: int | None = None, source: Prefix | None = None) -> bytes:
    family = prefix.family
    fields: dict[str, object] = {"in_port": port} if port is not None else {}
    fields["eth_type"] = ETH_TYPES[family]
    if source is not None:
        fields[SOURCE_FIELDS[family]] = address_text(family, source.first)
    first = address_text(family, prefix.first)
    mask = address_text(family, PREFIX_MASKS[family][prefix.length])
    fields[FIELDS[family]] = (first, mask) if prefix.length < WIDTH[family] else first
    packed = bytearray()
    parser.OFPMatch(**fields).serialize(packed, 0)
    return bytes(packed)


def _meter(port: int) -> int:
    if port >= len(GUARD_METERS):
        raise SwitchError(
            f"port {port} has no meter; right is a port below {len(GUARD_METERS)}, or no guard_rate"
        )
    return GUARD_METERS[port]


def _port(entry: SwitchEntry) -> int | None:
    """The port that an entry names, if it names one."""
    return next((int.from_bytes(value) for field, value in fields_in(entry.match) if field == _IN_PORT), None)


def _key(entry: SwitchEntry) -> tuple[int, Fields]:
    """What tells entries of one table apart; a switch may put the fields into an order of its own."""
    return entry.priority, match_fields(entry.match)
