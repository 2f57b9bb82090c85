"""A dispatcher over embedded switches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.dispatcher import Dispatcher
from flowsieve.control.memory.journal import Journal
from flowsieve.control.request import Op, Request
from flowsieve.control.state import ControlState, Settings
from flowsieve.flow.entry import content_flow
from flowsieve.header.encoding import encoding_of
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.network.generators import generate
from flowsieve.southbound.embedded.network import EmbeddedNetwork
from flowsieve.southbound.fabric import SwitchEvent
from flowsieve.testing.embedded_fabric import EmbeddedFabric

SCHEMA = Schema.parse(
    {"a": {"type": "int", "min": 0, "max": 255}, "b": {"type": "int", "min": 0, "max": 255}}
)
ENCODING = encoding_of("ipv6")


class Net:
    """A dispatcher over embedded switches, all connected."""

    def __init__(
        self,
        topology: str,
        capacity: int | None = None,
        patience: float = 5.0,
        journal: Journal | None = None,
        settings: Settings | None = None,
    ) -> None:
        self.topology = generate(topology)
        self.network = EmbeddedNetwork(self.topology, capacity)
        self.patience, self.journal = patience, journal
        self.numbers = iter(range(10**6))
        self._control(ControlState(self.topology, RegularPlan.make(SCHEMA), settings=settings))

    def _control(self, state: ControlState) -> None:
        self.fabric = EmbeddedFabric(self.network, self._heard)
        self.dispatcher = Dispatcher(
            state, self.fabric, ENCODING, patience=self.patience, drain=0, journal=self.journal
        )

    def restarted(self, state: ControlState) -> Net:
        """The same network under a dispatcher that begins with a state."""
        self._control(state)
        return self

    def _heard(self, event: SwitchEvent) -> None:
        self.dispatcher.heard(event)

    async def ask(self, op: Op, host: str, filter: str) -> str:
        name = f"{op.value}{next(self.numbers)}"
        outcome = await self.dispatcher.submit(Request(op, name, host, Filter.parse(filter, SCHEMA)))
        assert not outcome.refused
        return name

    async def end(self, op: Op, name: str) -> None:
        side = op.side
        endpoint = self.dispatcher.state.interests(side)[name].endpoint
        await self.dispatcher.submit(Request(op, name, endpoint))

    def requests(self) -> list[Request]:
        """What asks for all that is in force."""
        return [
            Request(op, each.id, each.endpoint, each.filter)
            for op in (Op.ADVERTISE, Op.SUBSCRIBE)
            for each in self.dispatcher.state.interests(op.side).values()
        ]

    async def holds(self) -> None:
        """Once all has settled, what is installed is proved, and is what it should be."""
        async with asyncio.timeout(5):
            await self.dispatcher.settled()
        verdict = await self.dispatcher.verify()
        assert verdict.holds, verdict
        state = self.dispatcher.state
        for switch in self.topology.switches:
            flows = {content_flow(ENCODING, dz, ports) for dz, ports in state.table(switch).items()}
            assert set(self.network.read(switch)) == flows


@asynccontextmanager
async def running(net: Net) -> AsyncIterator[Net]:
    async with asyncio.timeout(30), net.dispatcher:
        for switch in net.topology.switches:
            net.fabric.connect(switch)
        yield net
