"""A state in which some hosts' packets name their receivers and others' go by dz: subscriptions are in both."""

from __future__ import annotations

import pytest

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.core import Core
from flowsieve.control.memory.journal import Asked, Found, NoJournal, Past
from flowsieve.control.memory.recovery import recover, snapshot
from flowsieve.control.memory.scribe import Scribe
from flowsieve.control.request import Op, Request
from flowsieve.control.requests.ledger import Ledger
from flowsieve.control.state import ControlState, Settings
from flowsieve.errors import BadInput, TableFull
from flowsieve.flow.guard import GuardSettings
from flowsieve.flow.tables.compiler import Side
from flowsieve.header.address import Prefix
from flowsieve.header.encoding import encoding_of
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.network.host_patterns import HostPatterns
from flowsieve.network.topology import Topology
from flowsieve.network.tree import TreeMap
from flowsieve.southbound.embedded.network import EmbeddedNetwork
from flowsieve.testing.embedded_fabric import EmbeddedFabric

SCHEMA = Schema.parse({"x": {"type": "int", "min": 0, "max": 15}})
RING = [("s1", "s2"), ("s2", "s3"), ("s3", "s1")]
SMALL = Topology.make(RING, {"l1": "s1", "h1": "s1", "h2": "s2"})
LARGE = Topology.make([*RING, ("s3", "s4")], {"l1": "s1", "h1": "s1", "h2": "s2", "l4": "s4", "h4": "s4"})
LABELLED = HostPatterns(("l*",))
LABELS, DZ = Prefix.parse("ff1e::/16"), Prefix.parse("ff0e::/16")


def made(trees: TreeMap | None = None, capacity: int | None = None) -> ControlState:
    chosen = Settings(labelled=True, label_hosts=LABELLED, capacity=capacity)
    return ControlState(SMALL, RegularPlan.make(SCHEMA), trees, chosen)


def request(op: Op, id: str, host: str, text: str = "x < 4") -> Request:
    return Request(op, id, host, Filter.parse(text, SCHEMA))


def test_a_subscription_costs_entries_where_dz_are_sent_and_is_told_where_labels_are() -> None:
    state = made()
    assert state.step([request(Op.ADVERTISE, "a", "l1")]).changes == {}
    outcome = state.step([request(Op.SUBSCRIBE, "s", "h2")])
    assert (outcome.changes, set(outcome.told)) == ({}, {"l1"})
    outcome = state.step([request(Op.ADVERTISE, "b", "h1", "x < 8")])
    assert (set(outcome.changes), outcome.told) == ({"s1", "s2"}, {})
    outcome = state.step([Request(Op.UNSUBSCRIBE, "s", "h2")])
    assert (set(outcome.changes), set(outcome.told)) == ({"s1", "s2"}, {"l1"})


def test_who_has_to_know_of_an_interest_are_those_who_label() -> None:
    state = made()
    state.step([request(Op.ADVERTISE, "a", "l1"), request(Op.ADVERTISE, "b", "h1")])
    state.step([request(Op.SUBSCRIBE, "s", "h2")])
    concerned = state.filters.concerned
    assert list(concerned(state.subscriptions["s"], Side.SUBSCRIBER)) == ["l1"]
    assert list(concerned(state.advertisements["a"], Side.PUBLISHER)) == ["l1"]
    assert list(concerned(state.advertisements["b"], Side.PUBLISHER)) == []


def test_it_is_the_same_after_a_restart_and_when_it_has_grown() -> None:
    asked = [
        request(Op.ADVERTISE, "a", "l1"),
        request(Op.ADVERTISE, "b", "h1", "x < 8"),
        request(Op.SUBSCRIBE, "s", "h2"),
    ]
    state = made()
    state.step(asked)
    place = state.labels.place("h2")
    state.grow(LARGE)
    state.step([request(Op.SUBSCRIBE, "t", "h4"), request(Op.ADVERTISE, "c", "l4")])
    assert state.labels.place("h2") == place
    kept, _ = recover(Past(snapshot(state, Ledger())), made)
    entries = [
        *map(Asked, asked),
        Found(LARGE),
        Asked(request(Op.SUBSCRIBE, "t", "h4")),
        Asked(request(Op.ADVERTISE, "c", "l4")),
    ]
    again, _ = recover(Past(None, entries), made)
    for other in (kept, again):
        assert (other.tables, other.sets) == (state.tables, state.sets)
        held = {filter.text: sorted(hosts) for filter, hosts in other.filters.held_by("l4")}
        assert held == {"x < 4": ["h2", "h4"]}
        assert not list(other.filters.held_by("h1"))


def test_what_is_refused_for_want_of_room_is_told_to_nobody() -> None:
    need = max(map(made().size, SMALL.switches))
    state = made(capacity=need + need // 2)  # none is left for dz
    state.step([request(Op.ADVERTISE, "a", "l1"), request(Op.ADVERTISE, "b", "h1", "x < 8")])
    outcome = state.step([request(Op.SUBSCRIBE, "s", "h2"), request(Op.SUBSCRIBE, "t", "h2", "x > 8")])
    ((refused, why),) = outcome.refused
    assert (refused.id, isinstance(why, TableFull)) == ("s", True)
    assert [(each.filter.text, each.wanted) for each in outcome.told.get("l1", [])] == []
    state.step([request(Op.ADVERTISE, "c", "l1", "x > 8")])
    assert [filter.text for filter, _ in state.filters.held_by("l1")] == ["x > 8"]
    outcome = state.step([request(Op.SUBSCRIBE, "u", "h2"), request(Op.SUBSCRIBE, "v", "h2", "x > 9")])
    assert [each.filter.text for each in outcome.told["l1"]] == ["x > 9"]


def test_labels_without_room_take_no_dz_away() -> None:
    state, ledger = made(), Ledger()
    state.step([request(Op.ADVERTISE, "b", "h1"), request(Op.SUBSCRIBE, "s", "h2")])
    tables = {switch: state.table(switch) for switch in SMALL.switches}
    with pytest.raises(TableFull):
        state.bound("s2", 1)
    state.grow(SMALL)
    kept, _ = recover(Past(snapshot(state, ledger)), made)
    for other in (state, kept):
        assert {switch: other.table(switch) for switch in SMALL.switches if switch != "s2"} == {
            switch: table for switch, table in tables.items() if switch != "s2"
        }


def test_a_host_is_let_in_with_what_it_sends_and_with_nothing_else() -> None:
    state = made()
    fabric = EmbeddedFabric(EmbeddedNetwork(SMALL), lambda event: None)
    core = Core(
        state, fabric, encoding_of("ipv6"), Scribe(NoJournal()), guarding=lambda topology: GuardSettings()
    )
    state.step([request(Op.ADVERTISE, "a", "l1"), request(Op.ADVERTISE, "b", "h1")])
    guard = core.guard_of("s1")
    gates = {gate.port: gate.admitted for gate in guard.gates}
    assert gates[SMALL.port("s1", "l1")] == (LABELS,)
    assert gates[SMALL.port("s1", "h1")] == (Prefix.parse("ff0e::/18"),)
    assert guard.within == (DZ, LABELS)
    assert guard.entries == 2 * (1 + 2 + 2) + 2
    core.silenced.add("l1")
    assert {gate.port: gate.admitted for gate in core.guard_of("s1").gates}[SMALL.port("s1", "l1")] == ()
    core.unguarded.add("s1")
    assert (core.guard_of("s1").open, core.guard_of("s1").within) == (True, (DZ, LABELS))


def test_who_labels_is_said_where_labels_are() -> None:
    with pytest.raises(BadInput, match="right is labelled = True"):
        Settings(label_hosts=LABELLED)
    with pytest.raises(BadInput, match="name no hosts"):
        HostPatterns(())
