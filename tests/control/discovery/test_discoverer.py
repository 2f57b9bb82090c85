"""Discovery over live switches: a slow switch holds up no other, and differences are logged once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

import pytest

from flowsieve.control.discovery.discoverer import PUNTS, Discoverer
from flowsieve.errors import SwitchError
from flowsieve.network.names import Names, SwitchId
from flowsieve.network.topology import Topology
from flowsieve.southbound.fabric import Connected, Disconnected, PortChanged, PuntedPacket, TableChanged

NETWORK = Topology.make([("s1", "s2"), ("s2", "s3")], {"ann": "s1"})
INTERVAL = 0.02
PATIENCE = 10.0


class Wires:
    """Switches that pass frames on to the discoverer of the other end."""

    def __init__(self, network: Topology) -> None:
        self.network = network
        self.stuck: set[str] = set()
        self.broken: set[str] = set()
        self.meanwhile: Callable[[str], None] = lambda switch: None  # while ports are asked for
        self.discoverer: Discoverer

    async def ports(self, switch: str) -> Mapping[int, bool]:
        there = dict.fromkeys(range(1, len(self.network.neighbours(switch)) + 1), True)
        self.meanwhile(switch)
        await asyncio.sleep(0)
        return there

    async def send_packet(self, switch: str, port: int, data: bytes) -> None:
        if switch in self.stuck:
            await asyncio.Event().wait()
        if switch in self.broken:
            raise SwitchError(f"switch {switch} is not connected")
        near = self.network.neighbour(switch, port)
        if near in self.network.switches:
            self.discoverer.heard(PuntedPacket(near, self.network.port(near, switch), data))


def made(wires: Wires, described: Topology | None = NETWORK) -> Discoverer:
    names = Names({SwitchId(f"id of {each}"): each for each in wires.network.switches if each != "berlin"})
    wires.discoverer = Discoverer(wires, names, lambda: described, interval=INTERVAL)  # type: ignore[arg-type]
    return wires.discoverer


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not true():
            await asyncio.sleep(INTERVAL / 4)


def test_a_network_is_found_and_as_described() -> None:
    async def play() -> None:
        async with made(Wires(NETWORK)) as discoverer:
            for switch in NETWORK.switches:
                discoverer.heard(Connected(switch))
            await until(lambda: not discoverer.differences)
            assert len(discoverer.findings.links) == 2

    asyncio.run(play())


def test_a_switch_that_is_stuck_or_fails_holds_up_no_other() -> None:
    async def play() -> None:
        wires = Wires(Topology.make([("s1", "s2"), ("s3", "s4"), ("s5", "s6")], {}))
        wires.stuck, wires.broken = {"s3"}, {"s5"}
        async with made(wires) as discoverer:
            for switch in wires.network.switches:
                discoverer.heard(Connected(switch))
            await until(lambda: bool(discoverer.findings.links))
            assert [sorted(link.edge) for link in discoverer.findings.links] == [["s1", "s2"]]

    asyncio.run(play())


def test_a_switch_that_went_and_came_back_is_found_again() -> None:
    async def play() -> None:
        wires = Wires(NETWORK)
        async with made(wires) as discoverer:
            for switch in NETWORK.switches:
                discoverer.heard(Connected(switch))
            await until(lambda: len(discoverer.findings.links) == 2)
            discoverer.heard(Disconnected("s2", "it died"))
            assert discoverer.findings.links == ()
            assert discoverer.findings.switches == ("s1", "s3")
            discoverer.heard(Connected("s2"))
            await until(lambda: len(discoverer.findings.links) == 2)

    asyncio.run(play())


def test_a_port_that_goes_down_while_the_ports_are_asked_for_stays_down() -> None:
    async def play() -> None:
        wires = Wires(NETWORK)
        async with made(wires) as discoverer:
            wires.meanwhile = lambda switch: discoverer.heard(PortChanged(switch, 1, up=False))
            discoverer.heard(Connected("s2"))
            await until(lambda: "s2" in discoverer.findings.switches)
            ports = [port for port, _ in discoverer.discovery.beacons("s2", 0.0)]
            assert ports == [2]

    asyncio.run(play())


def test_what_is_not_as_described_is_logged_once_and_once_more_when_it_is_right(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "flowsieve.control.discovery.discoverer")

    def logged(start: str) -> list[str]:
        return [text for text in caplog.messages if text.startswith(start)]

    async def play() -> None:
        wires = Wires(NETWORK)
        async with made(wires) as discoverer:
            for switch in ("s1", "s2"):
                discoverer.heard(Connected(switch))
            await until(lambda: bool(logged("not as configured: switch s3 is not connected")))
            await asyncio.sleep(10 * INTERVAL)
            discoverer.heard(Connected("s3"))
            await until(lambda: bool(logged("no longer so: switch s3 is not connected")))

    asyncio.run(play())
    assert len(logged("not as configured: switch s3")) == 1
    assert len(logged("no longer so: switch s3")) == 1


def test_a_switch_whose_identity_nobody_knows_is_left_out_and_the_others_go_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def play() -> None:
        network = Topology.make([("s1", "s2"), ("s2", "berlin")], {})
        async with made(Wires(network)) as discoverer:
            for switch in network.switches:
                discoverer.heard(Connected(switch))
            await until(lambda: len(discoverer.findings.links) == 1)

    asyncio.run(play())
    assert any("berlin is left out of discovery" in text for text in caplog.messages)


def test_what_comes_before_the_beginning_and_after_the_end_does_no_harm() -> None:
    async def play() -> None:
        discoverer = made(Wires(NETWORK))
        discoverer.heard(Connected("s1"))
        async with discoverer:
            discoverer.heard(TableChanged("s1"))
            discoverer.heard(PuntedPacket("s1", 1, b""))
            discoverer.heard(PortChanged("s9", 1, up=True))
        discoverer.heard(Connected("s1"))
        assert discoverer.discovery.findings(0.0).switches == ()

    asyncio.run(play())


def test_the_key_is_another_at_each_start() -> None:
    async def play() -> None:
        frames = []
        for _ in range(2):
            async with made(Wires(NETWORK)) as discoverer:
                discoverer.discovery.connected("s1", {1: True})
                frames += discoverer.discovery.beacons("s1", 0.0)
        assert frames[0] != frames[1]

    asyncio.run(play())


def test_switches_are_asked_for_lldp_alone() -> None:
    assert [punt.ethertype for punt in PUNTS] == [0x88CC]
