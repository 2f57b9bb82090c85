"""Covers that follow the room are a function of filter, sample and capacity: whatever else was asked for, and when."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import topologies

from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.controller import Controller
from flowsieve.control.cover_rule import AUTO, MOST, CoverRule
from flowsieve.control.memory.journal import Past
from flowsieve.control.memory.recovery import recover, snapshot
from flowsieve.control.request import Op, Request
from flowsieve.control.requests.ledger import Ledger
from flowsieve.control.state import ControlState, Settings
from flowsieve.flow.tables.compiler import Side
from flowsieve.header.encoding import encoding_of
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.index.sample import EventSample
from flowsieve.network.topology import Topology
from flowsieve.network.tree import TreeMap
from flowsieve.southbound.embedded.network import EmbeddedNetwork

SCHEMA = Schema.parse({name: {"type": "int", "min": 0, "max": 1023} for name in "ab"})
PLAN = RegularPlan.make(SCHEMA, 20)
Rows = list[tuple[int, int]]


def filter_of(low: tuple[int, int], width: tuple[int, int]) -> Filter:
    terms = (f"{at} <= {name} <= {at + more}" for name, at, more in zip("ab", low, width, strict=True))
    return Filter.parse(" and ".join(terms), SCHEMA)


filters = st.builds(
    filter_of,
    st.tuples(st.integers(0, 900), st.integers(0, 900)),
    st.tuples(st.integers(0, 400), st.integers(0, 400)),
)
points = st.lists(st.tuples(st.integers(0, 1023), st.integers(0, 1023)), min_size=1, max_size=60)


def sample_of(rows: Rows | None) -> EventSample | None:
    if rows is None:
        return None
    events = [dict(zip("ab", row, strict=True)) for row in rows]
    return EventSample.of(PLAN, EventBatch.from_events(SCHEMA, "h", events))


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Topology, Settings, list[Request]]:
    """A network, what its operator chose, and what its hosts ask for, each once."""
    topology = draw(topologies())
    chosen = Settings(AUTO, draw(st.none() | st.integers(2, 60)), sample=sample_of(draw(st.none() | points)))
    hosts = st.sampled_from(list(topology.hosts))
    asked = draw(st.lists(st.tuples(hosts, filters, st.booleans()), min_size=1, max_size=10))
    requests = [
        Request(Op.ADVERTISE if offers else Op.SUBSCRIBE, f"r{i}", host, wanted)
        for i, (host, wanted, offers) in enumerate(asked)
    ]
    return topology, chosen, requests


def covers(state: ControlState) -> dict[tuple[Side, str], Any]:
    return {(side, each.id): each.dz for side, each in state.all_interests()}


@settings(max_examples=settings.default.max_examples // 2)
@given(worlds(), st.integers(0, 9999))
def test_covers_do_not_depend_on_the_order_of_requests_nor_on_who_else_asks(world, seed):
    random = Random(seed)
    topology, chosen, requests = world
    states = []
    for _ in range(2):
        state = ControlState(topology, PLAN, settings=chosen)
        shuffled = random.sample(requests, len(requests))
        while shuffled:  # in slices, some of which take back what was there
            size = random.randint(1, len(shuffled))
            state.step(shuffled[:size])
            del shuffled[:size]
            there = state.all_interests()
            if there and random.random() < 0.5:
                side, gone = random.choice(there)
                op = Op.UNADVERTISE if side is Side.PUBLISHER else Op.UNSUBSCRIBE
                again = next(each for each in requests if (each.op.side, each.id) == (side, gone.id))
                state.step([Request(op, gone.id, gone.endpoint)])
                shuffled.append(again)
        states.append(state)
    for state in states:
        for (side, id), dz in covers(state).items():
            wanted = state.interests(side)[id].filter
            assert dz == CoverRule(AUTO, chosen.capacity).cover(PLAN, wanted, chosen.sample)
            assert dz == state.cover(wanted)
    first, second = map(covers, states)
    assert all(first[key] == second[key] for key in first.keys() & second.keys())
    if chosen.capacity is None:
        assert first.keys() == second.keys()
        assert states[0].tables == states[1].tables


@settings(max_examples=settings.default.max_examples // 4)
@given(worlds(), filters)
def test_a_snapshot_and_a_quote_agree_with_what_is_there(world, more):
    topology, chosen, requests = world
    encoding = encoding_of("ipv6")
    network = EmbeddedNetwork(topology, capacity=chosen.capacity)
    controller = Controller(ControlState(topology, PLAN, settings=chosen), network, encoding)
    controller.submit(requests)
    state = controller.state
    assert controller.verify().holds

    def make(trees: TreeMap | None) -> ControlState:
        return ControlState(topology, PLAN, trees, chosen)

    kept = json.loads(json.dumps(snapshot(state, Ledger())))
    again, _ = recover(Past(kept), make)
    assert covers(again) == covers(state)
    assert again.tables == state.tables
    host = next(iter(topology.hosts))
    before = state.tables
    with state.supposed(Request(Op.SUBSCRIBE, "new", host, more)) as outcome:
        if not outcome.refused:
            assert state.subscriptions["new"].dz == state.cover(more)
    assert state.tables == before


@given(filters, points, st.none() | st.integers(1, 5000), st.integers(1, 4))
def test_less_room_gives_no_finer_cover_and_none_is_finer_than_its_most(wanted, rows, capacity, less):
    sample = sample_of(rows)
    roomy = CoverRule(AUTO, capacity).cover(PLAN, wanted, sample)
    tight = CoverRule(AUTO, max(1, (capacity or 4000) // less)).cover(PLAN, wanted, sample)
    assert len(roomy) <= MOST
    if capacity is None or less > 1:
        assert tight.covers_set(roomy)
    inside = np.array([[wanted.matches(dict(zip("ab", row, strict=True)))] for row in rows])
    events = EventBatch.from_events(SCHEMA, "h", [dict(zip("ab", row, strict=True)) for row in rows])
    encoded = PLAN.encode_batch(events.take(inside[:, 0]))
    assert tight.covers_many(encoded.hi, encoded.lo, encoded.length).all()
