"""Service entries in OpenFlow: an entry that hands packets to the controller, and the meter that limits it.

A meter cannot be put into a bundle, and an entry needs its meter: meters come first and go last. What is there already
stays, with its meter; so a controller that comes back changes nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from os_ken.ofproto import ofproto_v1_4 as ofp
from os_ken.ofproto import ofproto_v1_4_parser as parser

from flowsieve.errors import BadInput
from flowsieve.flow.punt import ANY_PORT, Punt
from flowsieve.header.address import address_text
from flowsieve.header.frame import UDP
from flowsieve.header.match import PREFIX_MASKS
from flowsieve.southbound.openflow.entries import SwitchEntry, fields_in
from flowsieve.southbound.openflow.wire import (
    ADMISSION_TABLE,
    FIELDS,
    HAND_OVER,
    NOT_OWNER,
    PROTOCOL,
    SERVICE_COOKIE,
    ProtocolError,
    entry_mod,
    to_bytes,
)

METERS = range(0xF100, 0x13100)  # the numbers of meters that are ours; Open vSwitch has them up to 0x40000
FLAGS = ofp.OFPMF_PKTPS | ofp.OFPMF_BURST
_METER = struct.Struct("!HHI")
_BAND = struct.Struct("!HHII4x")
_INSTRUCTION = struct.Struct("!HHI")


class Meter(NamedTuple):
    """A limit of packets a second; `rate` is None for a meter that limits otherwise."""

    number: int
    rate: int | None


@dataclass(frozen=True, slots=True)
class Changes:
    """What makes the service entries of a switch those that are wanted, in this order; the numbers are meters'."""

    new_meters: tuple[Meter, ...] = ()
    changed_meters: tuple[Meter, ...] = ()
    remove: tuple[SwitchEntry, ...] = ()
    install: tuple[tuple[Punt, int], ...] = ()
    old_meters: tuple[Meter, ...] = ()

    def __bool__(self) -> bool:
        return any((self.new_meters, self.changed_meters, self.remove, self.install, self.old_meters))


def changes(entries: Iterable[SwitchEntry], meters: Iterable[Meter], punts: Sequence[Punt]) -> Changes:
    """The least that has to be done."""
    rates = {meter.number: meter.rate for meter in meters if meter.number in METERS}
    wanted = {_fields(punt): punt for punt in punts}
    if len(wanted) < len(punts):
        raise BadInput("the same packets are to be handed over twice; right is one limit for each kind")
    if len(wanted) > len(METERS) // 2:
        raise BadInput(f"{len(punts)} kinds of packets are handed over; there is room for {len(METERS) // 2}")
    kept: dict[Punt, int] = {}
    used: set[int] = set()
    remove: list[SwitchEntry] = []
    for entry in entries:
        punt, meter = wanted.get(match_fields(entry.match)), meter_of(entry.instructions)
        if punt is None or entry.priority != punt.priority:
            remove.append(entry)
        elif meter in rates and meter not in used:
            kept[punt] = meter
            used.add(meter)
    free = (number for number in METERS if number not in rates)
    fresh = dict(zip((punt for punt in punts if punt not in kept), free, strict=False))
    return Changes(
        new_meters=tuple(Meter(number, punt.rate) for punt, number in fresh.items()),
        changed_meters=tuple(
            Meter(number, punt.rate) for punt, number in kept.items() if rates[number] != punt.rate
        ),
        remove=tuple(remove),
        install=tuple(fresh.items()),
        old_meters=tuple(Meter(number, None) for number in rates if number not in used),
    )


# Messages.


def meter_mod(xid: int, meter: Meter, command: int) -> bytes:
    """Make, change or remove a meter; as many packets as come in a second may come at once."""
    bands = [parser.OFPMeterBandDrop(meter.rate, meter.rate)] if meter.rate is not None else []
    return to_bytes(parser.OFPMeterMod(PROTOCOL, command, FLAGS, meter.number, bands), xid)


def meters_request(xid: int) -> bytes:
    """Ask for all meters."""
    return to_bytes(parser.OFPMeterConfigStatsRequest(PROTOCOL, 0, ofp.OFPM_ALL), xid)


def service_request(xid: int, cookie: int) -> bytes:
    """Ask for the service entries with a cookie, whoever's they are, and no others."""
    request = parser.OFPFlowStatsRequest(
        PROTOCOL, table_id=ADMISSION_TABLE, cookie=cookie, cookie_mask=NOT_OWNER
    )
    return to_bytes(request, xid)


def install(xid: int, *, punt: Punt, meter: int) -> bytes:
    """The entry that hands packets over, whole, as far as its meter lets them through."""
    to_controller = parser.OFPActionOutput(ofp.OFPP_CONTROLLER, ofp.OFPCML_NO_BUFFER)
    instructions = [
        parser.OFPInstructionMeter(meter),
        parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, [to_controller]),
    ]
    match = _match(punt)
    mod = entry_mod(ofp.OFPFC_ADD, ADMISSION_TABLE, SERVICE_COOKIE, punt.priority, match, instructions)
    return to_bytes(mod, xid)


def meters_in(body: bytes) -> Iterator[Meter]:
    """The meters in one part of a switch's answer."""
    at = 0
    while at < len(body):
        if len(body) - at < _METER.size:
            raise ProtocolError(f"a meter is cut off at byte {at} of {len(body)}")
        length, flags, number = _METER.unpack_from(body, at)
        if length < _METER.size or at + length > len(body):
            raise ProtocolError(f"a meter of length {length} at byte {at} of {len(body)} does not add up")
        yield Meter(number, _rate(flags, body[at + _METER.size : at + length]))
        at += length


def _rate(flags: int, bands: bytes) -> int | None:
    if flags & FLAGS != FLAGS or len(bands) != _BAND.size:
        return None
    kind, _, rate, burst = _BAND.unpack(bands)
    return int(rate) if (kind, burst) == (ofp.OFPMBT_DROP, rate) else None


# What entries say; a switch may put the fields of a match into an order of its own.

Fields = frozenset[tuple[bytes, bytes]]


def match_fields(match: bytes) -> Fields:
    """The fields that a match asks for, with their values."""
    return frozenset(fields_in(match))


def meter_of(instructions: bytes) -> int | None:
    """The meter of an entry that hands packets over and does nothing else; None for another entry."""
    if len(instructions) < _INSTRUCTION.size or not instructions.endswith(HAND_OVER):
        return None
    kind, length, meter = _INSTRUCTION.unpack_from(instructions)
    if (kind, length) != (ofp.OFPIT_METER, len(instructions) - len(HAND_OVER)):
        return None
    return int(meter)


def _match(punt: Punt) -> Any:
    where: dict[str, Any] = {"in_port": punt.port} if punt.port != ANY_PORT else {}
    if punt.destination is None:
        return parser.OFPMatch(eth_type=punt.ethertype, **where)
    family = punt.destination.family
    address = address_text(family, punt.destination.first)
    mask = address_text(family, PREFIX_MASKS[family][punt.destination.length])
    where[FIELDS[family]] = (address, mask) if punt.of_group else address
    return parser.OFPMatch(eth_type=punt.ethertype, ip_proto=UDP, udp_dst=punt.udp_port, **where)


def _fields(punt: Punt) -> Fields:
    packed = bytearray()
    _match(punt).serialize(packed, 0)
    return match_fields(bytes(packed))
