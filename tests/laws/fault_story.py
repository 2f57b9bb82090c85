"""Random requests and faults on embedded switches, with a proof after every single batch."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

from hypothesis import strategies as st

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.dispatcher import Dispatcher
from flowsieve.control.request import Op, Request
from flowsieve.control.state import ControlState
from flowsieve.flow.diff import FlowOp
from flowsieve.flow.entry import Flow, content_flow
from flowsieve.flow.interest import Interest
from flowsieve.flow.proof.verify import verify
from flowsieve.flow.table_chain import met
from flowsieve.flow.view import NetworkView
from flowsieve.header.encoding import encoding_of
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.network.mend import Edge
from flowsieve.network.topology import Topology
from flowsieve.network.tree import TreeMap
from flowsieve.southbound.embedded.network import EmbeddedNetwork
from flowsieve.testing.embedded_fabric import EmbeddedFabric

SCHEMA = Schema.parse({"a": {"type": "int", "min": 0, "max": 15}})
PLAN = RegularPlan.make(SCHEMA)
ENCODING = encoding_of("ipv6")
SET_BITS = 4  # of labels in small networks
LABELS = [  # for all hosts of each of the first sets
    0xFF1E << 112 | number << 112 - SET_BITS | (1 << 112 - SET_BITS) - 1 for number in range(3)
]


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

    @property
    def down(self) -> frozenset[Edge]:
        return frozenset(self._down)

    def check(self) -> None:
        topology = self.network.topology
        tables = {name: _for_dz(self.network.read(name)) for name in topology.switches}
        everything = Filter.parse("True", SCHEMA)
        offers = [
            Interest(host, host, everything, PLAN.cover(everything, 0, None)) for host in topology.hosts
        ]
        verdict = verify(NetworkView(topology, PLAN, ENCODING, tables, offers, [], self.closed))
        assert not verdict.duplicates and not verdict.loops, verdict
        for label in LABELS:
            for host in topology.hosts:
                self._check_label(host, label)

    def _check_label(self, host: str, label: int) -> None:
        """Follow a packet for all hosts of a set over the links that carry something."""
        topology, got = self.network.topology, Counter[str]()
        arrivals = [(topology.hosts[host], host)]  # where, and from whom; it grows as it is gone through
        for switch, came_from in arrivals:
            near = topology.neighbours(switch)
            for flow in met(self.network.read(switch), 6, label):
                for to in (near[port - 1] for port in flow.ports):
                    if to in topology.hosts:
                        got[to] += to != came_from
                    elif to != came_from and frozenset((switch, to)) not in self.closed:
                        arrivals.append((to, switch))
            assert len(arrivals) <= 2 * len(topology.links) + 1, f"{label:x} of {host} loops"
        assert not got or max(got.values()) <= 1, f"{label:x} of {host} comes twice: {got}"


def _for_dz(flows: tuple[Flow, ...]) -> tuple[Flow, ...]:
    return tuple(flow for flow in flows if ENCODING.owns(flow.match))


class Story:
    """Random requests and faults, one after the other or at once; `events` are what may happen."""

    events: Sequence[str] = ("add", "add", "end", "cut", "mute", "restart", "pull", "plug")

    def __init__(self, topology: Topology, data: st.DataObject) -> None:
        self.data, self.topology = data, topology
        trees = TreeMap.spread(topology, 2) if data.draw(st.booleans()) else None
        self.fabric = WatchedFabric(EmbeddedNetwork(topology), lambda event: self.dispatcher.heard(event))
        state = ControlState(topology, PLAN, trees)
        self.dispatcher = Dispatcher(state, self.fabric, ENCODING, patience=60, drain=0)
        self.pending: list[asyncio.Task[object]] = []
        self.number = 0

    def pick(self, names: Sequence[str]) -> str:
        return self.data.draw(st.sampled_from(sorted(names)))

    def step(self) -> None:
        """Do one thing, without waiting for what follows from it."""
        what = self.data.draw(st.sampled_from(self.events))
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
            self.ask(Request(Op.UNSUBSCRIBE, interest.id, interest.endpoint))
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
            while not (all(task.done() for task in self.pending) and self.at_rest):
                self.recover()
                await asyncio.sleep(0.001)
            await asyncio.gather(*self.pending)
            await self.check()

    @property
    def at_rest(self) -> bool:
        """Whether nothing is under way any more: what is may still meet a switch that will lose its answer."""
        return self.dispatcher.mended and not self.dispatcher.troubles

    def recover(self) -> None:
        for switch in self.topology.switches:
            self.fabric.connect(switch)

    async def check(self) -> None:
        await self.dispatcher.settled()
        assert (await self.dispatcher.verify()).holds
        state = self.dispatcher.state
        for switch in self.topology.switches:
            aim = {content_flow(ENCODING, dz, ports) for dz, ports in state.table(switch).items()}
            assert set(self.fabric.network.read(switch)) == aim
