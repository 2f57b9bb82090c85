"""An index of filters finds whom the filters themselves say, whatever came and went."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Mapping
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Attribute, Schema
from flowsieve.errors import BadFilter, BadInput
from flowsieve.matcher import filter_index
from flowsieve.matcher.filter_index import RECEIVERS, FilterIndex

SCHEMA = Schema.parse(
    {
        "n": {"type": "int", "min": -(2**53), "max": 2**53},
        "x": {"type": "float", "min": -1.0, "max": 1.0},
        "e": {"type": "enum", "values": ["hold", "buy", "sell"]},
        "t": {"type": "bool"},
        "s": {"type": "string"},
        "p": {"type": "string", "prefix": True},
    }
)
WORDS = ("", "a", "ab", "é", "sensor", "sensor-1", "sensor-17", "sensor-2", "sensor-2é")
CONSTANTS: dict[str, tuple[object, ...]] = {
    "n": (-(2**53), -3, 0, 1, 2.5, 2**53 - 1, 2**53),
    "x": (-1.0, -0.5, 0.0, 5e-324, 0.1, 1.0),
    "e": ("hold", "buy", "sell"),
    "t": (True, False),
    "s": WORDS,
    "p": WORDS,
}
VALUES = CONSTANTS | {
    "n": (-(2**53), -4, -3, 0, 1, 2, 3, 2**53 - 1, 2**53),
    "x": (-1.0, -0.5, math.nextafter(-0.5, 0), -5e-324, 0.0, 5e-324, 0.1, math.nextafter(0.1, 1), 1.0),
    "s": (*WORDS, "b", "sensor-1\0"),
    "p": (*WORDS, "b", "sensor-1\0", "sensor-0", "sensor-18"),
}
RECEIVER = st.sampled_from([0, 1, 63, 64, 2047])
EVENT = st.fixed_dictionaries({name: st.sampled_from(values) for name, values in VALUES.items()})
SMALL = {"SLOTS": 16, "BUCKETS": 4, "FIRST_CUT": 2, "SAMPLE": 8, "EVENTS": 3}

Pair = tuple[Filter, int]


@st.composite
def conditions(draw: st.DrawFn) -> str:
    name = draw(st.sampled_from(SCHEMA.names))
    constants = st.sampled_from(CONSTANTS[name]).map(repr)
    if draw(st.booleans()):
        members = draw(st.lists(constants, min_size=1, max_size=3))
        return f"{name} {draw(st.sampled_from(['in', 'not in']))} [{', '.join(members)}]"
    ordered = ("<", "<=", ">", ">=") if name != "s" else ()
    return f"{name} {draw(st.sampled_from(['==', '!=', *ordered]))} {draw(constants)}"


EXPRESSIONS = st.recursive(
    conditions() | st.just("True"),
    lambda inner: (
        inner.map("not ({})".format)
        | st.tuples(inner, inner).map("({0[0]}) and ({0[1]})".format)
        | st.tuples(inner, inner).map("({0[0]}) or ({0[1]})".format)
    ),
    max_leaves=8,
)


def filters_of(texts: list[str]) -> list[Filter]:
    """Those of the texts that match something."""
    found = []
    for text in texts:
        try:
            found.append(Filter.parse(text, SCHEMA))
        except BadFilter:
            continue
    return found


def wanted_by(pairs: set[Pair], values: Mapping[str, object]) -> int:
    """The definition."""
    return sum(1 << receiver for receiver in {each for filter, each in pairs if filter.matches(values)})


@settings(max_examples=80)
@given(
    st.lists(EXPRESSIONS, min_size=1, max_size=8).map(filters_of).filter(bool),
    st.lists(st.tuples(st.integers(0, 7), RECEIVER, st.booleans()), max_size=24),
    st.lists(EVENT, min_size=1, max_size=8),
)
def test_the_index_agrees_with_its_filters(
    filters: list[Filter], steps: list[tuple[int, int, bool]], events: list[dict[str, object]]
) -> None:
    batch = EventBatch.from_events(SCHEMA, "h", events)
    with patch.multiple(filter_index, **SMALL):
        index, there = FilterIndex(SCHEMA), dict[tuple[frozenset[object], int], Pair]()
        for at, (number, receiver, comes) in enumerate(steps):
            filter = filters[number % len(filters)]
            pair = frozenset(filter.boxes), receiver
            if comes:
                index.add(filter, receiver)
                there[pair] = filter, receiver
            elif pair in there:
                index.remove(filter, receiver)
                del there[pair]
            else:
                with pytest.raises(KeyError, match=f"receiver {receiver} has no filter"):
                    index.remove(filter, receiver)
            assert len(index) == len(there)
            event = events[at % len(events)]
            assert index.match(event) == wanted_by(set(there.values()), event)
        right = [wanted_by(set(there.values()), event) for event in events]
        assert index.match_batch(batch) == right
        for filter, receiver in there.values():
            index.remove(filter, receiver)
        assert len(index) == index.nbytes == 0
        assert index.match_batch(batch) == [0] * len(events)


def drawn_boxes(rng: np.random.Generator, number: int) -> tuple[Schema, list[Filter], np.ndarray, np.ndarray]:
    """Boxes on some of five attributes, and their bounds."""
    schema = Schema(tuple(Attribute(f"a{i}", "float", 0.0, 1.0) for i in range(5)))
    low = rng.random((number, 5)) * 0.7
    high = low + 0.3
    free = rng.random(low.shape) < 0.3
    low[free], high[free] = 0.0, 1.0
    filters = [
        Filter.parse(
            " and ".join(
                f"{a!r} <= {name} <= {b!r}" for name, a, b in zip(schema.names, one, other, strict=True)
            ),
            schema,
        )
        for one, other in zip(low.tolist(), high.tolist(), strict=True)
    ]
    return schema, filters, low, high


def test_thousands_of_boxes_are_found_while_they_come_and_go() -> None:
    rng = np.random.default_rng(3)
    schema, filters, low, high = drawn_boxes(rng, 2_000)
    points = rng.random((60, 5))
    held = ((low[None] <= points[:, None]) & (points[:, None] <= high[None])).all(axis=2)
    receiver = rng.integers(0, RECEIVERS, len(filters))
    empty = np.full(len(points), "", dtype=object)
    events = EventBatch(schema, empty, empty, dict(zip(schema.names, points.T.copy(), strict=True)))
    with patch.object(filter_index, "SLOTS", 512):
        index, there = FilterIndex(schema), np.zeros(len(filters), np.bool_)
        for change in range(4):
            leaving = np.flatnonzero(there & (rng.random(len(filters)) < 0.6))
            coming = np.flatnonzero(~there & (rng.random(len(filters)) < 0.8))
            for i in leaving.tolist():
                index.remove(filters[i], int(receiver[i]))
            for i in coming.tolist():
                index.add(filters[i], int(receiver[i]))
            there[leaving], there[coming] = False, True
            right = [sum(1 << int(r) for r in {*receiver[row & there].tolist()}) for row in held]
            assert index.match_batch(events) == right, f"after change {change}"
            assert len(index) == there.sum()


def test_equal_filters_are_kept_once_for_neighbours() -> None:
    index = FilterIndex(SCHEMA)
    index.add(Filter.parse("n < 3 or t", SCHEMA), 0)
    alone = len(index._keys)
    for receiver in range(64):
        index.add(Filter.parse("t or n <= 2", SCHEMA), receiver)
    assert len(index) == 64
    assert len(index._keys) == alone
    assert index.match({"n": 9, "x": 0.0, "e": "buy", "t": True, "s": "", "p": ""}) == 2**64 - 1


def test_memory_follows_what_is_held() -> None:
    schema, filters, *_ = drawn_boxes(np.random.default_rng(4), 300)
    with patch.object(filter_index, "SLOTS", 64):
        index = FilterIndex(schema)
        index.add(filters[0], 7)
        least = index.nbytes
        for filter in filters:
            index.add(filter, 7)
        assert index.nbytes == 5 * least
        for filter in filters[1:]:
            index.remove(filter, 7)
        assert index.nbytes == least


def test_a_string_that_nobody_names_any_more_is_forgotten() -> None:
    index = FilterIndex(SCHEMA)
    for i in range(100):
        filter = Filter.parse(f"s == 'word {i}'", SCHEMA)
        index.add(filter, 5)
        assert index.match({"n": 0, "x": 0.0, "e": "buy", "t": True, "s": f"word {i}", "p": ""}) == 1 << 5
        index.remove(filter, 5)
    assert index._lines._named["s"].numbers == {}


def test_a_filter_that_excludes_many_strings_takes_one_slot() -> None:
    many = [f"word {i}" for i in range(500)]
    index = FilterIndex(SCHEMA)
    index.add(Filter.parse(f"s not in {many} and p not in {many}", SCHEMA), 1)
    assert len(index._keys) == 1
    values = {"n": 0, "x": 0.0, "e": "buy", "t": True}
    assert index.match(values | {"s": "word", "p": "word"}) == 2
    assert index.match(values | {"s": "word", "p": "word 77"}) == 0


def test_receivers_beyond_the_last_and_filters_of_other_schemas_are_refused() -> None:
    index, filter = FilterIndex(SCHEMA), Filter.parse("t", SCHEMA)
    for receiver in (-1, RECEIVERS):
        with pytest.raises(ValueError, match="from 0 to 2047"):
            index.add(filter, receiver)
    other = Schema.parse({"t": {"type": "bool"}})
    with pytest.raises(BadInput, match="another schema"):
        index.add(Filter.parse("t", other), 0)
    assert len(index) == 0


def test_matching_needs_neither_pandas_nor_spark() -> None:
    program = (
        "import sys; import flowsieve.matcher.filter_index; "
        "print(*sorted({'pandas', 'pyarrow', 'pyspark'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
