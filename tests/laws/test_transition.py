"""Whatever happens while a network goes over to another index: nothing is lost, doubled or goes round meanwhile."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

from fault_story import ENCODING, PLAN, SCHEMA, Story, WatchedFabric
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import topologies

from flowsieve.content.filter import Filter
from flowsieve.control.dispatcher import Dispatcher
from flowsieve.control.live_view import Installed, view_of
from flowsieve.control.request import Op, Request
from flowsieve.control.state import ControlState, Settings
from flowsieve.errors import FlowsieveError
from flowsieve.flow.entry import content_flow
from flowsieve.flow.interest import Interest
from flowsieve.flow.proof.proving import about, proved
from flowsieve.flow.proof.verify import verify
from flowsieve.flow.view import NetworkView
from flowsieve.header.encoding import PrefixEncoding
from flowsieve.header.tag import POOLS
from flowsieve.index.plan import IndexPlan
from flowsieve.index.plans.learned import LevelwisePlan
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.network.topology import Topology
from flowsieve.network.tree import SpanningTree, TreeMap
from flowsieve.southbound.embedded.network import EmbeddedNetwork

PLANS = (
    PLAN,
    RegularPlan.make(SCHEMA, bits=2),
    LevelwisePlan.make(SCHEMA, {"a": [3, 7, 8]}, order=["a", "a"]),
)


async def at_once(make: Callable[..., Any], *given: object) -> Any:
    """In no thread: what a story draws does not depend on how fast one is."""
    return make(*given)


class SlowPublishers:
    """Publishers that go over one after the other, each in its own time."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)
        self.names: list[str] = []

    def behind(self, version: int) -> frozenset[str]:
        return frozenset()

    unaware = behind

    def hosts(self, sessions: frozenset[str]) -> frozenset[str]:
        return frozenset()

    async def reached(self, version: int, seconds: float) -> frozenset[str]:
        for _ in self.names:
            for _ in range(self._dice.randrange(4)):
                await asyncio.sleep(0)
        return frozenset()


class WatchedBothWays(WatchedFabric):
    """Proves after every change, under each tag there is, that nothing could loop or arrive twice."""

    def check(self) -> None:
        topology = self.network.topology
        tables = {name: self.network.read(name) for name in topology.switches}
        everything = Filter.parse("True", SCHEMA)
        for tag in POOLS["ipv6"]:
            for plan in PLANS[:1]:
                offers = [
                    Interest(host, host, everything, plan.cover(everything, 0)) for host in topology.hosts
                ]
                view = NetworkView(topology, plan, PrefixEncoding(tag), tables, offers, [], self.closed)
                verdict = verify(view)
                assert not verdict.duplicates and not verdict.loops, verdict
        self.owed()

    def owed(self) -> None:
        """Somebody may look whether all arrives that is owed."""


class TransitionStory(Story):
    """Faults and requests at random, while the network goes over to other plans and trees, again and again."""

    def __init__(self, topology: Topology, data: st.DataObject) -> None:
        super().__init__(topology, data)
        self.fabric = WatchedBothWays(EmbeddedNetwork(topology), lambda event: self.dispatcher.heard(event))
        self.publishers = SlowPublishers(data.draw(st.integers(0, 99)))
        self.publishers.names = list(topology.hosts)
        self.control(self.dispatcher.state)
        self.ways: list[asyncio.Task[object]] = []

    def control(self, state: ControlState) -> None:
        self.dispatcher = Dispatcher(state, self.fabric, ENCODING, patience=60, drain=0)
        self.dispatcher.transition.holders = self.publishers  # type: ignore[assignment]
        self.dispatcher.transition.retirement._holders = self.publishers  # type: ignore[assignment]
        self.dispatcher.transition.in_thread = at_once

    def step(self) -> None:
        if self.data.draw(st.integers(0, 3)) == 0 and all(way.done() for way in self.ways):
            self.begin()
            return
        super().step()

    def begin(self) -> None:
        """Go over to a plan, in one of two ways, perhaps along another tree."""
        plan, carry = self.data.draw(st.sampled_from(PLANS)), self.data.draw(st.integers(0, 3)) > 0
        trees = None
        if self.data.draw(st.booleans()) and not self.dispatcher.state.down:
            root = self.data.draw(st.sampled_from(self.topology.switches))
            trees = TreeMap.single(SpanningTree.of(self.topology, root))
        self.ways.append(asyncio.create_task(self.go_over(plan, carry, trees)))

    async def go_over(self, plan: IndexPlan, carry: bool, trees: TreeMap | None) -> None:
        try:
            await self.dispatcher.transition.go_over(plan, carry=carry, trees=trees)
        except FlowsieveError:
            assert self.dispatcher.state.crossing is None

    @property
    def at_rest(self) -> bool:
        return super().at_rest and all(way.done() for way in self.ways)

    async def check(self) -> None:
        await asyncio.gather(*self.ways)
        await self.dispatcher.settled()
        verdict = await self.dispatcher.verify()
        assert verdict.holds, verdict
        state, encoding = self.dispatcher.state, self.dispatcher.encoding
        assert state.crossing is None
        for switch in self.topology.switches:
            aim = {content_flow(encoding, dz, ports) for dz, ports in state.table(switch).items()}
            assert set(self.fabric.network.read(switch)) == aim


@settings(max_examples=60)
@given(topologies(), st.data())
def test_faults_at_any_moment_of_a_transition_leave_nothing_wrong(
    topology: Topology, data: st.DataObject
) -> None:
    asyncio.run(TransitionStory(topology, data).run())


class OwedStory(TransitionStory):
    """Switches are cut off and lose answers, but go on forwarding: so all that is owed arrives at every moment."""

    def __init__(self, topology: Topology, data: st.DataObject) -> None:
        super().__init__(topology, data)
        self.fabric.owed = self.owed  # type: ignore[method-assign]
        self.asked: dict[str, asyncio.Task[object]] = {}

    def step(self) -> None:
        what = self.data.draw(st.sampled_from(["add", "add", "add", "end", "cut", "mute", "go", "go"]))
        if what == "go":
            if all(way.done() for way in self.ways):
                self.begin()
        elif what in ("cut", "mute"):
            switch = self.pick(self.topology.switches)
            (self.fabric.disconnect if what == "cut" else self.fabric.lose_answer)(switch)
        elif what == "end" and self.acknowledged:
            name = self.pick(list(self.acknowledged))
            interest = self.dispatcher.state.subscriptions.get(name)
            if interest is not None:
                del self.asked[name]
                self.ask(Request(Op.UNSUBSCRIBE, name, interest.endpoint))
        else:
            self.number += 1
            low = self.data.draw(st.integers(0, 15))
            text = f"{low} <= a <= {self.data.draw(st.integers(low, 15))}"
            op = Op.ADVERTISE if self.number % 3 == 1 else Op.SUBSCRIBE
            host = self.pick(list(self.topology.hosts))
            self.ask(Request(op, str(self.number), host, Filter.parse(text, SCHEMA)))
            self.asked[str(self.number)] = self.pending[-1]

    @property
    def acknowledged(self) -> set[str]:
        return {name for name, task in self.asked.items() if task.done() and not task.exception()}

    def owed(self) -> None:
        dispatcher, there = self.dispatcher, self.acknowledged
        core, fleet = dispatcher._core, dispatcher._fleet
        tables = {switch: self.fabric.network.read(switch) for switch in self.topology.switches}
        view = view_of(core, fleet, Installed(tables, {}, {}, ()), None)
        state = dispatcher.state
        offers = [each for each in state.advertisements.values() if each.id in there]
        wants = [each for each in state.subscriptions.values() if each.id in there]
        verdict = proved(about(view, offers, wants))
        assert verdict.holds, (state.crossing and state.crossing.phase, verdict)


@settings(max_examples=60)
@given(topologies(), st.data())
def test_all_that_is_owed_arrives_at_every_moment_of_a_transition(
    topology: Topology, data: st.DataObject
) -> None:
    asyncio.run(OwedStory(topology, data).run())


class TightWay(TransitionStory):
    """Switches have little room: tables are cut on the way as well, and never hold more than there is room for."""

    def __init__(self, topology: Topology, data: st.DataObject) -> None:
        super().__init__(topology, data)
        room = data.draw(st.integers(4, 8))
        self.fabric = WatchedBothWays(
            EmbeddedNetwork(topology, room), lambda event: self.dispatcher.heard(event)
        )
        self.control(ControlState(topology, PLAN, None, Settings(capacity=room)))


@settings(max_examples=40)
@given(topologies(), st.data())
def test_nor_do_they_where_tables_are_small(topology: Topology, data: st.DataObject) -> None:
    asyncio.run(TightWay(topology, data).run())
