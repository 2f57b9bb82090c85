"""What a journal gives back is what lived through it, wherever snapshots were taken and wherever it was cut."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.journal import Asked, Bounded, Entry, Origin, Past, Rewired, Undone
from flowsieve.control.ledger import Ledger
from flowsieve.control.recovery import recover, replay, snapshot
from flowsieve.control.request import Op, Request
from flowsieve.control.state import ControlState, Settings
from flowsieve.errors import BadInput, JournalError
from flowsieve.flow.capacity import room
from flowsieve.flow.compiler import Side, Tables
from flowsieve.index.regular import RegularPlan
from flowsieve.network.generators import generate
from flowsieve.network.topology import Topology
from flowsieve.network.tree import TreeMap

SCHEMA = Schema.parse({"a": {"type": "int", "min": 0, "max": 15}, "b": {"type": "int", "min": 0, "max": 7}})
PLAN = RegularPlan.make(SCHEMA, bits=6)
NETWORKS = [generate(name) for name in ("ring:4", "line:3", "grid:2,3", "star:3")]
ENDS = {Op.ADVERTISE: Op.UNADVERTISE, Op.SUBSCRIBE: Op.UNSUBSCRIBE}

# Lives are drawn by seed: Hypothesis' own choices lean towards the simplest, where nothing goes wrong.
seeds = st.integers(0, 2**32 - 1).map(Random)


def fresh(
    topology: Topology, capacity: int | None, tables: Tables, spread: int, trees: TreeMap | None
) -> ControlState:
    if trees is None and spread > 1:
        trees = TreeMap.spread(topology, spread)
    return ControlState(topology, PLAN, trees, Settings(budget=8, capacity=capacity, tables=tables))


@dataclass
class Life:
    """A controller's life as its journal sees it: every entry is written, then done."""

    random: Random
    state: ControlState
    shrinking: bool  # whether switches turn out to have less room than was thought
    ledger: Ledger = field(default_factory=Ledger)
    entries: list[Entry] = field(default_factory=list)
    asked: int = 0
    under_way: list[Asked] = field(default_factory=list)

    def live(self) -> None:
        """Something happens."""
        chance = self.random.random()
        if chance < 0.6 or not self.under_way:
            self._ask()
        elif chance < 0.75:
            self._undo()
        elif chance < 0.92 or not self.shrinking:
            self._rewire()
        else:
            switch = self.random.choice(self.state.topology.switches)
            self._do(Bounded(switch, self.random.choice([0, 1, 1, 2, 3, 5])))

    def _ask(self) -> None:
        self.asked += 1
        origin = Origin(f"session {self.random.randrange(3)}", self.asked, 1.5)
        asked = Asked(self._request(), self.random.choice([origin, origin, None]))
        self.entries.append(asked)
        try:
            outcome = self.state.step([asked.request])
        except BadInput:
            return
        if outcome.refused:
            self._do(Undone(asked.request, asked.origin, "refused", str(outcome.refused[0][1])))
        else:
            self.ledger.asked(asked.request, asked.origin)
            self.under_way.append(asked)

    def _request(self) -> Request:
        """One that adds or ends something; now and then a bad one."""
        op = self.random.choice(list(ENDS))
        book = self.state.interests(op.side)
        hosts = list(self.state.topology.hosts)
        if self.random.random() < 0.35:
            id = self.random.choice([*book, "nothing"])
            host = book[id].host if id in book and self.random.random() < 0.9 else self.random.choice(hosts)
            return Request(ENDS[op], id, host)
        low, high = sorted(self.random.choices(range(16), k=2))
        filter = Filter.parse(f"{low} <= a <= {high} and b != {self.random.randrange(8)}", SCHEMA)
        return Request(op, f"i{self.random.randrange(12)}", self.random.choice(hosts), filter)

    def _undo(self) -> None:
        """A request of a while ago is taken back; somebody else may have its id by now."""
        asked = self.random.choice(self.under_way)
        self.under_way.remove(asked)
        self._do(Undone(asked.request, asked.origin, "failed", "not acknowledged"))

    def _rewire(self) -> None:
        links = [frozenset((link.a, link.b)) for link in self.state.topology.links]
        self._do(Rewired(frozenset(self.random.sample(links, self.random.randint(0, 2)))))

    def _do(self, entry: Entry) -> None:
        self.entries.append(entry)
        replay(self.state, self.ledger, entry)


def facts(state: ControlState) -> dict[str, Any]:
    """All of a state that does not depend on how it came to it."""
    return {
        "interests": {side: state.interests(side) for side in Side},
        "trees": state.trees,
        "down": state.down,
        "bounds": state.bounds,
    }


def tables(state: ControlState) -> dict[str, Any]:
    return {switch: state.table(switch) for switch in state.topology.switches}


def holdings(ledger: Ledger, life: Life) -> dict[str, Any]:
    """What sessions hold and are to hear if they ask again."""
    return {
        session: (
            ledger.holds(session),
            {n: ledger.record(session, n) for n in range(life.asked + 1)},
        )
        for session in sorted(life.ledger.sessions)
    }


def a_life(random: Random, capacity: int | None, *, shrinking: bool) -> tuple[Life, partial[ControlState]]:
    topology = random.choice(NETWORKS)
    make = partial(fresh, topology, capacity, random.choice(list(Tables)), random.choice([1, 1, 2, 4]))
    return Life(random, make(None), shrinking), make


@settings(max_examples=30)
@given(seeds)
def test_a_state_comes_back_from_any_snapshot_and_what_came_after(random: Random) -> None:
    life, make = a_life(random, None, shrinking=False)
    kept = None
    for _ in range(random.randint(1, 25)):
        life.live()
        if random.random() < 0.15:
            kept = json.loads(json.dumps(snapshot(life.state, life.ledger)))
            life.entries.clear()
        state, ledger = recover(Past(kept, tuple(life.entries)), make)
        assert facts(state) == facts(life.state)
        assert tables(state) == tables(life.state)
        assert holdings(ledger, life) == holdings(life.ledger, life)


@settings(max_examples=20)
@given(seeds)
def test_small_tables_come_back_as_they_were_from_all_that_was_written(random: Random) -> None:
    life, make = a_life(random, random.choice([None, 1, 2, 3, 4, 6, 9]), shrinking=True)
    for _ in range(random.randint(1, 12)):
        life.live()
        state, ledger = recover(Past(None, tuple(life.entries)), make)
        assert facts(state) == facts(life.state)
        assert tables(state) == tables(life.state)
        assert holdings(ledger, life) == holdings(life.ledger, life)


@settings(max_examples=30)
@given(seeds)
def test_where_tables_are_small_a_snapshot_brings_back_the_same_interests_in_tables_that_fit(
    random: Random,
) -> None:
    """How coarse a table is depends on what it held before; nobody who was served is not served any more."""
    life, make = a_life(random, random.choice([None, 2, 3, 4, 6, 9]), shrinking=True)
    kept = None
    for _ in range(random.randint(1, 20)):
        life.live()
        if random.random() < 0.2:
            kept = json.loads(json.dumps(snapshot(life.state, life.ledger)))
            life.entries.clear()
        state, ledger = recover(Past(kept, tuple(life.entries)), make)
        assert facts(state) == facts(life.state)
        assert holdings(ledger, life) == holdings(life.ledger, life)
        for switch in state.topology.switches:
            capacity = state.capacity(switch)
            if capacity is not None and len(life.state.table(switch)) <= room(capacity):
                assert len(state.table(switch)) <= room(capacity)


def asked(op: Op, id: str, host: str, session: str | None, number: int = 1) -> Asked:
    filter = Filter.parse("a < 3", SCHEMA) if op.adding else None
    return Asked(Request(op, id, host, filter), Origin(session, number) if session is not None else None)


def on_a_ring() -> partial[ControlState]:
    return partial(fresh, NETWORKS[0], None, Tables.OVERLAY, 1)


def test_taking_a_request_back_leaves_alone_who_has_its_id_by_now() -> None:
    first, second = asked(Op.SUBSCRIBE, "x", "h0", "ann"), asked(Op.SUBSCRIBE, "x", "h1", "bob")
    entries = (
        first,
        asked(Op.UNSUBSCRIBE, "x", "h0", None),
        second,
        Undone(first.request, first.origin, "failed", "late"),
    )
    state, ledger = recover(Past(None, entries), on_a_ring())
    assert state.subscriptions["x"].host == "h1"
    assert ledger.holder(Side.SUBSCRIBER, "x") == "bob"
    record = ledger.record("ann", 1)
    assert record is not None
    assert (record.kind, record.why) == ("failed", "late")


def test_a_bad_request_among_good_ones_does_not_take_them_along() -> None:
    entries = [asked(Op.SUBSCRIBE, "x", "h0", "ann", n) for n in (1, 2)]
    entries.append(asked(Op.SUBSCRIBE, "y", "h0", "ann", 3))
    state, ledger = recover(Past(None, entries), on_a_ring())
    assert list(state.subscriptions) == ["x", "y"]
    assert [ledger.record("ann", n) is not None for n in (1, 2, 3)] == [True, False, True]


def test_what_a_client_said_it_heard_is_not_carried_out_after_a_snapshot() -> None:
    state, ledger = recover(Past(None, [asked(Op.SUBSCRIBE, "x", "h0", "ann", 7)]), on_a_ring())
    ledger.answered("ann", 8)
    _, again = recover(Past(snapshot(state, ledger)), on_a_ring())
    assert again.heard("ann") == 8
    assert again.record("ann", 7) is None
    assert [request.id for request in again.holds("ann")] == ["x"]


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"trees": 5},
        {"trees": []},
        {"down": [3]},
        {"bounds": []},
        {"interests": [["SUBSCRIBER", "x", "h0", "nothing < 3"]]},
        {"interests": [["SUBSCRIBER", "x", "h99", "a < 3"]]},
        {"interests": [["NOBODY", "x", "h0", "a < 3"]]},
        {"sessions": {"ann": {"answered": 0, "holds": [["SUBSCRIBER", "y", 1]], "records": []}}},
        {"sessions": {"ann": 3}},
    ],
)
def test_a_snapshot_that_makes_no_sense_is_told_and_not_taken(broken: dict[str, Any]) -> None:
    make = on_a_ring()
    good = dict(snapshot(make(None), Ledger()))
    recover(Past(good), make)
    with pytest.raises(JournalError, match="the journal's snapshot cannot be read"):
        recover(Past(good | broken if broken else {}), make)
