"""What live switches hand to a controller, whatever they are: embedded ones, or Open vSwitch's."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Protocol

import pytest
from vswitch import OpenVSwitch

from flowsieve.errors import BadInput, SwitchError
from flowsieve.flow.diff import FlowOp, OpKind
from flowsieve.flow.entry import Flow, Output
from flowsieve.flow.guard import Guard
from flowsieve.flow.punt import LLDP, Punt, with_ports
from flowsieve.header.address import Prefix
from flowsieve.header.frame import UdpFrame, build
from flowsieve.header.match import PrefixMatch
from flowsieve.network.topology import Topology
from flowsieve.southbound.embedded.network import EmbeddedNetwork
from flowsieve.southbound.fabric import LiveSwitches, PuntedPacket, SwitchEvent, TableChanged
from flowsieve.southbound.openflow.channel import OPEN
from flowsieve.southbound.openflow.fabric import OpenFlowFabric
from flowsieve.southbound.openflow.wire import ADMISSION_TABLE
from flowsieve.testing.embedded_fabric import EmbeddedFabric

CALLS6 = Punt.to("ff02::f10e:c0:1", 7421, rate=1000)
CALLS4 = Punt.to("224.128.255.1", 7421, rate=1000)
NEIGHBOURS = Punt.of_type(LLDP, rate=100)
OPEN_GROUP = Prefix.parse("ff0e::/16")
CONTENT = Flow(PrefixMatch(OPEN_GROUP), 1000, (Output(2),))
Work = Callable[[LiveSwitches], Awaitable[None]]
numbers = iter(range(1, 1000))


def datagram(punt: Punt, port: int = 7421, off: int = 0, payload: bytes = b"call") -> bytes:
    assert punt.destination is not None
    size = punt.destination.width // 8
    source, destination = bytes(size - 1) + b"\1", (punt.destination.first + off).to_bytes(size)
    return build(UdpFrame(b"\2" + bytes(5), b"\x33\x33" + bytes(4), source, destination, 999, port, payload))


HELLO = b"\x01\x80\xc2\x00\x00\x0e\2\0\0\0\0\1\x88\xcc" + bytes(50)


class Live(Protocol):
    """One switch with three ports, all of them to hosts."""

    name: str
    heard: list[SwitchEvent]

    def use(self, work: Work) -> None:
        """Do something with the switch connected."""

    def pass_in(self, port: int, *packets: bytes) -> None:
        """Packets come in on a port."""

    def passed_out(self, port: int) -> list[bytes]:
        """What left by a port."""

    async def trace(self) -> object:
        """Something that stays the same only as long as no service entry is made, changed or taken out."""

    def lose(self) -> None:
        """The switch forgets all service entries."""


class Embedded:
    def __init__(self) -> None:
        self.name = "s1"
        self.heard: list[SwitchEvent] = []
        self._out: list[tuple[str, bytes]] = []
        network = EmbeddedNetwork(Topology.make([], {"h1": "s1", "h2": "s1", "h3": "s1"}, ["s1"]))
        self._fabric = EmbeddedFabric(
            network, self.heard.append, lambda host, data: self._out.append((host, data))
        )

    def use(self, work: Work) -> None:
        self._fabric.connect("s1")
        asyncio.run(work(self._fabric))

    def pass_in(self, port: int, *packets: bytes) -> None:
        for packet in packets:
            self._fabric.receive(f"h{port}", packet)

    def passed_out(self, port: int) -> list[bytes]:
        return [data for host, data in self._out if host == f"h{port}"]

    async def trace(self) -> object:
        return self._fabric.hand_overs["s1"].changed

    def lose(self) -> None:
        self._fabric.restart("s1")


class Real:
    def __init__(self, vswitch: OpenVSwitch) -> None:
        self.name = f"v{next(numbers)}"
        self.heard: list[SwitchEvent] = []
        self._observed: list[SwitchEvent] = []  # by another controller of the switch
        self._vswitch = vswitch
        self._address = vswitch.add_bridge(self.name, 3)

    def use(self, work: Work) -> None:
        async def main() -> None:
            addresses = {self.name: self._address}
            async with (
                OpenFlowFabric(addresses, control=self._vswitch.control, report=self.heard.append) as fabric,
                OpenFlowFabric(addresses, report=self._observed.append) as self._observer,
                asyncio.timeout(30),
            ):
                await fabric.wait_connected()
                await self._observer.wait_connected()
                await work(fabric)

        asyncio.run(main())

    def pass_in(self, port: int, *packets: bytes) -> None:
        for at in range(0, len(packets), 500):
            words = [packet.hex() for packet in packets[at : at + 500]]
            self._vswitch.appctl("netdev-dummy/receive", f"{self.name}-{port}", *words)

    def passed_out(self, port: int) -> list[bytes]:
        return self._vswitch.sent(self.name, port)

    async def trace(self) -> object:
        await self._observer.ports(self.name)  # by its answer the observer has heard of all changes before
        meters = self._vswitch.ofctl("dump-meters", self.name).splitlines()[1:]
        return sum(isinstance(event, TableChanged) for event in self._observed), sorted(meters)

    def lose(self) -> None:
        self._vswitch.ofctl("del-flows", self.name)
        self._vswitch.ofctl("del-meters", self.name)


@pytest.fixture(params=["embedded", pytest.param("openflow", marks=pytest.mark.real)])
def live(request: pytest.FixtureRequest) -> Iterator[Live]:
    yield Embedded() if request.param == "embedded" else Real(request.getfixturevalue("open_vswitch"))


async def hears(live: Live, *wanted: PuntedPacket) -> None:
    """Wait until exactly these packets were handed over."""
    async with asyncio.timeout(10):
        while len(packets(live)) < len(wanted):
            await asyncio.sleep(0.002)
    assert packets(live) == [*wanted]


def packets(live: Live) -> list[PuntedPacket]:
    return [event for event in live.heard if isinstance(event, PuntedPacket)]


@pytest.mark.parametrize("punt", [CALLS4, CALLS6], ids=["ipv4", "ipv6"])
def test_datagrams_to_the_address_are_handed_over_whole_and_no_others(live, punt):
    long = datagram(punt, payload=bytes(1232))

    async def work(switches: LiveSwitches) -> None:
        await switches.punt(live.name, [punt, NEIGHBOURS])
        others = [
            datagram(punt, port=7422),
            datagram(punt, off=1),
            datagram(CALLS4 if punt is CALLS6 else CALLS6),
        ]
        live.pass_in(1, *others, datagram(punt))
        live.pass_in(2, HELLO, *others)
        live.pass_in(3, long)
        await hears(
            live,
            PuntedPacket(live.name, 1, datagram(punt)),
            PuntedPacket(live.name, 2, HELLO),
            PuntedPacket(live.name, 3, long),
        )

    live.use(work)
    assert not any(live.passed_out(port) for port in (1, 2, 3))


def test_before_anybody_asks_nothing_is_handed_over(live):
    async def work(switches: LiveSwitches) -> None:
        assert await switches.read(live.name) == ()
        live.pass_in(1, datagram(CALLS6), HELLO)
        await switches.punt(live.name, [CALLS6])
        live.pass_in(2, datagram(CALLS6))
        await hears(live, PuntedPacket(live.name, 2, datagram(CALLS6)))

    live.use(work)


def test_what_is_there_already_stays_as_it_is(live):
    async def first(switches: LiveSwitches) -> None:
        await switches.punt(live.name, [CALLS6, CALLS4, NEIGHBOURS])
        live.pass_in(1, datagram(CALLS6))
        await hears(live, PuntedPacket(live.name, 1, datagram(CALLS6)))

    async def second(switches: LiveSwitches) -> None:
        before = await live.trace()
        await switches.punt(live.name, [NEIGHBOURS, CALLS4, CALLS6])
        assert await live.trace() == before
        await switches.punt(live.name, [NEIGHBOURS])
        assert await live.trace() != before

    live.use(first)
    live.use(second)


def test_entries_become_exactly_those_that_are_asked_for(live):
    async def work(switches: LiveSwitches) -> None:
        await switches.punt(live.name, [CALLS6, NEIGHBOURS])
        await switches.punt(live.name, [CALLS4])
        live.pass_in(1, datagram(CALLS6), HELLO, datagram(CALLS4))
        await hears(live, PuntedPacket(live.name, 1, datagram(CALLS4)))
        await switches.punt(live.name, [])
        live.pass_in(1, datagram(CALLS6), HELLO, datagram(CALLS4))
        await switches.punt(live.name, [NEIGHBOURS])
        live.pass_in(2, HELLO)
        await hears(live, PuntedPacket(live.name, 1, datagram(CALLS4)), PuntedPacket(live.name, 2, HELLO))

    live.use(work)


def test_what_a_switch_forgot_it_is_told_again(live):
    async def work(switches: LiveSwitches) -> None:
        await switches.punt(live.name, [CALLS6, NEIGHBOURS])
        live.lose()
        await switches.punt(live.name, [CALLS6, NEIGHBOURS])
        live.pass_in(1, datagram(CALLS6))
        await hears(live, PuntedPacket(live.name, 1, datagram(CALLS6)))

    live.use(work)


def test_a_flood_is_limited_and_other_entries_keep_their_room(live):
    few = Punt.to("ff02::f10e:c0:1", 7421, rate=50)

    async def work(switches: LiveSwitches) -> None:
        await switches.punt(live.name, [few, NEIGHBOURS])
        began = time.monotonic()
        live.pass_in(1, *[datagram(few)] * 2000)
        live.pass_in(2, HELLO)
        async with asyncio.timeout(20):
            while PuntedPacket(live.name, 2, HELLO) not in live.heard:
                await asyncio.sleep(0.002)
        seconds = time.monotonic() - began
        flooded = len(packets(live)) - 1
        assert 50 <= flooded <= 50 + 50 * (seconds + 1)

    live.use(work)


def test_one_that_floods_a_port_takes_nothing_from_those_at_others(live):
    few = Punt.to("ff02::f10e:c0:1", 7421, rate=50)
    other = datagram(few, payload=b"somebody else's")

    async def work(switches: LiveSwitches) -> None:
        await switches.punt(live.name, with_ports([few], [1, 2]))
        began = time.monotonic()
        live.pass_in(1, *[datagram(few)] * 2000)
        live.pass_in(2, *[other] * 20)
        async with asyncio.timeout(20):
            while packets(live).count(PuntedPacket(live.name, 2, other)) < 20:
                await asyncio.sleep(0.002)
        seconds = time.monotonic() - began
        assert packets(live).count(PuntedPacket(live.name, 1, datagram(few))) <= 50 + 50 * (seconds + 1)
        live.pass_in(3, datagram(few))  # of which no entry speaks by name
        async with asyncio.timeout(20):
            while PuntedPacket(live.name, 3, datagram(few)) not in live.heard:
                await asyncio.sleep(0.002)

    live.use(work)


def test_another_limit_takes_the_place_of_the_old_one(live):
    async def work(switches: LiveSwitches) -> None:
        await switches.punt(live.name, [Punt.to("ff02::f10e:c0:1", 7421, rate=1)])
        await switches.punt(live.name, [Punt.to("ff02::f10e:c0:1", 7421, rate=500)])
        live.pass_in(1, *[datagram(CALLS6)] * 100)
        await hears(live, *[PuntedPacket(live.name, 1, datagram(CALLS6))] * 100)

    live.use(work)


def test_service_entries_are_no_content(live):
    async def work(switches: LiveSwitches) -> None:
        await switches.punt(live.name, [CALLS6])
        assert await switches.read(live.name) == ()
        await switches.apply(live.name, [FlowOp(OpKind.INSTALL, CONTENT)])
        await switches.punt(live.name, [CALLS6, NEIGHBOURS])
        assert await switches.read(live.name) == (CONTENT,)
        await switches.apply(live.name, [FlowOp(OpKind.REMOVE, CONTENT)])
        live.pass_in(3, datagram(CALLS6))
        await hears(live, PuntedPacket(live.name, 3, datagram(CALLS6)))
        await switches.punt(live.name, [])
        assert await switches.read(live.name) == ()

    live.use(work)
    assert not any(isinstance(event, TableChanged) for event in live.heard)


def test_the_same_packets_cannot_have_two_limits(live):
    async def work(switches: LiveSwitches) -> None:
        with pytest.raises(BadInput, match="handed over twice"):
            await switches.punt(live.name, [CALLS6, Punt.to("ff02::f10e:c0:1", 7421, rate=5)])

    live.use(work)


def test_a_packet_is_sent_out_of_the_port_that_is_named(live):
    async def work(switches: LiveSwitches) -> None:
        await switches.send_packet(live.name, 2, datagram(CALLS6))
        async with asyncio.timeout(10):
            while live.passed_out(2) != [datagram(CALLS6)]:
                await asyncio.sleep(0.002)
        assert not live.passed_out(1) and not live.passed_out(3)

    live.use(work)


@pytest.mark.parametrize("group", ["ff0e::/16", "225.128.0.0/9"], ids=["ipv6", "ipv4"])
def test_late_events_are_handed_over_at_the_ports_that_are_named_and_forwarded_elsewhere(live, group):
    late = Punt.within(Prefix.parse(group), 9559, rate=1000)
    events = [
        datagram(late, 9559, off)
        for off in (0, 9, (1 << late.destination.width - late.destination.length) - 1)
    ]
    content = Flow(PrefixMatch(late.destination), 1000, (Output(2),))

    async def work(switches: LiveSwitches) -> None:
        assert await switches.read(live.name) == ()
        await switches.apply(live.name, [FlowOp(OpKind.INSTALL, content)])
        await switches.punt(live.name, with_ports([late, NEIGHBOURS], [1]))
        live.pass_in(1, *events, datagram(late, 9560))
        await hears(live, *(PuntedPacket(live.name, 1, each) for each in events))
        assert await switches.read(live.name) == (content,)
        assert await switches.look(live.name) == ((content,), 0)
        live.pass_in(1, events[0])  # whoever has read the table has left it alone
        events.append(events[0])
        await hears(live, *(PuntedPacket(live.name, 1, each) for each in events))
        live.pass_in(3, events[0])
        assert len(packets(live)) == len(events)
        await switches.punt(live.name, with_ports([NEIGHBOURS], [1]))
        live.pass_in(1, events[0])
        await switches.read(live.name)
        assert len(packets(live)) == len(events)

    live.use(work)


def test_late_events_have_a_limit_for_each_port(live):
    few = Punt.within(OPEN_GROUP, 9559, rate=50)
    event = datagram(few, 9559)

    async def work(switches: LiveSwitches) -> None:
        await switches.punt(live.name, with_ports([few], [1, 2]))
        began = time.monotonic()
        live.pass_in(1, *[event] * 500)
        live.pass_in(2, event)
        async with asyncio.timeout(20):
            while PuntedPacket(live.name, 2, event) not in live.heard or len(packets(live)) < 51:
                await asyncio.sleep(0.002)
        seconds = time.monotonic() - began
        assert len(packets(live)) - 1 <= 50 + 50 * (seconds + 1)

    live.use(work)


def test_a_packet_that_is_injected_meets_what_one_from_that_port_meets(live):
    late = Punt.within(Prefix.parse("ff15::/16"), 9559, rate=1000)
    event, other = datagram(Punt.within(OPEN_GROUP, 9559, rate=1), 9559, 5), datagram(late, 9559)

    async def work(switches: LiveSwitches) -> None:
        assert await switches.read(live.name) == ()
        await switches.apply(live.name, [FlowOp(OpKind.INSTALL, CONTENT)])
        await switches.punt(live.name, with_ports([late], [1]))
        await switches.inject_packet(live.name, 1, event)
        async with asyncio.timeout(10):
            while not live.passed_out(2):
                await asyncio.sleep(0.002)
        await switches.inject_packet(live.name, 1, other)
        await hears(live, PuntedPacket(live.name, 1, other))
        assert len(live.passed_out(2)) == 1 and not live.passed_out(1) and not live.passed_out(3)
        await switches.inject_packet(live.name, 2, event)  # never back to where it came from
        await switches.read(live.name)
        assert len(live.passed_out(2)) == 1

    live.use(work)


@pytest.mark.real
def test_somebody_elses_change_of_a_service_entry_is_told(open_vswitch):
    live = Real(open_vswitch)

    async def work(switches: LiveSwitches) -> None:
        await switches.punt(live.name, [CALLS6])
        assert not any(isinstance(event, TableChanged) for event in live.heard)
        live.lose()
        async with asyncio.timeout(10):
            while TableChanged(live.name, frozenset({0})) not in live.heard:
                await asyncio.sleep(0.002)

    live.use(work)


@pytest.mark.real
def test_a_switch_with_a_full_table_says_why_it_hands_nothing_over(open_vswitch):
    name = f"v{next(numbers)}"
    address = open_vswitch.add_bridge(name, 3, limit=len(OPEN), table=ADMISSION_TABLE)

    async def main() -> None:
        async with OpenFlowFabric({name: address}) as fabric, asyncio.timeout(20):
            await fabric.wait_connected()
            await fabric.apply(name, [FlowOp(OpKind.INSTALL, CONTENT)])
            with pytest.raises(SwitchError, match=f"switch {name} does not hand over.*TABLE_FULL"):
                await fabric.punt(name, [CALLS6])
            await fabric.guard(name, Guard(OPEN_GROUP))
            await fabric.punt(name, [CALLS6])

    asyncio.run(main())
    meters = open_vswitch.ofctl("dump-meters", name)
    assert meters.count("meter=") == 1


def test_embedded_switches_hand_over_what_their_neighbours_send():
    heard: list[SwitchEvent] = []
    network = EmbeddedNetwork(Topology.make([("s1", "s2")], {"h1": "s1"}))
    fabric = EmbeddedFabric(network, heard.append)

    async def main() -> None:
        fabric.connect("s1")
        fabric.connect("s2")
        await fabric.punt("s2", [NEIGHBOURS])
        await fabric.send_packet("s1", 1, HELLO)
        fabric.set_link("s1", "s2", up=False)
        await fabric.send_packet("s1", 1, HELLO)
        fabric.set_link("s1", "s2", up=True)
        await fabric.fence("s2", 1, True)
        await fabric.send_packet("s1", 1, HELLO)

    asyncio.run(main())
    assert [event for event in heard if isinstance(event, PuntedPacket)] == [PuntedPacket("s2", 1, HELLO)]
