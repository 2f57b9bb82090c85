"""Service entries and meters as bytes, and the least that makes them those that are wanted."""

from __future__ import annotations

import struct

import peer
import pytest
from hypothesis import given
from hypothesis import strategies as st
from os_ken.ofproto import ofproto_v1_4 as ofp

from flowsieve.errors import BadInput
from flowsieve.flow.punt import LLDP, SERVICE_PRIORITY, Punt, with_ports
from flowsieve.header.address import Prefix
from flowsieve.southbound.openflow.connection import OpenFlowConnection
from flowsieve.southbound.openflow.entries import SwitchEntry, within
from flowsieve.southbound.openflow.events import BatchApplied, MetersListed
from flowsieve.southbound.openflow.punts import (
    METERS,
    Changes,
    Meter,
    changes,
    install,
    match_fields,
    meter_mod,
    meter_of,
    meters_in,
)
from flowsieve.southbound.openflow.strangers import foreign_in
from flowsieve.southbound.openflow.wire import ADMISSION_TABLE, COOKIE, SERVICE_COOKIE, ProtocolError

CALLS = Punt.to("ff02::f10e:c0:1", 7421, rate=1000)
CALLS4 = Punt.to("224.128.255.1", 7421, rate=500)
NEIGHBOURS = Punt.of_type(LLDP, rate=100)
PUNTS = [CALLS, CALLS4, NEIGHBOURS]


def entry(punt: Punt, meter: int, **other: object) -> SwitchEntry:
    """What a switch would hold after an installation."""
    message = install(1, punt=punt, meter=meter)
    length = (int.from_bytes(message[50:52]) + 7) // 8 * 8
    held = SwitchEntry(SERVICE_COOKIE, SERVICE_PRIORITY, message[48 : 48 + length], message[48 + length :])
    return held._replace(**other)


def held(*punts: Punt) -> tuple[list[SwitchEntry], list[Meter]]:
    numbered = list(zip(METERS, punts, strict=False))
    return [entry(punt, n) for n, punt in numbered], [Meter(n, punt.rate) for n, punt in numbered]


def test_from_nothing_all_is_made_each_with_a_meter_of_its_own():
    todo = changes([], [], PUNTS)
    assert todo.new_meters == tuple(Meter(n, p.rate) for n, p in zip(METERS, PUNTS, strict=False))
    assert todo.install == tuple(zip(PUNTS, METERS, strict=False))
    assert not (todo.changed_meters or todo.remove or todo.old_meters)


def test_what_is_there_needs_nothing_in_whatever_order():
    entries, meters = held(*PUNTS)
    assert changes(entries, meters, PUNTS[::-1]) == Changes()
    assert not changes(entries[::-1], meters[::-1], PUNTS)


def test_another_rate_changes_the_meter_alone():
    entries, meters = held(*PUNTS)
    faster = Punt.to("ff02::f10e:c0:1", 7421, rate=2000)
    assert changes(entries, meters, [faster, *PUNTS[1:]]) == Changes(changed_meters=(Meter(METERS[0], 2000),))


def test_what_is_not_wanted_goes_with_its_meter():
    entries, meters = held(*PUNTS)
    assert changes(entries, meters, [CALLS]) == Changes(
        remove=tuple(entries[1:]), old_meters=(Meter(METERS[1], None), Meter(METERS[2], None))
    )


def test_meters_that_nobody_uses_go_and_those_of_others_stay():
    entries, meters = held(CALLS)
    meters += [Meter(METERS[7], 5), Meter(3, 5)]
    assert changes(entries, meters, [CALLS]) == Changes(old_meters=(Meter(METERS[7], None),))


def test_two_entries_never_share_a_meter():
    entries, meters = held(CALLS)
    todo = changes([*entries, entry(CALLS4, METERS[0])], meters, [CALLS, CALLS4])
    assert todo == Changes(new_meters=(Meter(METERS[1], 500),), install=((CALLS4, METERS[1]),))


@pytest.mark.parametrize(
    "spoiled",
    [
        entry(CALLS, METERS[0], instructions=b""),
        entry(CALLS, METERS[0], instructions=entry(CALLS, METERS[0]).instructions[8:]),
        entry(CALLS, METERS[0], instructions=entry(CALLS, METERS[0]).instructions * 2),
        entry(CALLS, METERS[9]),
    ],
    ids=["drops", "without a meter", "twice", "a meter that is not there"],
)
def test_an_entry_that_does_something_else_is_replaced(spoiled):
    _, meters = held(CALLS)
    todo = changes([spoiled], meters, [CALLS])
    assert todo.install == ((CALLS, METERS[1]),)
    assert not todo.remove  # it has the same match, and is written over


def test_an_entry_of_another_priority_is_taken_out():
    entries, meters = held(CALLS)
    low = entries[0]._replace(priority=5)
    todo = changes([low], meters, [CALLS])
    assert (todo.remove, todo.install) == ((low,), ((CALLS, METERS[1]),))


def test_there_is_room_for_so_many():
    room = len(METERS) // 2
    many = [CALLS.at(n) for n in range(1, room + 2)]
    with pytest.raises(BadInput, match=f"there is room for {room}"):
        changes([], [], many)
    entries, meters = held(*many[:room])
    others = [CALLS.at(9999 + n) for n in range(room)]
    assert len(changes(entries, meters, others).install) == room


def test_the_order_of_a_matchs_fields_does_not_matter():
    match = entry(CALLS, 1).match
    (length,) = struct.unpack_from("!H", match, 2)
    cut = 4 + 4 + match[7]
    turned = match[:4] + match[cut:length] + match[4:cut] + match[length:]
    assert turned != match
    assert match_fields(turned) == match_fields(match)


def test_service_entries_are_not_among_those_of_the_content():
    ours = entry(CALLS, 1)
    groups = [Prefix.parse("ff0e::/16")]
    assert within([ours], groups) == []
    assert within([ours._replace(cookie=COOKIE)], groups) == [ours._replace(cookie=COOKIE)]
    reaching = entry(Punt.to("ff0e::1", 7421, rate=1), 1)
    assert within([reaching], groups) == [reaching]


def test_what_hands_over_late_events_is_no_content_and_nobody_elses():
    late = entry(Punt.within(Prefix.parse("ff0e::/16"), 9559, rate=1).at(3), 1, table=ADMISSION_TABLE)
    groups = [Prefix.parse("ff0e::/16"), Prefix.parse("ff15::/16")]
    assert within([late], groups) == []
    assert not any("ff0e" in each.text for each in foreign_in([late], groups))
    for other in (
        late._replace(cookie=COOKIE),
        late._replace(cookie=9),
        late._replace(table=1),
        late._replace(instructions=b""),
    ):
        assert within([other], groups) == [other]


# Bytes.


def body(*meters: Meter) -> bytes:
    """A switch's answer: a meter's own bytes are those of the message that makes it."""
    made = b""
    for meter in meters:
        bands = meter_mod(1, meter, ofp.OFPMC_ADD)[16:]
        made += struct.pack("!HHI", 8 + len(bands), ofp.OFPMF_PKTPS | ofp.OFPMF_BURST, meter.number) + bands
    return made


def test_meters_are_read_as_they_were_made():
    meters = [Meter(1, 10), Meter(METERS[3], 1_000_000)]
    assert list(meters_in(body(*meters))) == meters


def test_a_meter_that_limits_otherwise_has_no_rate_of_ours():
    whole = body(Meter(1, 10))
    assert list(meters_in(whole[:2] + b"\0\5" + whole[4:])) == [Meter(1, None)]  # kilobits
    assert list(meters_in(whole[:8] + b"\0\2" + whole[10:])) == [Meter(1, None)]  # marks, and drops nothing


@given(st.binary(max_size=100))
def test_any_bytes_are_meters_or_an_error(data):
    try:
        for meter in meters_in(data):
            assert 0 <= meter.number < 1 << 32
    except ProtocolError:
        pass


@given(st.binary(max_size=60))
def test_any_instructions_have_a_meter_or_none(data):
    assert meter_of(data) is None or meter_of(data) in range(1 << 32)


# On a connection.


@pytest.fixture
def ready() -> OpenFlowConnection:
    connection = OpenFlowConnection()
    assert len(list(connection.receive(peer.hello(5) + peer.features(2)))) == 1
    list(connection.outgoing())
    return connection


def parts(request: int, data: bytes, more: bool) -> bytes:
    head = struct.pack("!HH4x", ofp.OFPMP_METER_CONFIG, int(more))
    return peer.message(ofp.OFPT_MULTIPART_REPLY, request, head + data)


def test_meters_come_in_several_parts(ready):
    request = ready.list_meters()
    assert list(ready.receive(parts(request, body(Meter(1, 10)), more=True))) == []
    last = list(ready.receive(parts(request, body(Meter(2, 20)), more=False)))
    assert last == [MetersListed(request, (Meter(1, 10), Meter(2, 20)))]


def test_meters_that_nobody_asked_for_are_a_fault(ready):
    with pytest.raises(ProtocolError, match="listed meters that nobody asked for"):
        list(ready.receive(parts(7, b"", more=False)))


def test_meters_are_changed_once_the_barrier_is_answered(ready):
    request = ready.change_meters([Meter(1, 10), Meter(2, 20)], ofp.OFPMC_ADD)
    first, second, barrier = peer.frames(b"".join(ready.outgoing()))
    assert [first.type, second.type, barrier.type] == [ofp.OFPT_METER_MOD] * 2 + [ofp.OFPT_BARRIER_REQUEST]
    assert list(ready.receive(peer.barrier(barrier.xid))) == [BatchApplied(request)]


def test_a_refused_meter_is_told(ready):
    request = ready.change_meters([Meter(1, 10), Meter(2, 20)], ofp.OFPMC_ADD)
    _, second, barrier = peer.frames(b"".join(ready.outgoing()))
    failure = peer.error(second.xid, ofp.OFPET_METER_MOD_FAILED, ofp.OFPMMFC_OUT_OF_METERS)
    (refused,) = ready.receive(failure + peer.barrier(barrier.xid))
    assert refused.request == request
    assert "OFPMMFC_OUT_OF_METERS" in refused.failure.reason


def test_a_switch_with_two_thousand_hosts_has_meters_enough() -> None:
    wanted = with_ports([Punt.of_type(LLDP, rate=1000), CALLS, CALLS4], range(3, 2003), [1, 2])
    todo = changes([], [], wanted)
    assert len(todo.new_meters) == len(todo.install) == len(wanted) == 3 + 3 * 2000 + 2
    assert len({meter.number for meter in todo.new_meters}) == len(wanted)
