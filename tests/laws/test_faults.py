"""Whatever fails while requests come and go: nothing loops or doubles meanwhile, and all is right afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from networks import topologies

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.dispatcher import Dispatcher
from flowsieve.control.request import Op, Request
from flowsieve.control.state import ControlState
from flowsieve.flow.diff import FlowOp
from flowsieve.flow.entry import content_flow
from flowsieve.flow.interest import Interest
from flowsieve.flow.verify import verify
from flowsieve.header.tag import POOLS
from flowsieve.index.regular import RegularPlan
from flowsieve.network.topology import Topology
from flowsieve.network.tree import TreeMap
from flowsieve.southbound.embedded import EmbeddedNetwork
from flowsieve.southbound.embedded_fabric import EmbeddedFabric

SCHEMA = Schema.parse({"a": {"type": "int", "min": 0, "max": 15}})
PLAN = RegularPlan.make(SCHEMA)
TAG = POOLS["ipv6"][0]


class WatchedFabric(EmbeddedFabric):
    """Proves after every change that no packet could loop or arrive twice on the links that carry any."""

    async def apply(self, switch: str, ops: Sequence[FlowOp]) -> None:
        try:
            await super().apply(switch, ops)
        finally:
            self.check()

    async def fence(self, switch: str, port: int, closed: bool) -> None:
        await super().fence(switch, port, closed)
        self.check()

    def set_link(self, a: str, b: str, up: bool) -> None:
        super().set_link(a, b, up)
        self.check()

    def check(self) -> None:
        topology = self.network.topology
        tables = {name: self.network.read(name) for name in topology.switches}
        everything = Filter.parse("True", SCHEMA)
        offers = [
            Interest(host, host, everything, PLAN.cover(everything, 0, None)) for host in topology.hosts
        ]
        verdict = verify(topology, PLAN, TAG, tables, offers, [], self.closed)
        assert not verdict.duplicates and not verdict.loops, verdict


class Story:
    """Random requests and faults, one after the other or at once."""

    def __init__(self, topology: Topology, data: st.DataObject) -> None:
        self.data, self.topology = data, topology
        trees = TreeMap.spread(topology, 2) if data.draw(st.booleans()) else None
        self.fabric = WatchedFabric(EmbeddedNetwork(topology), lambda event: self.dispatcher.heard(event))
        state = ControlState(topology, PLAN, trees)
        self.dispatcher = Dispatcher(state, self.fabric, TAG, patience=60, drain=0)
        self.pending: list[asyncio.Task[object]] = []
        self.number = 0

    def pick(self, names: Sequence[str]) -> str:
        return self.data.draw(st.sampled_from(sorted(names)))

    def step(self) -> None:
        """Do one thing, without waiting for what follows from it."""
        what = self.data.draw(
            st.sampled_from(["add", "add", "end", "cut", "mute", "restart", "pull", "plug"])
        )
        state, switch = self.dispatcher.state, self.pick(self.topology.switches)
        if what == "add":
            self.number += 1
            low = self.data.draw(st.integers(0, 15))
            text = f"{low} <= a <= {self.data.draw(st.integers(low, 15))}"
            op = self.data.draw(st.sampled_from([Op.ADVERTISE, Op.SUBSCRIBE]))
            host = self.pick(list(self.topology.hosts))
            self.ask(Request(op, str(self.number), host, Filter.parse(text, SCHEMA)))
        elif what == "end" and state.subscriptions:
            interest = state.subscriptions[self.pick(list(state.subscriptions))]
            self.ask(Request(Op.UNSUBSCRIBE, interest.id, interest.host))
        elif what == "cut":
            self.fabric.disconnect(switch)
        elif what == "mute":
            self.fabric.lose_answer(switch)
        elif what == "restart":
            self.fabric.restart(switch)
        elif self.topology.links:
            link = self.data.draw(st.sampled_from(self.topology.links))
            self.fabric.set_link(link.a, link.b, up=what == "plug")

    def ask(self, request: Request) -> None:
        if request.op.adding or not any(task.get_name() == request.id for task in self.pending):
            self.pending.append(asyncio.create_task(self.dispatcher.submit(request), name=request.id))

    async def run(self) -> None:
        async with asyncio.timeout(20), self.dispatcher:
            self.recover()
            for _ in range(self.data.draw(st.integers(1, 12))):
                self.step()
                for _ in range(self.data.draw(st.integers(0, 12))):
                    await asyncio.sleep(0)
            while not all(task.done() for task in self.pending) or self.dispatcher.troubles:
                self.recover()
                await asyncio.sleep(0.001)
            await asyncio.gather(*self.pending)
            await self.check()

    def recover(self) -> None:
        for switch in self.topology.switches:
            self.fabric.connect(switch)

    async def check(self) -> None:
        await self.dispatcher.settled()
        assert (await self.dispatcher.verify()).holds
        state = self.dispatcher.state
        for switch in self.topology.switches:
            aim = {content_flow(TAG, dz, ports) for dz, ports in state.table(switch).items()}
            assert set(self.fabric.network.read(switch)) == aim


@given(topologies(), st.data())
def test_faults_at_any_moment_leave_nothing_wrong(topology: Topology, data: st.DataObject) -> None:
    asyncio.run(Story(topology, data).run())
