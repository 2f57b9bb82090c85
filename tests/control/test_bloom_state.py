"""A state whose labels are Bloom filters: tables follow from what is wanted, whatever the network was before."""

from __future__ import annotations

import pytest

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.memory.journal import Asked, Found, Past
from flowsieve.control.memory.recovery import recover, snapshot
from flowsieve.control.request import Op, Request
from flowsieve.control.requests.ledger import Ledger
from flowsieve.control.state import ControlState, Outcome, Settings
from flowsieve.errors import TableFull
from flowsieve.flow.shares import Shares
from flowsieve.flow.tables.bloom_labelled import BloomLabelledTables, BloomSettings
from flowsieve.header.bloom import BloomLabels
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.network.topology import Topology
from flowsieve.network.tree import TreeMap

SCHEMA = Schema.parse({"x": {"type": "int", "min": 0, "max": 99}})
RING = [("s1", "s2"), ("s2", "s3"), ("s3", "s1")]
SMALL = Topology.make(RING, {"h1": "s1", "h2": "s2"})
LARGE = Topology.make([*RING, ("s3", "s4")], {"h1": "s1", "h2": "s2", "a0": "s4", "h3": "s3"})


def made(trees: TreeMap | None = None, capacity: int | None = None) -> ControlState:
    bloom = BloomSettings(BloomLabels.tuned(16), Shares(16))
    settings = Settings(labelled=True, bloom=bloom, capacity=capacity)
    return ControlState(SMALL, RegularPlan.make(SCHEMA, bits=0), trees, settings)


def request(op: Op, id: str, host: str, text: str = "x < 50") -> Request:
    return Request(op, id, host, Filter.parse(text, SCHEMA))


def tables(state: ControlState) -> BloomLabelledTables:
    assert state.bloom is not None
    return state.bloom


def through(state: ControlState, outcome: Outcome) -> dict[str, list[str]]:
    """Follow the steps of an outcome through; the filters that publishers were told of, with a minus if not wanted."""
    told: dict[str, list[str]] = {}
    for step in outcome.steps:
        for publisher, changes in tables(state).tell(step).items():
            told.setdefault(publisher, []).extend(
                f"{'' if each.wanted else '-'}{each.filter.text}" for each in changes
            )
    tables(state).settle(outcome.steps)
    return told


def test_a_filter_that_several_say_is_told_once_and_taken_back_with_the_last_of_them() -> None:
    state = made()
    state.step([request(Op.ADVERTISE, "a", "h1", "True")])
    assert through(state, state.step([request(Op.SUBSCRIBE, "s", "h2")])) == {"h1": ["x < 50"]}
    assert through(state, state.step([request(Op.SUBSCRIBE, "t", "h2", "not x >= 50")])) == {}
    assert through(state, state.step([Request(Op.UNSUBSCRIBE, "s", "h2")])) == {}
    assert through(state, state.step([Request(Op.UNSUBSCRIBE, "t", "h2")])) == {"h1": ["-x < 50"]}
    assert state.tables == made().tables


def test_what_comes_and_goes_before_publishers_are_told_they_never_hear_of() -> None:
    state = made()
    state.step([request(Op.ADVERTISE, "a", "h1", "True")])
    came = state.step([request(Op.SUBSCRIBE, "s", "h2")])
    went = state.step([Request(Op.UNSUBSCRIBE, "s", "h2")])
    assert (through(state, went), through(state, came)) == ({}, {})
    assert state.tables == made().tables


def test_what_is_supposed_leaves_no_trace() -> None:
    state = made()
    state.step([request(Op.ADVERTISE, "a", "h1", "True")])
    through(state, state.step([request(Op.SUBSCRIBE, "s", "h2")]))
    before = state.tables
    with state.supposed(request(Op.SUBSCRIBE, "t", "h2", "x < 80")) as outcome:
        assert set(outcome.told) == {"h1"}
        assert state.size("s2") == len(before["s2"])  # type: ignore[arg-type]  # in the place of what it covers
        assert state.tables != before
    assert state.tables == before
    assert [filter.text for filter, _ in state.filters.held_by("h1")] == ["x < 50"]
    assert through(state, state.step([Request(Op.UNSUBSCRIBE, "s", "h2")])) == {"h1": ["-x < 50"]}


def test_a_network_that_grows_and_one_that_is_remembered_have_the_same_tables() -> None:
    state, ledger = made(), Ledger()
    asked = [request(Op.ADVERTISE, "a", "h1", "True"), request(Op.SUBSCRIBE, "s", "h2")]
    for each in asked:
        through(state, state.step([each]))
    state.grow(LARGE)
    late = request(Op.SUBSCRIBE, "t", "a0", "x < 80")
    assert through(state, state.step([late])) == {"h1": ["x < 80"]}
    kept, _ = recover(Past(snapshot(state, ledger)), made)
    again, _ = recover(Past(None, [*map(Asked, asked), Found(LARGE), Asked(late)]), made)
    for other in (kept, again):
        tables(other).start()
        tables(other).started()
        assert other.tables == state.tables
        assert dict(other.filters.held_by("h1")).keys() == dict(state.filters.held_by("h1")).keys()


def test_a_network_that_grows_has_tables_though_one_of_them_has_no_room() -> None:
    state = made(capacity=6)
    state.step([request(Op.ADVERTISE, "a", "h1", "True")])
    through(state, state.step([request(Op.SUBSCRIBE, "s", "h2")]))
    before = state.label_entries("s2")
    crowd = Topology.make(RING, {"h1": "s1", "h2": "s2", **{f"n{n}": "s1" for n in range(9)}})
    state.grow(crowd)
    assert [entry for entry in before if entry.actions] == [
        entry for entry in state.label_entries("s2") if entry.actions
    ]
    assert state.size("s1") > 6  # which it will refuse


def test_a_tree_stays_as_it_is_where_its_tables_would_not_fit() -> None:
    state = made()
    state.step([request(Op.ADVERTISE, "a", "h1", "True")])
    through(state, state.step([request(Op.SUBSCRIBE, "s", "h2")]))
    (edge,) = (frozenset(edge) for edge in state.trees.trees[0].edges if set(edge) == {"s1", "s2"})
    before, trees = state.tables, state.trees
    tables(state).bound("s3", 1)
    outcome = state.rewire({edge})
    assert isinstance(outcome.unmended, TableFull)
    assert (state.tables, state.trees) == (before, trees)


def test_less_room_has_entries_merged_and_none_at_all_is_told() -> None:
    state = made()
    state.step([request(Op.ADVERTISE, "a", "h1", "True")])
    for number in range(9):
        through(state, state.step([request(Op.SUBSCRIBE, f"s{number}", "h2", f"x == {number}")]))
    whole = state.size("s2")
    state.bound("s2", whole - 4)
    assert state.size("s2") < whole - 4
    with pytest.raises(TableFull):
        state.bound("s2", 2)
    state.bound("s2", None)
    assert state.size("s2") == whole
