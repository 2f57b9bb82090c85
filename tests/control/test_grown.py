"""A network that was found is a function of the journal, as all else is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial

import pytest

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.memory.journal import (
    Asked,
    Bounded,
    Entry,
    Found,
    Past,
    Rewired,
    entry_from_json,
    entry_to_json,
)
from flowsieve.control.memory.recovery import last_found, recover, replay, snapshot
from flowsieve.control.request import Op, Request
from flowsieve.control.requests.ledger import Ledger
from flowsieve.control.state import ControlState, Settings
from flowsieve.errors import BadInput, JournalError
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.network.generators import ring
from flowsieve.network.topology import Topology
from flowsieve.network.tree import TreeMap

SCHEMA = Schema.parse({"a": {"type": "int", "min": 0, "max": 15}, "b": {"type": "int", "min": 0, "max": 7}})
PLAN = RegularPlan.make(SCHEMA, bits=6)
SWITCHES = ["s1", "s2", "s3", "s4"]
ALONE = Topology.make((), {}, SWITCHES)


def fresh(spread: int, trees: TreeMap | None) -> ControlState:
    if trees is None and spread > 1:
        trees = TreeMap.spread(ALONE, spread)
    return ControlState(ALONE, PLAN, trees, Settings(budget=8))


def network(*links: tuple[str, str], hosts: Sequence[str] = ()) -> Topology:
    return Topology.make(links, {host: f"s{host[1]}" for host in hosts}, SWITCHES)


def asked(op: Op, id: str, host: str, text: str) -> Asked:
    return Asked(Request(op, id, host, Filter.parse(text, SCHEMA)))


LIFE: list[Entry] = [
    Found(network(("s1", "s2"), ("s3", "s4"), hosts=["h1", "h2"])),
    asked(Op.ADVERTISE, "p", "h1", "True"),
    asked(Op.SUBSCRIBE, "x", "h2", "a < 9"),
    Found(network(("s1", "s2"), ("s3", "s4"), hosts=["h1", "h2", "h3"])),
    asked(Op.SUBSCRIBE, "y", "h3", "b < 3"),  # cut off from the publisher
    Found(network(("s1", "s2"), ("s3", "s4"), ("s2", "s3"), hosts=["h1", "h2", "h3"])),
    asked(Op.ADVERTISE, "q", "h3", "a > 5"),
    Found(network(("s1", "s2"), ("s3", "s4"), ("s2", "s3"), ("s4", "s1"), hosts=["h1", "h2", "h3", "h4"])),
    Rewired(frozenset({frozenset(("s2", "s3"))})),
    asked(Op.SUBSCRIBE, "z", "h4", "a == 3"),
]


def tables(state: ControlState) -> dict[str, object]:
    return {switch: state.table(switch) for switch in state.topology.switches}


@pytest.mark.parametrize("spread", [1, 2])
def test_a_controller_that_is_killed_after_it_found_its_network_has_the_same_trees_again(spread: int) -> None:
    ring_with_a_chord = [("s1", "s2"), ("s2", "s3"), ("s3", "s4"), ("s4", "s1"), ("s1", "s3")]
    found = Found(network(*ring_with_a_chord, hosts=["h1", "h2", "h3"]))
    live, ledger = recover(Past(), partial(fresh, spread))
    replay(live, ledger, found)
    again, _ = recover(Past(None, [found]), partial(fresh, spread))
    assert again.trees == live.trees


@pytest.mark.parametrize("spread", [1, 2])
def test_a_network_that_grew_comes_back_from_any_snapshot(spread: int) -> None:
    make = partial(fresh, spread)
    live, ledger = make(None), Ledger()
    taken = [snapshot(live, ledger)]
    for entry in LIFE:
        replay(live, ledger, entry)
        taken.append(json.loads(json.dumps(snapshot(live, ledger))))
    for number, kept in enumerate(taken[1:], 1):
        past = Past(kept, LIFE[number:])
        state, _ = recover(past, make)
        assert tables(state) == tables(live), number
        assert (state.topology, state.trees, state.down) == (live.topology, live.trees, live.down)
        assert last_found(past) == live.topology
    state, _ = recover(Past(None, LIFE), make)
    assert tables(state) == tables(live)


def test_trees_are_kept_when_a_network_grows_and_joined_where_it_fell_apart() -> None:
    state = fresh(1, None)
    ledger = Ledger()
    for entry in LIFE[:5]:
        replay(state, ledger, entry)
    before = {frozenset(edge) for edge in state.trees.trees[0].edges}
    assert before == {frozenset(("s1", "s2")), frozenset(("s3", "s4"))}
    assert state.table("s1") and state.table("s3") == {}
    replay(state, ledger, LIFE[5])
    assert {frozenset(edge) for edge in state.trees.trees[0].edges} == before | {frozenset(("s2", "s3"))}
    assert state.table("s3")
    replay(state, ledger, LIFE[7])  # closes the ring: no tree needs it
    assert {frozenset(edge) for edge in state.trees.trees[0].edges} == before | {frozenset(("s2", "s3"))}


def test_a_network_may_lose_links_and_switches_and_the_rest_is_joined_otherwise() -> None:
    state, ledger = fresh(1, None), Ledger()
    for entry in [*LIFE[:8], Bounded("s3", 50)]:
        replay(state, ledger, entry)
    less = Topology.make([("s1", "s2"), ("s4", "s1")], {"h1": "s1", "h2": "s2"}, ["s1", "s2", "s4"])
    for id, host, op in (("y", "h3", Op.UNSUBSCRIBE), ("q", "h3", Op.UNADVERTISE)):
        replay(state, ledger, Asked(Request(op, id, host)))
    replay(state, ledger, Found(less))
    (tree,) = state.trees.trees
    assert {frozenset(edge) for edge in tree.edges} == {frozenset(("s1", "s2")), frozenset(("s1", "s4"))}
    assert set(tree.switches) == {"s1", "s2", "s4"}
    assert (state.down, state.bounds) == (frozenset(), {})
    assert state.table("s1") and state.table("s4") == {}
    again, _ = recover(Past(json.loads(json.dumps(snapshot(state, ledger)))), partial(fresh, 1))
    assert (tables(again), again.trees) == (tables(state), state.trees)


def test_the_first_time_trees_are_made_for_what_is_found() -> None:
    state, whole = fresh(1, None), ring(6)
    state = ControlState(Topology.make((), {}, whole.switches), PLAN)
    state.grow(whole)
    assert state.trees == ControlState(whole, PLAN).trees


def test_a_host_that_nobody_found_yet_is_refused() -> None:
    state = fresh(1, None)
    with pytest.raises(BadInput, match="there is no host 'h1'"):
        state.check(asked(Op.ADVERTISE, "p", "h1", "True").request)


def test_an_entry_is_written_and_read_with_its_ports() -> None:
    numbered = Topology.make([("s1", "s2")], {"h1": "s1"}, numbers={"s1": {"s2": 41, "h1": 7}})
    entry = Found(numbered)
    assert entry_from_json(json.loads(json.dumps(entry_to_json(entry))), SCHEMA) == entry
    damaged = entry_to_json(entry)
    damaged["network"]["numbers"] = {"s1": {"s2": 41}}
    with pytest.raises(JournalError, match="cannot be read"):
        entry_from_json(damaged, SCHEMA)
