"""Filters as arrays of boxes, and the bitsets that match them."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.errors import BadFilter
from flowsieve.pipeline.matching import match_kernel as kernel
from flowsieve.pipeline.matching.boxes import BoxTable
from flowsieve.pipeline.matching.matcher import Matcher, matcher_of
from flowsieve.pipeline.matching.statistics import add_events, empty_sums, of_sums

SCHEMA = Schema.parse(
    {
        "level": {"type": "int", "min": 0, "max": 9},
        "ratio": {"type": "float", "min": 0.0, "max": 1.0},
        "kind": {"type": "enum", "values": ["x", "y", "z"]},
        "name": {"type": "string"},
        "code": {"type": "string", "prefix": True},
    }
)
CONDITIONS = st.sampled_from(
    [
        "level < 5",
        "3 <= level <= 6",
        "level != 4",
        "ratio > 0.5",
        "0.25 <= ratio < 0.75",
        "kind in ('x', 'z')",
        "kind != 'y'",
        "name == 'b'",
        "name != 'b'",
        "name not in ('a', 'c')",
        "'a' <= code < 'bb'",
        "code > 'b'",
        "True",
    ]
)
FILTERS = st.lists(CONDITIONS, min_size=1, max_size=3).map(" and ".join)
TEXTS = st.lists(FILTERS, min_size=1, max_size=3).map(" or ".join)


def events_of(count: int, seed: int = 0) -> EventBatch:
    rng = np.random.default_rng(seed)
    values = [
        {
            "level": int(rng.integers(0, 10)),
            "ratio": float(rng.choice([0.0, 0.25, 0.5, 0.75, 1.0])),
            "kind": str(rng.choice(["x", "y", "z"])),
            "name": str(rng.choice(["", "a", "b", "c", "d"])),
            "code": str(rng.choice(["", "a", "b", "ba", "bb", "c"])),
        }
        for _ in range(count)
    ]
    return EventBatch.from_events(SCHEMA, "", values)


EVENTS = events_of(200)


def parsed(texts: list[str]) -> list[Filter]:
    filters = []
    for text in texts:
        with suppress(BadFilter):  # a conjunction that can match nothing
            filters.append(Filter.parse(text, SCHEMA))
    return filters


@given(st.lists(TEXTS, min_size=1, max_size=6))
def test_boxes_and_bitsets_match_what_the_filters_match(texts: list[str]) -> None:
    filters = parsed(texts)
    if not filters:
        return
    table = BoxTable.of(SCHEMA, filters)
    wanted = np.array([filter.matches_batch(EVENTS) for filter in filters])
    assert np.array_equal(table.matches(table.points(EVENTS)), wanted)
    sums = empty_sums(table)
    add_events(table, Matcher.of(table), EVENTS, sums)
    assert np.array_equal(sums.traffic, wanted.sum(axis=1))
    assert sums.events.tolist() == [len(EVENTS), int((~wanted.any(axis=0)).sum())]


@given(st.lists(TEXTS, min_size=1, max_size=6))
def test_matches_along_dimensions_are_those_of_a_plain_count(texts: list[str]) -> None:
    filters = parsed(texts)
    if not filters:
        return
    table = BoxTable.of(SCHEMA, filters)
    points = table.points(EVENTS)
    along = np.zeros((len(SCHEMA), table.subscriptions, len(EVENTS)), bool)
    for box, owner in enumerate(table.owner):
        for d in range(len(SCHEMA)):
            along[d, owner] |= (table.low[box, d] <= points[d]) & (points[d] <= table.high[box, d])
    sums = empty_sums(table)
    add_events(table, Matcher.of(table), EVENTS, sums)
    found = of_sums(table, sums).matched
    for i in range(len(SCHEMA)):
        for j in range(len(SCHEMA)):
            assert found[i, j] == (along[i] & along[j]).sum()


def test_many_boxes_fill_several_words() -> None:
    filters = [Filter.parse(f"level == {i % 10} and ratio <= {i / 200}", SCHEMA) for i in range(200)]
    table = BoxTable.of(SCHEMA, filters)
    sums = empty_sums(table)
    add_events(table, Matcher.of(table), EVENTS, sums)
    wanted = np.array([filter.matches_batch(EVENTS).sum() for filter in filters])
    assert np.array_equal(sums.traffic, wanted)


def test_a_constraint_with_gaps_makes_several_boxes_of_one_subscription() -> None:
    table = BoxTable.of(SCHEMA, [Filter.parse("name != 'b'", SCHEMA), Filter.parse("level < 3", SCHEMA)])
    assert table.owner.tolist() == [0, 0, 1]
    assert table.subscriptions == 2


def test_overlaps_are_counted_between_subscriptions_only() -> None:
    texts = ["level < 3 or level > 6", "level < 5", "level == 9"]
    table = BoxTable.of(SCHEMA, [Filter.parse(text, SCHEMA) for text in texts])
    pairs, *overlapping = kernel.overlapping_pairs(table.low, table.high, table.owner).tolist()
    assert pairs == 5  # of 4 boxes, and the first two are of one subscription
    assert overlapping[0] == 2  # level < 3 with level < 5, level > 6 with level == 9
    assert overlapping[1:5] == [5, 5, 5, 5]
    assert overlapping[5] == 2


def test_variance_is_that_of_the_values_on_a_line_from_0_to_1() -> None:
    table = BoxTable.of(SCHEMA, [Filter.parse("True", SCHEMA)])
    sums = empty_sums(table)
    add_events(table, Matcher.of(table), EVENTS, sums)
    found = of_sums(table, sums)
    assert found.variance[0] == pytest.approx(np.var(EVENTS.columns["level"] / 9), rel=1e-6)
    assert found.variance[1] == pytest.approx(np.var(EVENTS.columns["ratio"]), rel=1e-6)


def test_a_matcher_is_made_once_for_the_same_boxes() -> None:
    one = BoxTable.of(SCHEMA, [Filter.parse("level < 3", SCHEMA)])
    same = BoxTable.of(SCHEMA, [Filter.parse("level < 3", SCHEMA)])
    other = BoxTable.of(SCHEMA, [Filter.parse("level < 4", SCHEMA)])
    first = matcher_of(one)
    assert matcher_of(same) is first
    assert matcher_of(other) is not first
