"""A state whose packets name receivers: tables follow the network alone, and hosts keep their bits whatever happens."""

from __future__ import annotations

from itertools import pairwise

import pytest

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.discovery.findings import SwitchPort
from flowsieve.control.discovery.growth import moved
from flowsieve.control.memory.journal import (
    Allowed,
    Asked,
    Found,
    Homed,
    Past,
    Placed,
    Rewired,
    entry_from_json,
    entry_to_json,
)
from flowsieve.control.memory.recovery import recover, snapshot
from flowsieve.control.request import Op, Request
from flowsieve.control.requests.dependencies import Dependencies
from flowsieve.control.requests.ledger import Ledger
from flowsieve.control.state import ControlState, Settings
from flowsieve.errors import TableFull
from flowsieve.flow.proof.label_verify import verify_labels
from flowsieve.flow.send_policy import MaySend, SendPolicy
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.network.host_places import HostPlaces
from flowsieve.network.topology import Topology
from flowsieve.network.tree import TreeMap

SCHEMA = Schema.parse({"x": {"type": "int", "min": 0, "max": 9}})
RING = [("s1", "s2"), ("s2", "s3"), ("s3", "s1")]
SMALL = Topology.make(RING, {"h1": "s1", "h2": "s2"})
LARGE = Topology.make([*RING, ("s3", "s4")], {"h1": "s1", "h2": "s2", "a0": "s4", "h3": "s3"})


def made(trees: TreeMap | None = None, capacity: int | None = None) -> ControlState:
    settings = Settings(labelled=True, capacity=capacity)
    return ControlState(SMALL, RegularPlan.make(SCHEMA, bits=0), trees, settings)


def request(op: Op, id: str, host: str, text: str = "x < 5") -> Request:
    return Request(op, id, host, Filter.parse(text, SCHEMA))


def test_interests_change_no_table_and_tell_publishers() -> None:
    state = made()
    before = state.tables
    assert state.step([request(Op.ADVERTISE, "a", "h1")]).told == {}
    outcome = state.step([request(Op.SUBSCRIBE, "s", "h2")])
    assert (outcome.operations, outcome.changes) == (0, {})
    (change,) = outcome.told["h1"]
    assert (change.filter.text, change.host, change.wanted) == ("x < 5", "h2", True)
    with state.supposed(request(Op.SUBSCRIBE, "t", "h2", "x == 3")) as supposed:
        assert set(supposed.told) == {"h1"}
    ended = state.step([Request(Op.UNSUBSCRIBE, "s", "h2")])
    assert [each.wanted for each in ended.told["h1"]] == [False]  # and nothing of what was supposed
    assert state.tables == before


def test_tables_follow_the_trees() -> None:
    state = made()
    (edge, *_) = (frozenset(edge) for edge in state.trees.trees[0].edges)
    outcome = state.rewire({edge})
    assert set(outcome.changes) >= set(edge)
    assert edge not in {frozenset(edge) for edge in state.trees.trees[0].edges}


def test_hosts_keep_their_bits_when_others_are_found_and_after_restarts() -> None:
    state, ledger = made(), Ledger()
    state.step([request(Op.ADVERTISE, "a", "h1")])
    places = {host: state.labels.place(host) for host in SMALL.hosts}
    state.grow(LARGE)
    assert {host: state.labels.place(host) for host in SMALL.hosts} == places
    assert set(state.labels.hosts) == set(LARGE.hosts)
    kept, _ = recover(Past(snapshot(state, ledger)), made)
    again, _ = recover(Past(None, [Asked(request(Op.ADVERTISE, "a", "h1")), Found(LARGE)]), made)
    for other in (kept, again):
        assert other.sets == state.sets
        assert other.tables == state.tables
    assert dict(kept.filters.held_by("h1")) == {}
    kept.step([request(Op.SUBSCRIBE, "s", "a0")])
    assert [(filter.text, hosts) for filter, hosts in kept.filters.held_by("h1")] == [("x < 5", ["a0"])]


def test_a_switch_without_room_for_labels_keeps_no_tree_from_being_mended() -> None:
    state = made()
    for switch in SMALL.switches:  # on other trees some would need more
        with pytest.raises(TableFull):
            state.bound(switch, state.size(switch) - 1)
    (edge, *_) = (frozenset(edge) for edge in state.trees.trees[0].edges)
    outcome = state.rewire({edge})
    assert outcome.unmended is None and set(outcome.changes) >= set(edge)
    assert edge not in {frozenset(edge) for edge in state.trees.trees[0].edges}


def test_a_switch_without_room_for_labels_refuses_no_interest_and_no_restart() -> None:
    state, ledger = made(), Ledger()
    state.step([request(Op.ADVERTISE, "a", "h1")])
    with pytest.raises(TableFull):
        state.bound("s2", 1)
    outcome = state.step([request(Op.SUBSCRIBE, "s", "h2"), request(Op.SUBSCRIBE, "t", "h2", "x == 3")])
    assert (outcome.refused, len(outcome.told["h1"])) == ((), 2)
    ended = state.step([Request(Op.UNSUBSCRIBE, "t", "h2")])
    assert [each.wanted for each in ended.told["h1"]] == [False]
    kept, _ = recover(Past(snapshot(state, ledger)), made)
    assert (kept.bounds, kept.tables) == ({"s2": 1}, state.tables)


def test_a_host_that_moves_keeps_its_bit_and_its_interests_and_all_of_it_is_remembered() -> None:
    policy = SendPolicy((MaySend(("h1",), ("h*",)),))
    asked = Asked(request(Op.SUBSCRIBE, "s", "h2"))
    entries = [asked, Homed("h2", "s2", 3), Found(moved(SMALL, "h2", SwitchPort("s3", 9))), Allowed(policy)]
    read = [entry_from_json(entry_to_json(each), SCHEMA) for each in entries]
    state, ledger = recover(Past(None, read), made)
    before = made().labels.place("h2")
    for _ in range(2):
        assert (state.topology.hosts["h2"], state.topology.number("s3", "h2")) == ("s3", 9)
        assert (state.labels.place("h2"), set(state.subscriptions)) == (before, {"s"})
        assert (ledger.homes, ledger.policy) == ({"h2": ("s2", 3)}, policy)
        state, ledger = recover(Past(snapshot(state, ledger)), made)


FULL = Topology.make(
    [(f"s{a}", f"s{b}") for a in range(1, 5) for b in range(1, a)],
    {f"h{n}": f"s{n % 4 + 1}" for n in range(8)},
)


def parted(trees: TreeMap | None = None) -> ControlState:
    return ControlState(FULL, RegularPlan.make(SCHEMA, bits=0), trees, Settings(labelled=True))


def edges(state: ControlState) -> list[set[frozenset[str]]]:
    return [set(map(frozenset, tree.edges)) for tree in state.set_trees.trees]


def test_each_set_of_hosts_goes_along_a_tree_of_its_own_and_each_tree_is_mended() -> None:
    state, ledger = parted(), Ledger()
    state.begin_with_sets(HostPlaces(spread=4))
    state.step([request(Op.ADVERTISE, "a", "h0"), request(Op.SUBSCRIBE, "s", "h7")])
    assert len(state.sets.sets) == len(state.set_trees) == 4
    assert len({frozenset(each) for each in edges(state)}) > 1
    (dead, *_) = edges(state)[0]
    with_it = [at for at, tree in enumerate(edges(state)) if dead in tree]
    without = [at for at in range(4) if at not in with_it]
    assert with_it and without
    before, entries = edges(state), {switch: state.label_entries(switch) for switch in FULL.switches}
    changes = state.rewire({dead}).changes
    assert set(changes) >= dead
    assert not any(dead in tree for tree in edges(state))
    assert [edges(state)[at] for at in without] == [before[at] for at in without]
    for switch in FULL.switches:  # what is for sets whose trees were not touched stays
        for at in without:
            group = state.labels.group(at)
            old, new = (
                {flow for flow in some if flow.match.within(group)}
                for some in (entries[switch], state.label_entries(switch))
            )
            assert old == new
    tables = {switch: state.label_entries(switch) for switch in FULL.switches}
    assert verify_labels(state.label_view(tables)).holds
    placed, asked = Placed(HostPlaces(spread=4)), Asked(request(Op.ADVERTISE, "a", "h0"))
    rewired = Rewired(frozenset([dead]), frozenset([dead]))
    for past in (Past(snapshot(state, ledger)), Past(None, [placed, asked, rewired])):
        again, _ = recover(past, parted)
        assert (again.sets, again.trees, again.down) == (state.sets, state.trees, state.down)
        assert again.tables == state.tables


def test_trees_of_sets_are_made_for_the_network_that_is_found_first_and_kept_after_that() -> None:
    bare = Topology.make([], {}, FULL.switches)

    def begun(trees: TreeMap | None = None) -> ControlState:
        return ControlState(bare, RegularPlan.make(SCHEMA, bits=0), trees, Settings(labelled=True))

    fewer = Topology.make(FULL.links, {"h0": "s1", "h1": "s2"}, FULL.switches)
    past = [Placed(HostPlaces(spread=3)), Found(fewer), Asked(request(Op.ADVERTISE, "a", "h0")), Found(FULL)]
    state, ledger = recover(Past(None, past), begun)
    assert (len(state.trees), len(state.sets.sets)) == (3, 3)
    assert len({frozenset(each) for each in edges(state)}) > 1
    tables = {switch: state.label_entries(switch) for switch in FULL.switches}
    assert verify_labels(state.label_view(tables)).holds
    first, _ = recover(Past(None, past[:2]), begun)
    assert edges(first) == edges(state)
    kept, _ = recover(Past(snapshot(state, ledger)), begun)
    assert (kept.sets, kept.trees, kept.tables) == (state.sets, state.trees, state.tables)


def test_a_request_depends_on_the_tree_of_the_subscribers_set_alone() -> None:
    state = parted()
    state.begin_with_sets(HostPlaces(spread=4))
    state.step([request(Op.ADVERTISE, "a", "h0"), request(Op.SUBSCRIBE, "s", "h7")])
    tree = state.set_trees.of_set(state.sets.set_of("h7"))
    path = tree.path(FULL.hosts["h0"], FULL.hosts["h7"])
    depends = Dependencies()
    for side, mine in state.all_interests():
        assert depends.of(state, side, mine) == set(path)
        assert depends.edges(state, side, mine) == set(map(frozenset, pairwise(path)))
