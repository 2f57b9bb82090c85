"""A network that is found: links that are down are forgotten, whatever else is the matter."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from flowsieve.content.schema import Schema
from flowsieve.control.discovery.explorer import Explorer
from flowsieve.control.dispatcher import Dispatcher
from flowsieve.control.state import ControlState
from flowsieve.errors import SwitchError, TableFull
from flowsieve.header.encoding import encoding_of
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.network.mend import Edge
from flowsieve.network.topology import Topology
from flowsieve.southbound.embedded.network import EmbeddedNetwork
from flowsieve.southbound.fabric import PortChanged
from flowsieve.southbound.numbered import NumberedSwitches
from flowsieve.testing.embedded_fabric import EmbeddedFabric

PLAN = RegularPlan.make(Schema.parse({"a": {"type": "int", "min": 0, "max": 15}}))
RING = Topology.make(
    [("s1", "s2"), ("s2", "s3"), ("s3", "s1"), ("s3", "s4"), ("s4", "s1")], {"h1": "s1", "h2": "s2"}
)
ONE, OTHER = frozenset(("s1", "s2")), frozenset(("s3", "s4"))


class Ports(EmbeddedFabric):
    """Switches of which some ports are not there, or cannot be set."""

    def __init__(self) -> None:
        super().__init__(EmbeddedNetwork(RING), lambda event: None)
        self.absent: set[tuple[str, int]] = set()
        self.stuck: set[tuple[str, int]] = set()
        self.switches = NumberedSwitches(self, lambda: self.dispatcher.state.topology)
        self.dispatcher = Dispatcher(ControlState(RING, PLAN), self.switches, encoding_of("ipv6"), drain=0)
        self.report = self.switches.translated(self.dispatcher.heard)
        self.explorer = Explorer(
            self.dispatcher,
            None,  # type: ignore[arg-type]
            lambda topology: None,
            links=True,
            hosts=True,
        )

    async def fence(self, switch: str, port: int, closed: bool) -> None:
        if (switch, port) in self.stuck:
            raise SwitchError(f"port {port} of switch {switch} is not set")
        if (switch, port) not in self.absent:
            await super().fence(switch, port, closed)

    async def pull(self, *edges: Edge) -> None:
        """Have links go down, and wait until the trees do without them."""
        for edge in edges:
            self.set_link(*sorted(edge), up=False)
        while not (self.dispatcher.mended and self.dispatcher.state.down == frozenset(edges)):
            await asyncio.sleep(0.001)


@asynccontextmanager
async def at_work() -> AsyncIterator[Ports]:
    ports = Ports()
    async with asyncio.timeout(10), ports.dispatcher:
        for switch in RING.switches:
            ports.connect(switch)
        await ports.dispatcher.settled()
        yield ports


def test_links_are_forgotten_though_a_switch_elsewhere_is_away() -> None:
    async def story() -> None:
        async with at_work() as ports:
            await ports.pull(ONE)
            ports.disconnect("s4")
            assert await ports.explorer.forget(1.0) == {ONE}

    asyncio.run(story())


def test_a_link_with_an_end_that_is_away_is_kept() -> None:
    async def story() -> None:
        async with at_work() as ports:
            await ports.pull(ONE, OTHER)
            ports.disconnect("s4")
            assert await ports.explorer.forget(1.0) == {ONE}
            assert ports.dispatcher.state.down == {OTHER}

    asyncio.run(story())


def test_one_fence_that_cannot_be_opened_keeps_no_other_link() -> None:
    async def story() -> None:
        async with at_work() as ports:
            await ports.pull(ONE, OTHER)
            ports.stuck = {("s1", RING.port("s1", "s2"))}
            assert await ports.explorer.forget(1.0) == {OTHER}

    asyncio.run(story())


@pytest.mark.parametrize("error", [TableFull(switch="s1", needed=2, capacity=1), SwitchError("no")])
def test_what_cannot_be_settled_forgets_nothing_and_ends_nothing(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*switches: Any) -> None:
        raise error

    async def story() -> None:
        async with at_work() as ports:
            await ports.pull(ONE)
            monkeypatch.setattr(ports.dispatcher, "settled", fails)
            assert await ports.explorer.forget(1.0) == frozenset()

    asyncio.run(story())


def test_links_whose_ports_are_gone_are_mended_and_forgotten_and_a_switch_without_them_connects() -> None:
    async def story() -> None:
        async with at_work() as ports:
            ports.absent = {("s1", RING.port("s1", "s2")), ("s2", RING.port("s2", "s1"))}
            await ports.pull(ONE)
            ports.disconnect("s1")
            ports.connect("s1")
            await ports.dispatcher.settled()
            assert await ports.explorer.forget(1.0) == {ONE}

    asyncio.run(story())


def test_a_port_that_was_not_there_is_fenced_when_it_comes_back() -> None:
    async def story() -> None:
        async with at_work() as ports:
            near, far = RING.port("s1", "s2"), RING.port("s2", "s1")
            ports.absent = {("s1", near)}
            await ports.pull(ONE)
            assert near not in await ports.fences("s1")
            ports.absent.clear()
            ports.report(PortChanged("s1", near, True))  # the other end is still down
            while near not in await ports.fences("s1"):
                await asyncio.sleep(0.001)
            ports.set_link("s1", "s2", up=True)
            while ports.dispatcher.fences.closed:
                await asyncio.sleep(0.001)
            await ports.dispatcher.settled()
            assert near not in await ports.fences("s1") and far not in await ports.fences("s2")

    asyncio.run(story())
