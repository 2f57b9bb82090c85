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
from flowsieve.control.memory.journal import (
    Asked,
    Bounded,
    Entry,
    Origin,
    Past,
    Rewired,
    Undone,
    entry_from_json,
    entry_to_json,
)
from flowsieve.control.memory.recovery import recover, replay, snapshot
from flowsieve.control.request import Op, Request
from flowsieve.control.requests.ledger import Ledger
from flowsieve.control.state import ControlState, Settings
from flowsieve.errors import BadFilter, BadInput, BadJournal, JournalError
from flowsieve.flow.capacity.fitted import room
from flowsieve.flow.tables.compiler import Side, Tables
from flowsieve.index.plans import cell_plan as cells
from flowsieve.index.plans.regular import RegularPlan
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
            self._do(Bounded(switch, self.random.choice([0, 1, 1, 2, 3, 5, None, None])))

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
            host = (
                book[id].endpoint if id in book and self.random.random() < 0.9 else self.random.choice(hosts)
            )
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
        down, fenced = (frozenset(self.random.sample(links, self.random.randint(0, 2))) for _ in range(2))
        self._do(Rewired(down, self.random.choice([None, down, fenced])))

    def _do(self, entry: Entry) -> None:
        self.entries.append(entry)
        replay(self.state, self.ledger, entry)


def facts(state: ControlState) -> dict[str, Any]:
    """All of a state that does not depend on how it came to it."""
    return {
        "interests": {side: state.interests(side) for side in Side},
        "trees": state.trees,
        "down": state.down,
        "fenced": state.fenced,
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


@settings(max_examples=40)
@given(seeds)
def test_small_tables_come_back_as_they_were_from_any_snapshot_and_what_came_after(random: Random) -> None:
    """How coarse a table is depends on what it held before: also on requests that were refused or ended long since."""
    life, make = a_life(random, random.choice([None, 1, 2, 3, 4, 6, 9]), shrinking=True)
    kept = None
    for _ in range(random.randint(1, 25)):
        life.live()
        if random.random() < 0.2:
            kept = json.loads(json.dumps(snapshot(life.state, life.ledger)))
            life.entries.clear()
        state, ledger = recover(Past(kept, tuple(life.entries)), make)
        assert facts(state) == facts(life.state)
        assert tables(state) == tables(life.state)
        assert state.waste() == life.state.waste()
        assert holdings(ledger, life) == holdings(life.ledger, life)


@settings(max_examples=30)
@given(seeds)
def test_what_is_only_supposed_leaves_no_trace(random: Random) -> None:
    """Neither in the tables nor in what becomes of them: two lives are the same, in one of which prices were asked."""
    capacity, tables_of, spread = (
        random.choice([None, 2, 4, 9]),
        random.choice(list(Tables)),
        random.choice([1, 2]),
    )
    topology, seed = random.choice(NETWORKS), random.random()
    make = partial(fresh, topology, capacity, tables_of, spread)
    curious, plain = Life(Random(seed), make(None), True), Life(Random(seed), make(None), True)
    for _ in range(random.randint(1, 20)):
        curious.live()
        plain.live()
        before = tables(curious.state)
        wanted = Filter.parse(f"a >= {random.randrange(16)} and b == {random.randrange(8)}", SCHEMA)
        request = Request(Op.SUBSCRIBE, "only asked", random.choice(list(topology.hosts)), wanted)
        with curious.state.supposed(request) as outcome:
            assert outcome.refused or "only asked" in curious.state.subscriptions
        assert tables(curious.state) == before
        assert facts(curious.state) == facts(plain.state)
        assert tables(curious.state) == tables(plain.state)


@settings(max_examples=20)
@given(seeds)
def test_a_snapshot_under_another_capacity_brings_back_the_same_interests_in_tables_that_fit(
    random: Random,
) -> None:
    life, make = a_life(random, random.choice([None, 2, 3, 4]), shrinking=False)
    for _ in range(random.randint(1, 15)):
        life.live()
    kept = json.loads(json.dumps(snapshot(life.state, life.ledger)))
    other = partial(fresh, life.state.topology, 9, *make.args[2:])
    state, ledger = recover(Past(kept), other)
    again = ControlState(state.topology, PLAN, life.state.trees, state.settings)
    again.restore(requests_of(life.state))
    assert tables(state) == tables(again)
    assert facts(state)["interests"] == facts(life.state)["interests"]
    assert holdings(ledger, life) == holdings(life.ledger, life)
    assert all(len(table) <= room(9) for table in tables(state).values())


@pytest.mark.parametrize("seed", range(4))
def test_where_events_are_expected_comes_back_and_what_it_is_known_from_may_be_gone(seed: int) -> None:
    """Weights are found anew only now and then, so a table that is cut after a restart needs those of before."""
    random = Random(seed)
    make = partial(fresh, NETWORKS[3], 9, Tables.OVERLAY, 1)
    state, ledger = make(None), Ledger()

    def subscribe(number: int) -> Request:
        low, b = random.randrange(14), random.randrange(8)
        filter = Filter.parse(f"{low} <= a <= {low + random.randrange(2)} and b == {b}", SCHEMA)
        return Request(Op.SUBSCRIBE, f"s{number}", random.choice(list(NETWORKS[3].hosts)), filter)

    replay(state, ledger, asked(Op.ADVERTISE, "p", "h0", None, text="True"))
    wanted = [subscribe(number) for number in range(60)]
    for request in wanted:
        replay(state, ledger, Asked(request))
    after: list[Entry] = [Asked(Request(Op.UNSUBSCRIBE, each.id, each.endpoint)) for each in wanted[:3]]
    after += [Asked(subscribe(number)) for number in range(100, 103)]
    for entry in after[:3]:
        replay(state, ledger, entry)
    kept = json.loads(json.dumps(snapshot(state, ledger)))
    for entry in after[3:]:
        replay(state, ledger, entry)
    assert state.waste()  # something is coarse
    back, _ = recover(Past(kept, after[3:]), make)
    assert tables(back) == tables(state)
    assert back.waste() == state.waste()


def test_covers_in_a_snapshot_are_those_that_the_filters_have() -> None:
    """They are taken as they are, so they have to be; filters are then read only if somebody asks."""
    random = Random(3)
    for plan, budget in ((PLAN, 8), (PLAN, 0), (RegularPlan.make(SCHEMA), 3)):
        make = partial(made, plan, budget)
        state = make(None)
        texts = [f"{random.randrange(16)} <= a or b == {random.randrange(8)}" for _ in range(40)]
        subscriptions = [
            Request(Op.SUBSCRIBE, f"s{n}", f"h{n % 4}", Filter.parse(text, SCHEMA))
            for n, text in enumerate(texts)
        ]
        state.step(subscriptions)
        kept = json.loads(json.dumps(snapshot(state, Ledger())))
        back, _ = recover(Past(kept), make)
        for each in back.subscriptions.values():
            assert "boxes" not in vars(each.filter)
            assert each.dz == plan.cover(Filter.parse(each.filter.text, SCHEMA), budget)
            assert each.filter == Filter.parse(each.filter.text, SCHEMA)
        other, _ = recover(Past(kept), partial(made, plan, 1))  # under another budget they are made anew
        assert all(each.dz == plan.cover(each.filter, 1) for each in other.subscriptions.values())


def test_a_snapshot_without_covers_is_read_too() -> None:
    make = on_a_ring()
    state, ledger = recover(Past(None, [asked(Op.SUBSCRIBE, "x", "h0", "ann", 7)]), make)
    kept = {key: value for key, value in snapshot(state, ledger).items() if key != "covers"}
    back, _ = recover(Past(kept), make)
    assert facts(back) == facts(state)


def made(plan: RegularPlan, budget: int, trees: TreeMap | None) -> ControlState:
    return ControlState(NETWORKS[0], plan, trees, Settings(budget=budget))


def requests_of(state: ControlState) -> list[Request]:
    return [
        Request(
            Op.SUBSCRIBE if side is Side.SUBSCRIBER else Op.ADVERTISE, each.id, each.endpoint, each.filter
        )
        for side in Side
        for each in state.interests(side).values()
    ]


def asked(op: Op, id: str, host: str, session: str | None, number: int = 1, text: str = "a < 3") -> Asked:
    filter = Filter.parse(text, SCHEMA) if op.adding else None
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
    assert state.subscriptions["x"].endpoint == "h1"
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


def test_requests_that_came_and_went_are_remembered_and_cost_nothing() -> None:
    """Their filters are not even read; what came before and went, or came again, is as the last of them left it."""
    entries = [asked(Op.SUBSCRIBE, "old", "h0", "ann", 1), asked(Op.SUBSCRIBE, "x", "h0", "ann", 2)]
    entries += [asked(Op.UNSUBSCRIBE, "x", "h0", "ann", 3), asked(Op.SUBSCRIBE, "x", "h1", "bob", 1, "a > 9")]
    state, ledger = recover(Past(None, entries), on_a_ring())
    assert {id: (each.endpoint, each.filter.text) for id, each in state.subscriptions.items()} == {
        "old": ("h0", "a < 3"),
        "x": ("h1", "a > 9"),
    }
    assert ledger.holder(Side.SUBSCRIBER, "x") == "bob"
    more = [asked(Op.UNSUBSCRIBE, "old", "h0", "ann", 4), asked(Op.SUBSCRIBE, "old", "h2", "bob", 2)]
    more.append(asked(Op.UNSUBSCRIBE, "old", "h2", "bob", 3))
    unread = entry_from_json(entry_to_json(more[1]), SCHEMA)
    assert isinstance(unread, Asked) and unread.request.filter is not None
    kept = snapshot(state, ledger)
    state, ledger = recover(Past(kept, [more[0], unread, more[2]]), on_a_ring())
    assert list(state.subscriptions) == ["x"]
    assert "boxes" not in vars(unread.request.filter)
    assert ledger.record("bob", 3) is not None


@pytest.mark.parametrize("capacity", [None, 9])
def test_a_filter_in_the_journal_that_cannot_be_read_is_told(capacity: int | None) -> None:
    """It was read once; so this is a journal of another version, and what was promised is not forgotten silently."""
    data = entry_to_json(asked(Op.SUBSCRIBE, "x", "h0", "ann"))
    entry = entry_from_json(data | {"filter": "nothing < 3"}, SCHEMA)
    with pytest.raises(BadJournal, match=r"the journal has a filter that cannot be read: .*nothing"):
        recover(Past(None, [entry]), partial(fresh, NETWORKS[0], capacity, Tables.OVERLAY, 1))


@pytest.mark.parametrize("capacity", [None, 9])
def test_a_filter_that_was_too_long_to_be_covered_is_passed_over(
    capacity: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was written down before it was refused, and nothing but the refusal came of it."""
    monkeypatch.setattr(cells, "MOST_LISTED", 3)
    entries = [
        asked(Op.SUBSCRIBE, "x", "h0", "ann", 1),
        asked(Op.SUBSCRIBE, "long", "h0", "ann", 2, "a in {1, 5, 9, 13}"),
        asked(Op.SUBSCRIBE, "y", "h1", "ann", 3, "a < 8"),
    ]
    make = partial(exact, capacity)
    with pytest.raises(BadFilter):
        make(None).step([entries[1].request])
    state, ledger = recover(Past(None, entries), make)
    assert list(state.subscriptions) == ["x", "y"]
    assert [ledger.record("ann", n) is not None for n in (1, 2, 3)] == [True, False, True]


def exact(capacity: int | None, trees: TreeMap | None) -> ControlState:
    return ControlState(NETWORKS[0], PLAN, trees, Settings(budget=0, capacity=capacity))


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
        {"covers": 3},
        {"covers": {}},
    ],
)
def test_a_snapshot_that_makes_no_sense_is_told_and_not_taken(broken: dict[str, Any]) -> None:
    make = on_a_ring()
    good = dict(snapshot(make(None), Ledger()))
    recover(Past(good), make)
    with pytest.raises(JournalError, match="the journal's snapshot cannot be read"):
        recover(Past(good | broken if broken else {}), make)
