"""Entries as JSON values: all of an entry comes back, and what is no entry is told as such."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.memory.journal import (
    Asked,
    Bounded,
    CrossingBegun,
    CrossingEnded,
    CrossingEntered,
    Divided,
    Entry,
    IndexLeft,
    Origin,
    Rewired,
    Undone,
    entry_from_json,
    entry_to_json,
)
from flowsieve.control.partitions.division import Division
from flowsieve.control.request import Op, Request
from flowsieve.control.transition.crossing import CrossingPhase
from flowsieve.control.transition.served_index import ServedIndex
from flowsieve.errors import JournalError
from flowsieve.header.tag import POOLS
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.network.generators import ring
from flowsieve.network.tree import TreeMap

SCHEMA = Schema.parse({"a": {"type": "int", "min": 0, "max": 15}, "s": {"type": "string"}})

names = st.text(min_size=1, max_size=8)
texts = st.sampled_from(["a < 3", "a >= 4 or s == 'ä\"'", "s in ('x', 'y') and not a == 2"])


@st.composite
def requests(draw: st.DrawFn) -> Request:
    op = draw(st.sampled_from(Op))
    filter = Filter.parse(draw(texts), SCHEMA) if op.adding else None
    return Request(op, draw(names), draw(names), filter)


origins = st.none() | st.builds(Origin, names, st.integers(1, 1 << 62), st.floats(0, 1e12))
edges = st.frozensets(names, min_size=2, max_size=2)
indexes = st.builds(
    ServedIndex,
    st.integers(0, 1 << 40),
    st.sampled_from(POOLS["ipv6"]),
    st.integers(0, 20).map(lambda bits: RegularPlan.make(SCHEMA, bits=bits)),
)
TREES = TreeMap.spread(ring(4), 2)
entries = (
    st.builds(Asked, requests(), origins)
    | st.builds(Undone, requests(), origins, names, st.text())
    | st.builds(Rewired, st.frozensets(edges), st.none() | st.frozensets(edges))
    | st.builds(Bounded, names, st.integers(0) | st.none())
    | st.builds(Divided, st.integers(1, 40).map(lambda n: Division.even(n).partitions))
    | st.builds(CrossingBegun, indexes, indexes, st.booleans(), st.none() | st.just(TREES))
    | st.builds(CrossingEntered, st.sampled_from(CrossingPhase))
    | st.builds(CrossingEnded, st.booleans())
    | st.builds(IndexLeft, st.integers(0, 1 << 40))
)


@given(entries)
def test_an_entry_comes_back_whole(entry: Entry) -> None:
    assert entry_from_json(json.loads(json.dumps(entry_to_json(entry))), SCHEMA) == entry


GOOD = entry_to_json(Asked(Request(Op.SUBSCRIBE, "x", "h", Filter.parse("a < 3", SCHEMA)), Origin("s", 1)))


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "unheard-of"},
        {"op": "subscribe"},
        {"filter": None},
        {"filter": 5},
        {"op": "unsub"},
        {"origin": 7},
        {"origin": []},
        {"kind": "rewired"},
        {"kind": "bounded"},
        {"kind": "undone"},
        {"kind": []},
    ],
)
def test_what_is_no_entry_is_told_as_such(change: dict[str, Any]) -> None:
    entry_from_json(GOOD, SCHEMA)
    with pytest.raises(JournalError, match="the journal has an entry"):
        entry_from_json(GOOD | change, SCHEMA)


@pytest.mark.parametrize("value", [None, 3, [], {}, "asked"])
def test_neither_are_other_values(value: Any) -> None:
    with pytest.raises(JournalError, match="cannot be read"):
        entry_from_json(value, SCHEMA)
