"""A controller that is started again adopts what its switches hold: tables that were cut to a capacity, too."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from random import Random

import pytest

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.dispatcher import Dispatcher
from flowsieve.control.memory.recovery import recover, snapshot
from flowsieve.control.memory.sqlite_journal import SqliteJournal, look
from flowsieve.control.request import Op, Request
from flowsieve.control.state import ControlState, Settings
from flowsieve.flow.tables.compiler import Tables
from flowsieve.header.encoding import encoding_of
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.network.generators import generate
from flowsieve.network.tree import TreeMap
from flowsieve.southbound.embedded.network import EmbeddedNetwork
from flowsieve.testing.embedded_fabric import EmbeddedFabric

SCHEMA = Schema.parse({name: {"type": "int", "min": 0, "max": 63} for name in "ab"})
PLAN = RegularPlan.make(SCHEMA)
TOPOLOGY = generate("star:4")
CAPACITY = 14
ENCODING = encoding_of("ipv6")


def fresh(tables: Tables, trees: TreeMap | None) -> ControlState:
    return ControlState(TOPOLOGY, PLAN, trees, Settings(budget=8, capacity=CAPACITY, tables=tables))


class House:
    """The network outlives its controllers; what they remember is in a file."""

    def __init__(self, folder: Path, tables: Tables, dice: Random) -> None:
        self.network = EmbeddedNetwork(TOPOLOGY, CAPACITY)
        self.path, self.tables = folder / "journal.db", tables
        self._dice = dice
        self._named = 0
        self._held: list[tuple[str, str]] = []

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Dispatcher]:
        """A controller, once it has looked at all switches."""
        journal = SqliteJournal(self.path, "house")
        try:
            state, ledger = recover(await journal.load(SCHEMA), partial(fresh, self.tables))
            fabric = EmbeddedFabric(self.network, lambda event: dispatcher.heard(event))
            dispatcher = Dispatcher(
                state, fabric, ENCODING, patience=10, drain=0, journal=journal, ledger=ledger
            )
            async with asyncio.timeout(60), dispatcher:
                for switch in TOPOLOGY.switches:
                    fabric.connect(switch)
                await dispatcher.settled()
                yield dispatcher
        finally:
            await journal.close()

    async def live(self, dispatcher: Dispatcher) -> None:
        """Requests, several at a time; and prices of some that are never made."""
        some = [self._request() for _ in range(self._dice.randint(1, 5))]
        outcomes = await asyncio.gather(*map(dispatcher.submit, some))
        for request, outcome in zip(some, outcomes, strict=True):
            if request.op.adding and not outcome.refused:
                self._held.append((request.id, request.endpoint))
        with dispatcher.state.supposed(self._addition("a price")):
            pass

    def _request(self) -> Request:
        if self._held and self._dice.random() < 0.3:
            name, host = self._held.pop(self._dice.randrange(len(self._held)))
            return Request(Op.UNSUBSCRIBE, name, host)
        self._named += 1
        return self._addition(f"s{self._named}")

    def _addition(self, name: str) -> Request:
        a, b = self._dice.randrange(60), self._dice.randrange(60)
        filter = Filter.parse(f"{a} <= a < {a + 6} and {b} <= b < {b + 6}", SCHEMA)
        return Request(Op.SUBSCRIBE, name, self._dice.choice(list(TOPOLOGY.hosts)), filter)


def tables(state: ControlState) -> dict[str, object]:
    return {switch: state.table(switch) for switch in TOPOLOGY.switches}


@pytest.mark.parametrize("seed", range(6))
def test_a_controller_that_is_started_again_sends_no_operation_though_tables_are_full(
    tmp_path: Path, seed: int
) -> None:
    dice = Random(seed)
    house = House(tmp_path, dice.choice(list(Tables)), dice)

    async def story() -> None:
        coarse = 0
        async with house.open() as dispatcher:
            await dispatcher.submit(Request(Op.ADVERTISE, "p", "h0", Filter.parse("True", SCHEMA)))
        for _ in range(6):
            async with house.open() as dispatcher:
                assert dispatcher.operations == 0
                for _ in range(4):
                    await house.live(dispatcher)
                    if dice.random() < 0.3:
                        await dispatcher.scribe.compact(lambda: snapshot(dispatcher.state, dispatcher.ledger))
                before, coarse = tables(dispatcher.state), coarse + len(dispatcher.state.waste())
            state, _ = recover(look(house.path, SCHEMA), partial(fresh, house.tables))
            assert tables(state) == before
        assert coarse > 0  # or nothing was to be remembered

    asyncio.run(story())
