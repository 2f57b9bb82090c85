"""Trees that follow the cabling: fenced first, then mended, then opened."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Any

from livenet import SCHEMA

from flowsieve.control.core import Core
from flowsieve.control.memory.journal import NoJournal
from flowsieve.control.memory.scribe import Scribe
from flowsieve.control.repair.damping import DampingSettings
from flowsieve.control.repair.failover import Failover
from flowsieve.control.repair.mender import Mender
from flowsieve.control.state import ControlState, Outcome
from flowsieve.control.switches.fleet import Fleet
from flowsieve.errors import SwitchError, TableFull
from flowsieve.flow.diff import Change
from flowsieve.header.encoding import encoding_of
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.network.generators import generate
from flowsieve.network.mend import Edge
from flowsieve.southbound.embedded.network import EmbeddedNetwork
from flowsieve.testing.embedded_fabric import EmbeddedFabric

A_LINK = frozenset(("s0", "s1"))


class Repair:
    """A mender over embedded switches, and what it did, in order."""

    def __init__(self, damping: DampingSettings | None = None) -> None:
        self.topology = generate("ring:4")
        self.state = ControlState(self.topology, RegularPlan.make(SCHEMA))
        self.fabric = EmbeddedFabric(EmbeddedNetwork(self.topology), lambda event: None)
        self.told: list[tuple[str, object]] = []
        self.followed = asyncio.Event()
        self.followed.set()
        self.core = Core(self.state, self.fabric, encoding_of("ipv6"), Scribe(NoJournal()), watcher=self)
        fleet = Followers(self)
        self.mender = Mender(self.core, fleet, Failover(self.core, fleet), damping)
        self._decide, self.state.rewire = self.state.rewire, self._rewire  # type: ignore[method-assign]

    def set(self, up: bool, edge: Edge = A_LINK) -> None:
        for end in sorted(edge):
            (other,) = edge - {end}
            self.mender.changed(end, self.topology.port(end, other), up)

    async def until(self, what: str, count: int = 1) -> None:
        while sum(name == what for name, _ in self.told) < count:
            await asyncio.sleep(0.001)

    async def reached(self) -> None:
        await self.followed.wait()

    def _rewire(self, down: Collection[Edge], fenced: Collection[Edge]) -> Outcome:
        self.told.append(("rewired", (down, self.mender.fences.closed)))
        return self._decide(down, fenced)

    # Watches.

    def mended(self, seconds: float) -> None:
        self.told.append(("mended", seconds >= 0))

    def repaired(self, switch: str, operations: int) -> None:
        raise AssertionError("nobody has changed a table")


class Followers(Fleet):
    """Switches that can all be asked, and have followed when a test says so."""

    def __init__(self, repair: Repair) -> None:
        super().__init__(repair.core)
        self.reachable.update(repair.topology.switches)
        self._repair = repair

    def __getitem__(self, switch: str) -> Any:
        return self

    async def reached(self, switches: object = ()) -> None:  # type: ignore[override]
        await self._repair.reached()

    def ask(self, changes: Mapping[str, list[Change]]) -> None:
        pass


@asynccontextmanager
async def at_work(repair: Repair) -> AsyncIterator[Repair]:
    for switch in repair.topology.switches:
        repair.fabric.connect(switch)
    async with repair.core.tasks as tasks:
        tasks.start(repair.core.scribe.run())
        tasks.start(repair.mender.run())
        async with asyncio.timeout(10):
            yield repair


def test_an_edge_that_dies_is_fenced_before_the_trees_do_without_it() -> None:
    async def story() -> None:
        async with at_work(Repair()) as repair:
            (edge,) = [frozenset(each) for each in repair.state.trees.trees[0].edges][:1]
            repair.set(False, edge)
            assert not repair.mender.whole
            await repair.until("mended")
            ((_, (down, closed)),) = [each for each in repair.told if each[0] == "rewired"]
            assert down == closed == {edge}
            assert repair.mender.whole

    asyncio.run(story())


def test_a_fence_stays_until_both_ends_have_followed() -> None:
    async def story() -> None:
        async with at_work(Repair()) as repair:
            (edge,) = [frozenset(each) for each in repair.state.trees.trees[0].edges][:1]
            repair.set(False, edge)
            await repair.until("mended")
            repair.followed.clear()
            repair.set(True, edge)
            await repair.until("mended", 2)
            await asyncio.sleep(0.02)
            assert repair.mender.fences.closed == {edge}
            repair.followed.set()
            while repair.mender.fences.closed:
                await asyncio.sleep(0.001)
            assert repair.mender.whole

    asyncio.run(story())


def test_a_link_that_comes_and_goes_is_left_out_until_it_is_calm() -> None:
    async def story() -> None:
        settings = DampingSettings(half_life_seconds=0.05, longest_seconds=0.2)
        async with at_work(Repair(settings)) as repair:
            for up in (False, True, False, True, False, True):
                repair.set(up)
            assert repair.mender.suppressed == {A_LINK}
            while repair.state.down != {A_LINK}:
                await asyncio.sleep(0.001)
            while repair.mender.suppressed or repair.state.down or not repair.mender.whole:
                await asyncio.sleep(0.001)

    asyncio.run(story())


def test_what_ports_report_while_they_are_read_is_newer_than_what_is_read() -> None:
    async def story() -> None:
        async with at_work(Repair()) as repair:
            repair.mender.connected("s0")
            ports = await repair.mender.read("s0")
            port = repair.topology.port("s0", "s1")
            assert ports[port]
            repair.mender.changed("s0", port, False)
            repair.mender.told("s0", ports)
            await repair.until("mended")
            assert repair.state.down == {A_LINK}

    asyncio.run(story())


def test_where_a_fence_cannot_be_made_the_trees_wait() -> None:
    async def story() -> None:
        async with at_work(Repair()) as repair:
            (edge,) = [frozenset(each) for each in repair.state.trees.trees[0].edges][:1]
            fence, tried = repair.fabric.fence, 0

            async def failing(switch: str, port: int, closed: bool) -> None:
                nonlocal tried
                tried += 1
                if tried <= 4:
                    raise SwitchError("not now")
                await fence(switch, port, closed)

            repair.fabric.fence = failing  # type: ignore[method-assign]
            repair.set(False, edge)
            await repair.until("mended")
            assert tried > 4
            *rewired, last = (down_closed for name, down_closed in repair.told if name == "rewired")
            assert last == ({edge}, {edge}) and {closed for _, closed in rewired} <= {frozenset()}
            assert repair.told[-1] == ("mended", True)

    asyncio.run(story())


def test_a_fence_stays_where_the_table_of_an_end_does_not_fit_and_is_opened_when_it_does() -> None:
    async def story() -> None:
        async with at_work(Repair()) as repair:
            (edge,) = [frozenset(each) for each in repair.state.trees.trees[0].edges][:1]
            repair.set(False, edge)
            await repair.until("mended")
            tried = 0

            async def full() -> None:
                nonlocal tried
                tried += 1
                if tried <= 4:
                    raise TableFull(switch="s0", needed=2, capacity=1)

            repair.reached = full  # type: ignore[method-assign]
            repair.set(True, edge)
            while repair.mender.fences.closed:
                await asyncio.sleep(0.001)
            assert tried > 4

    asyncio.run(story())
