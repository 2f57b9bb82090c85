"""A state made anew while requests go on has all that was asked for, and the tables that follow."""

from __future__ import annotations

import asyncio
import threading
from functools import partial

import pytest

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.memory.rebuild import TRIES, remade
from flowsieve.control.request import Op, Request
from flowsieve.control.requests.ledger import Ledger
from flowsieve.control.state import ControlState, Settings
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.network.generators import generate
from flowsieve.network.tree import TreeMap

SCHEMA = Schema.parse({"a": {"type": "int", "min": 0, "max": 255}})
PLAN = RegularPlan.make(SCHEMA)
NETWORK = generate("ring:4")


def made(budget: int, trees: TreeMap | None = None) -> ControlState:
    return ControlState(NETWORK, PLAN, trees, Settings(budget=budget))


def add(op: Op, id: str, host: str, text: str) -> Request:
    return Request(op, id, host, Filter.parse(text, SCHEMA))


FIRST = [add(Op.ADVERTISE, "p", "h0", "True"), add(Op.SUBSCRIBE, "x", "h1", "a < 100")]
FIRST += [add(Op.SUBSCRIBE, "y", "h2", "a > 7"), add(Op.SUBSCRIBE, "z", "h2", "a > 9")]
MEANWHILE = [Request(Op.UNSUBSCRIBE, "x", "h1"), Request(Op.UNSUBSCRIBE, "y", "h2")]
MEANWHILE += [add(Op.SUBSCRIBE, "y", "h2", "a > 30"), add(Op.SUBSCRIBE, "new", "h3", "3 < a < 77")]


class Held:
    """Makes states in a thread, when it is let."""

    def __init__(self) -> None:
        self.begun, self.let = threading.Semaphore(0), threading.Semaphore(0)
        self.times = 0

    def make(self, trees: TreeMap | None) -> ControlState:
        self.times += 1
        if threading.current_thread() is not threading.main_thread():
            self.begun.release()
            assert self.let.acquire(timeout=10)
        return made(4, trees)


def test_what_is_asked_for_meanwhile_is_caught_up_with() -> None:
    async def story() -> None:
        state, held = made(32), Held()
        state.step(FIRST)
        new = asyncio.create_task(remade(lambda: state, Ledger(), held.make))
        assert await asyncio.to_thread(partial(held.begun.acquire, timeout=10))
        state.step(MEANWHILE)
        held.let.release()
        expected = made(4)
        expected.step(FIRST)
        expected.step(MEANWHILE)
        found = await new
        assert found.settings.budget == 4
        assert found.subscriptions.keys() == {"y", "z", "new"}
        for switch in NETWORK.switches:
            assert found.table(switch) == expected.table(switch)

    asyncio.run(story())


@pytest.mark.parametrize("changes", [1, TRIES])
def test_where_links_come_and_go_meanwhile_it_is_done_again(changes: int) -> None:
    async def story() -> None:
        state, held = made(32), Held()
        state.step(FIRST)
        new = asyncio.create_task(remade(lambda: state, Ledger(), held.make))
        for n in range(TRIES):
            if n <= changes:
                assert await asyncio.to_thread(partial(held.begun.acquire, timeout=10))
            if n < changes:
                link = NETWORK.links[n]
                state.rewire([frozenset((link.a, link.b))])
            held.let.release()
        found = await new
        assert (found.down, found.trees) == (state.down, state.trees)
        assert held.times == changes + 1

    asyncio.run(story())
