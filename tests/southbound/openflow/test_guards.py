"""What an Open vSwitch takes in: at its hosts' ports no more than they may send, counted; and the two tables."""

from __future__ import annotations

import asyncio
import struct
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from vswitch import PATIENCE_S, PATIENT, OpenVSwitch

from flowsieve.errors import GuardRefused
from flowsieve.flow.diff import FlowOp, OpKind
from flowsieve.flow.entry import Flow, Output
from flowsieve.flow.guard import Gate, Guard, Refusals
from flowsieve.header.address import Prefix
from flowsieve.header.frame import UdpFrame, build
from flowsieve.header.match import PrefixMatch
from flowsieve.southbound.fabric import SwitchEvent, TableChanged
from flowsieve.southbound.openflow.entries import SwitchEntry, add, within
from flowsieve.southbound.openflow.fabric import OpenFlowFabric
from flowsieve.southbound.openflow.guards import (
    GUARD_METERS,
    GuardChanges,
    MeterCount,
    guard_changes,
    guard_entries,
    guard_meters,
    meter_counts_in,
    meter_numbers,
    refusals_in,
)
from flowsieve.southbound.openflow.punts import Meter
from flowsieve.southbound.openflow.tables import Sorting, sorted_out
from flowsieve.southbound.openflow.wire import ADMISSION_TABLE, CONTENT_TABLE, COOKIE, ProtocolError

GROUP = Prefix.parse("ff0e::/16")
OWN, OTHER = "fd00:f::1", "fd00:f::2"
HOST, LINK, NOBODY, OUT = 1, 2, 3, 4
GUARD = Guard(GROUP, False, (Gate(HOST, Prefix.parse(OWN), (Prefix.parse("ff0e:8000::/17"),)),), (LINK,))
CONTENT = Flow(PrefixMatch(GROUP), 1000, (Output(OUT),))
Work = Callable[[OpenFlowFabric], Awaitable[None]]
numbers = iter(range(1, 1000))


def event(destination: str, source: str = OWN, payload: bytes = b"event") -> bytes:
    parsed = (Prefix.parse(each) for each in (source, destination))
    ends = (each.first.to_bytes(each.width // 8) for each in parsed)
    return build(UdpFrame(b"\2" + bytes(5), b"\x33\x33" + bytes(4), *ends, 999, 7420, payload))


class Bridge:
    """A switch with four ports, the last of which gets all events."""

    def __init__(self, vswitch: OpenVSwitch) -> None:
        self.name, self.vswitch = f"g{next(numbers)}", vswitch
        self.heard: list[SwitchEvent] = []
        self._address = vswitch.add_bridge(self.name, 4)

    def use(self, work: Work) -> None:
        async def main() -> None:
            async with (
                OpenFlowFabric(
                    {self.name: self._address},
                    control=self.vswitch.control,
                    timing=PATIENT,
                    report=self.heard.append,
                ) as fabric,
                asyncio.timeout(PATIENCE_S),
            ):
                await fabric.wait_connected(PATIENCE_S)
                await work(fabric)

        asyncio.run(main())

    def take(self, port: int, *packets: bytes, mark: bytes = event("ff0e::", payload=b"mark")) -> int:
        """How many of some packets that come in on a port are sent on; the last of them comes in on a link."""
        before = len(self.vswitch.sent(self.name, OUT))
        for at in range(0, len(packets), 500):
            words = [packet.hex() for packet in packets[at : at + 500]]
            self.vswitch.appctl("netdev-dummy/receive", f"{self.name}-{port}", *words)
        self.vswitch.appctl("netdev-dummy/receive", f"{self.name}-{LINK}", mark.hex())
        end = time.monotonic() + PATIENCE_S
        while not (sent := self.vswitch.sent(self.name, OUT)[before:]) or not sent[-1].endswith(b"mark"):
            assert time.monotonic() < end, "the last one does not come"
            time.sleep(0.01)
        return len(sent) - 1

    def dump(self, table: int) -> list[str]:
        told = self.vswitch.ofctl("dump-flows", self.name, f"table={table}", "--no-stats").splitlines()
        return [line for line in told if "actions=" in line]


@pytest.fixture
def bridge(open_vswitch: OpenVSwitch) -> Iterator[Bridge]:
    made = Bridge(open_vswitch)
    made.use(lambda fabric: fabric.apply(made.name, [FlowOp(OpKind.INSTALL, CONTENT)]))
    yield made
    made.vswitch.vsctl("del-br", made.name)


real = pytest.mark.real


@real
def test_a_switch_that_nobody_guards_sends_all_events_on(bridge):
    for port in (HOST, LINK, NOBODY):
        assert bridge.take(port, event("ff0e::1"), event("ff0e:8000::", OTHER)) == 2


@real
def test_a_host_gets_in_what_is_from_its_address_and_advertised_and_nothing_else(bridge):
    async def work(fabric: OpenFlowFabric) -> None:
        await fabric.guard(bridge.name, GUARD)
        assert bridge.take(HOST, event("ff0e:8000::"), event("ff0e:ffff::")) == 2
        assert bridge.take(HOST, event("ff0e::"), event("ff0e:8000::", OTHER), event("ff15::")) == 0
        assert bridge.take(LINK, event("ff0e::"), event("ff0e:8000::", OTHER)) == 2
        assert bridge.take(NOBODY, event("ff0e:8000::"), event("ff0e::", OTHER)) == 0
        assert await fabric.refusals(bridge.name) == {HOST: Refusals(outside=2)}

    bridge.use(work)


@real
def test_hosts_that_speak_ipv4_are_guarded_alike(bridge):
    group, own = Prefix.parse("225.128.0.0/9"), "10.0.0.1"
    gate = Gate(HOST, Prefix.parse(own), (Prefix.parse("225.192.0.0/10"),), rate=1000)
    content = Flow(PrefixMatch(group), 1000, (Output(OUT),))

    async def work(fabric: OpenFlowFabric) -> None:
        await fabric.apply(bridge.name, [FlowOp(OpKind.INSTALL, content)])
        guard = Guard(group, False, (gate,), (LINK,))
        await fabric.guard(bridge.name, guard)
        await fabric.guard(bridge.name, guard)
        assert len(bridge.dump(ADMISSION_TABLE)) == guard.entries
        mark = event("225.128.0.0", own, b"mark")
        assert bridge.take(HOST, event("225.192.0.1", own), mark=mark) == 1
        lies = event("225.128.0.1", own), event("225.192.0.1", "10.0.0.2")
        assert bridge.take(HOST, *lies, mark=mark) == 0
        assert await fabric.refusals(bridge.name) == {HOST: Refusals(outside=2)}

    bridge.use(work)


@real
def test_where_labels_stand_in_sources_these_get_in_and_no_others(bridge):
    group, sources = Prefix.parse("ff1d::/16"), Prefix.parse("fd1d::/16")
    content = Flow(PrefixMatch(group), 1000, (Output(OUT),))

    async def work(fabric: OpenFlowFabric) -> None:
        await fabric.apply(bridge.name, [FlowOp(OpKind.INSTALL, content)])
        guard = Guard(group, False, (Gate(HOST, sources, (group,)),), (LINK,))
        await fabric.guard(bridge.name, guard)
        mark = event("ff1d::", payload=b"mark")
        assert bridge.take(HOST, event("ff1d::1", "fd1d::5"), event("ff1d::", "fd1d:8::"), mark=mark) == 2
        assert bridge.take(HOST, event("ff1d::1"), event("ff1d::1", "fd1c::5"), mark=mark) == 0
        await fabric.guard(bridge.name, guard)
        assert await fabric.refusals(bridge.name) == {HOST: Refusals(outside=2)}

    bridge.use(work)


@real
def test_a_guard_that_is_there_already_is_left_as_it_is_and_goes_on_counting(bridge):
    async def work(fabric: OpenFlowFabric) -> None:
        await fabric.guard(bridge.name, GUARD)

    async def again(fabric: OpenFlowFabric) -> None:
        await fabric.guard(bridge.name, GUARD)
        assert await fabric.refusals(bridge.name) == {HOST: Refusals(outside=1)}
        await fabric.guard(bridge.name, Guard(GROUP))
        assert bridge.take(HOST, event("ff0e::")) == 1
        assert await fabric.refusals(bridge.name) == {}
        assert len(bridge.dump(ADMISSION_TABLE)) == 1

    bridge.use(work)
    assert bridge.take(HOST, event("ff0e::")) == 0
    before = bridge.dump(ADMISSION_TABLE)
    assert len(before) == GUARD.entries
    bridge.use(lambda fabric: fabric.guard(bridge.name, GUARD))
    assert bridge.dump(ADMISSION_TABLE) == before
    bridge.use(again)


@real
def test_a_host_that_floods_gets_in_what_it_was_granted_and_the_rest_is_counted(bridge):
    limited = Guard(GROUP, False, (Gate(HOST, None, (GROUP,), rate=50),), (LINK,))

    async def work(fabric: OpenFlowFabric) -> None:
        await fabric.guard(bridge.name, limited)
        began = time.monotonic()
        passed = bridge.take(HOST, *[event("ff0e::", payload=b"%d" % n) for n in range(3000)])
        assert 50 <= passed <= 50 + 50 * (time.monotonic() - began) + 1
        (refused,) = (await fabric.refusals(bridge.name)).values()
        assert refused.outside == 0 and 100 < refused.over_rate <= 3000 - passed
        await fabric.guard(bridge.name, GUARD)
        assert "meter=" not in bridge.vswitch.ofctl("dump-meters", bridge.name)

    bridge.use(work)


@real
def test_what_somebody_takes_out_of_a_guard_is_told_and_put_back(bridge):
    async def work(fabric: OpenFlowFabric) -> None:
        await fabric.guard(bridge.name, GUARD)
        bridge.heard.clear()
        bridge.vswitch.ofctl("del-flows", bridge.name, "table=0")
        while not any(isinstance(each, TableChanged) for each in bridge.heard):
            await asyncio.sleep(0.01)
        await fabric.apply(bridge.name, [FlowOp(OpKind.MODIFY, CONTENT)])
        assert bridge.dump(ADMISSION_TABLE) == []  # whoever guards it puts it back, and not half of it
        await fabric.guard(bridge.name, GUARD)
        assert bridge.take(HOST, event("ff0e::"), event("ff0e:8000::")) == 1

    bridge.use(work)


@real
@pytest.mark.parametrize(
    ("ports", "why"),
    [
        ([0x10000], "OFPBMC_BAD_VALUE"),  # an Open vSwitch has no such port
        (range(1, 0x10002), "65,537 hosts are at it; there are 65,536 meters"),
    ],
)
def test_a_guard_that_a_switch_has_no_meters_for_is_one_that_it_does_not_take(bridge, ports, why):
    gates = tuple(Gate(port, None, (GROUP,), rate=10) for port in ports)

    async def work(fabric: OpenFlowFabric) -> None:
        with pytest.raises(GuardRefused, match=why):
            await fabric.guard(bridge.name, Guard(GROUP, False, gates))
        await fabric.guard(bridge.name, Guard(GROUP))
        assert "meter=" not in bridge.vswitch.ofctl("dump-meters", bridge.name)

    bridge.use(work)


# The tables of before.


@real
def test_content_entries_of_the_first_table_are_taken_over_and_packets_go_on(open_vswitch):
    bridge = Bridge(open_vswitch)
    for entry in (
        f"cookie={COOKIE:#x},priority=1000,ipv6,ipv6_dst=ff0e::/16,actions=output:{OUT}",
        f"cookie={COOKIE | 1 << 16:#x},priority=1001,ipv6,ipv6_dst=ff0e:8000::/17,actions=output:{OUT}",
        f"table=1,cookie={COOKIE:#x},priority=1002,ipv6,ipv6_dst=ff0e:8000::/18,actions=drop",
        "priority=1003,ipv6,ipv6_dst=ff0e:8000::/19,actions=drop",
        "priority=5,arp,actions=drop",
    ):
        open_vswitch.ofctl("add-flow", bridge.name, entry)

    async def work(fabric: OpenFlowFabric) -> None:
        there, removed = await fabric.look(bridge.name)
        read = await fabric.read(bridge.name)
        assert read == there and removed == 4
        assert [(str(flow.match), flow.owner) for flow in read] == [("ff0e::/16", 0), ("ff0e:8000::/17", 1)]
        await fabric.apply(bridge.name, [FlowOp(OpKind.INSTALL, CONTENT)])

    bridge.use(work)
    assert len(bridge.dump(CONTENT_TABLE)) == 2
    first = bridge.dump(ADMISSION_TABLE)
    assert all("actions=goto_table:1" in each or "arp" in each for each in first), first
    assert bridge.take(HOST, event("ff0e::"), event("ff0e:8000::")) == 2
    open_vswitch.vsctl("del-br", bridge.name)


def content(priority: int, table: int, cookie: int = COOKIE, instructions: bytes = b"") -> SwitchEntry:
    match = next(iter(guard_entries(Guard(GROUP, False)))).match
    return SwitchEntry(cookie, priority, match, instructions, table)


def sorting_of(entries: Iterable[SwitchEntry]) -> Sorting:
    ours = within(entries, [GROUP])
    return sorted_out(ours, [entry.flow for entry in ours])


def test_what_stands_in_the_first_table_comes_before_what_stands_in_the_second():
    old, same, stale = content(1000, 0), content(1000, 1, instructions=b"x"), content(1001, 1)
    foreign, strange = content(7, 0, cookie=3), content(8, 1, instructions=b"x")
    sorting = sorting_of([old, same, stale, foreign, strange])
    assert sorting.take_over == (old._replace(table=CONTENT_TABLE),)
    flows = (old._replace(table=CONTENT_TABLE).flow,)
    assert set(sorting.remove) == {old, stale, foreign, strange} and sorting.flows == flows
    assert sorting_of(sorting.take_over) == (flows, (), ())


def test_entries_of_other_tables_and_those_of_the_guard_are_left_alone():
    others = [content(5, 7), content(5, 7, cookie=3), *guard_entries(GUARD)]
    assert sorting_of(others) == ((), (), ())


# Pure.


def test_a_guard_is_made_in_the_least_steps():
    gate = GUARD.gates[0]
    limited = Guard(GROUP, False, (Gate(HOST, gate.source, gate.admitted, 10),), (LINK,))
    entries, meter = list(guard_entries(limited)), GUARD_METERS[HOST]
    made = guard_changes([], [], limited)
    assert (made.install, made.new_meters, made.remove) == (tuple(entries), (Meter(meter, 10),), ())
    assert not guard_changes(entries, [Meter(meter, 10), Meter(5, 1)], limited).entries
    faster = guard_changes(entries, [Meter(meter, 9)], limited)
    assert faster.changed_meters == (Meter(meter, 10),) and not faster.entries
    less = guard_changes(entries, [Meter(meter, 10)], GUARD)
    assert [each.priority for each in less.install] == [1902] and less.remove == ()
    assert less.old_meters == (Meter(meter, None),)
    gone = guard_changes(entries, [], Guard(GROUP))
    assert len(gone.install) == 1 and set(gone.remove) == set(entries)


def test_owners_change_neither_entries_nor_meters_of_each_other():
    low, high = Prefix.parse("ff0e::/17"), Prefix.parse("ff0e:8000::/17")
    one, two = (
        Guard(GROUP, False, (Gate(HOST, None, (part,), rate=10),), (LINK,), owner, (part,))
        for owner, part in ((1, low), (2, high))
    )
    entries, meters = [*guard_entries(one), *guard_entries(two)], [*guard_meters(one), *guard_meters(two)]
    assert {entry.owner for entry in entries} == {1, 2} and all(entry.admits for entry in entries)
    assert len({(entry.priority, entry.match) for entry in entries}) == one.entries + two.entries
    assert len({meter.number for meter in meters}) == 2
    assert guard_changes(entries, meters, one) == guard_changes(entries, meters, two) == GuardChanges()
    opened = guard_changes(entries, meters, Guard(GROUP, owner=1, parts=(low,)))
    assert {entry.owner for entry in (*opened.install, *opened.remove)} == {1}
    assert [meter.number for meter in opened.old_meters] == [meter.number for meter in guard_meters(one)]
    counts = [MeterCount(meter.number, n) for n, meter in enumerate(meters, 1)]
    met = [entry._replace(packets=5) for entry in entries]
    assert refusals_in(met, counts) == {HOST: Refusals(outside=10, over_rate=3)}


def test_an_entry_is_made_as_it_is_read():
    entry = list(guard_entries(GUARD))[-1]
    message = add(7, entry)
    assert message[48:] == entry.match + entry.instructions and message[24] == ADMISSION_TABLE


def test_what_is_refused_is_told_by_port():
    entries = [each._replace(packets=n) for n, each in enumerate(guard_entries(GUARD), 1)]
    counts = [MeterCount(GUARD_METERS[HOST], 9), MeterCount(1, 100)]
    assert refusals_in(entries, counts) == {HOST: Refusals(outside=3, over_rate=9)}


def test_a_port_whose_number_no_meter_has_is_limited_by_one_that_is_free():
    ports = (0xFFFFFF00, HOST, 0x10000, 0xFFFF)
    guard = Guard(GROUP, False, tuple(Gate(port, None, (GROUP,), rate=10) for port in ports))
    numbers = meter_numbers(ports)
    assert numbers[HOST] == GUARD_METERS[HOST] and numbers[0xFFFF] == GUARD_METERS[0xFFFF]
    assert len(set(numbers.values())) == len(ports) and set(numbers.values()) <= set(GUARD_METERS)
    assert {meter.number for meter in guard_meters(guard)} == set(numbers.values())
    entries = list(guard_entries(guard))
    assert all(
        any(entry.instructions.startswith(struct.pack("!HHI", 6, 8, each)) for entry in entries)
        for each in numbers.values()
    )
    counts = [MeterCount(numbers[port], n) for n, port in enumerate(ports, 1)]
    assert refusals_in(entries, counts) == {port: Refusals(0, n) for n, port in enumerate(ports, 1)}


def test_what_meters_dropped_is_read():
    head = struct.pack("!IH6xIQQII", 7, 56, 1, 10, 20, 1, 2)
    assert list(meter_counts_in(head + struct.pack("!QQ", 3, 300))) == [MeterCount(7, 3)]


@given(st.binary(max_size=120))
def test_any_bytes_are_counts_or_an_error(data):
    with suppress(ProtocolError):
        assert all(0 <= each.number < 1 << 32 for each in meter_counts_in(data))
