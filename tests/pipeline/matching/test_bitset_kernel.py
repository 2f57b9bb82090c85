"""Bitsets with summaries say the same as plain ones, and boxes in an order of their own are the same boxes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.pipeline.evaluation.box_bitsets import TABLE, BoxBitsets
from flowsieve.pipeline.evaluation.evaluation import Bench, Candidate, MatchCounter
from flowsieve.pipeline.matching import bitset_kernel as kernel
from flowsieve.pipeline.matching import match_kernel
from flowsieve.pipeline.matching.boxes import BoxTable
from flowsieve.pipeline.matching.locality import WORD, near_order
from flowsieve.pipeline.matching.matcher import Matcher

SCHEMA = Schema.parse({name: {"type": "int", "min": 0, "max": 4095} for name in "abc"})
WORDS = 130  # which need three words of summary
NUMBERS = st.one_of(
    st.floats(-2.0, 2.0),
    st.floats(-1.7e308, 1.7e308),
    st.sampled_from([5e-324, 1e308, -1e308]),
)


def random_rows(seed: int, rows: int, share: float) -> NDArray[np.uint64]:
    """Rows of bits with so many words that are not empty."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 1 << 63, (rows, WORDS)).astype(np.uint64) * np.uint64(2)
    bits |= rng.integers(0, 2, bits.shape).astype(np.uint64)
    return np.where(rng.random(bits.shape) < share, bits, np.uint64(0))


def shared(seed: int, events: int) -> tuple[kernel.SparseWords, NDArray[np.bool_]]:
    """What rows share as the kernel says it, and plainly: a row per event, a column per bit."""
    bits = random_rows(seed, 40, 0.5)
    rows = np.random.default_rng(seed).integers(0, 40, (events, 3))
    words = kernel.SparseWords.room(events, WORDS)
    kernel.shared_words(bits, kernel.summarise(bits), rows, words)
    plain = np.bitwise_and.reduce(bits[rows], axis=1)
    return words, np.unpackbits(plain.view(np.uint8), axis=1, bitorder="little").astype(np.bool_)


def test_words_that_rows_share_are_those_of_a_plain_and() -> None:
    words, plain = shared(1, 200)
    found = np.zeros((200, WORDS), np.uint64)
    for i in range(200):
        some = slice(words.start[i], words.start[i + 1])
        found[i, words.place[some]] = words.word[some]
    assert words.word[: words.start[-1]].all()
    assert np.array_equal(np.unpackbits(found.view(np.uint8), axis=1, bitorder="little"), plain)
    assert 0 < words.start[-1] < 200 * WORDS


@pytest.mark.parametrize("sets", [1, kernel.FULL, kernel.FULL + 1, 700])
def test_counts_per_bit_are_those_of_a_plain_sum(sets: int) -> None:
    words, plain = shared(2, sets)
    planes = kernel.Planes.of(WORDS * 64)
    owner = np.random.default_rng(3).permutation(WORDS * 64)
    totals = np.zeros(WORDS * 64, np.int64)
    for _ in range(2):
        kernel.count_words(words, sets, planes)
    kernel.drain(planes, owner, totals)
    assert np.array_equal(totals[owner], 2 * plain.sum(axis=0))
    kernel.drain(planes, owner, totals)
    assert np.array_equal(totals[owner], 2 * plain.sum(axis=0))


def test_bits_that_the_other_set_lacks_are_those_of_a_plain_difference() -> None:
    one, plain_one = shared(4, 300)
    other, plain_other = shared(5, 300)
    owner, totals = np.arange(WORDS * 64)[::-1], np.zeros(WORDS * 64, np.int64)
    kernel.count_lacking(one, other, 300, owner, totals)
    assert np.array_equal(totals[owner], (plain_one & ~plain_other).sum(axis=0))


def test_owners_are_listed_once_though_they_have_several_bits() -> None:
    words, plain = shared(6, 50)
    owner = np.arange(WORDS * 64) // 5
    start = np.zeros(51, np.int64)
    who = kernel.list_owners(words, 50, owner, start, np.empty(0, np.int64))
    for i in range(50):
        assert who[start[i] : start[i + 1]].tolist() == np.unique(owner[plain[i]]).tolist()


@given(st.lists(st.tuples(NUMBERS, NUMBERS), max_size=200), st.integers(0, 3))
def test_an_order_of_boxes_has_each_once(ends: list[tuple[float, float]], dimensions: int) -> None:
    pairs = np.array([sorted(pair) for pair in ends]).reshape(-1, 2)
    low, high = (np.repeat(pairs[:, i : i + 1], dimensions, axis=1) for i in (0, 1))
    assert sorted(near_order(low, high).tolist()) == list(range(len(ends)))


def test_boxes_that_lie_together_share_a_word() -> None:
    rng = np.random.default_rng(7)
    group = rng.permutation(np.repeat(np.arange(16), WORD))
    middle = np.stack([group % 4, group // 4], axis=1) * 100.0 + rng.random((len(group), 2))
    order = near_order(middle - 1, middle + 1)
    assert all(len(set(part.tolist())) == 1 for part in group[order].reshape(-1, WORD))


@given(
    st.lists(NUMBERS, min_size=1, max_size=40, unique=True),
    st.lists(st.one_of(NUMBERS, st.floats()), max_size=40),
)
def test_the_segment_of_a_value_is_the_number_of_edges_up_to_it(
    edges: list[float], values: list[float]
) -> None:
    """Whatever the values: NaN is before all edges."""
    schema = Schema.parse({"x": {"type": "float", "min": -1.7e308, "max": 1.7e308}})
    line = np.array(sorted(edges))
    table = BoxTable(schema, len(line), np.arange(len(line)), line[:, None], line[:, None], {})
    matcher = Matcher.of(table)
    points = np.array([[*values, *edges]])
    known = matcher.boxes.edges
    plain = [0 if np.isnan(value) else int((known <= value).sum()) for value in points[0]]
    assert matcher.rows(points)[:, 0].tolist() == plain
    assert matcher.boxes.hints[0, match_kernel.BUCKETS] == len(known)


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("size", [50, 4 * TABLE])
def test_boxes_touch_the_cells_that_they_share_places_with(cut: bool, size: int) -> None:
    rng = np.random.default_rng(8)
    first = rng.integers(0, size, (100, 2))
    last = np.minimum(first + rng.integers(0, size // 3, first.shape), size - 1)
    begin = rng.integers(0, size, (300, 2))
    end = np.minimum(begin + rng.integers(0, size // 5, begin.shape), size - 1) if cut else begin
    sides = BoxBitsets.of(first.astype(np.uint64), last.astype(np.uint64), np.arange(100), cut)
    rows = sides.rows(begin.astype(np.uint64), end.astype(np.uint64))
    found = np.bitwise_and.reduce(sides.bits[rows], axis=1)
    touched = (first[None] <= end[:, None]) & (begin[:, None] <= last[None])
    bits = np.unpackbits(found.view(np.uint8), axis=1, bitorder="little")[:, :100]
    assert np.array_equal(bits, touched.all(axis=2))
    assert 0 < bits.sum() < bits.size


def test_thousands_of_subscriptions_are_counted_alike_as_bits_and_as_lists() -> None:
    """More than one word of summary has bits for; and in an order that is not theirs."""
    rng = np.random.default_rng(9)
    number = 64 * 64 + 300
    low = rng.integers(0, 4000, (number, 3))
    high = np.minimum(low + rng.integers(0, 900, low.shape), 4095)
    filters = [
        Filter.parse(
            " and ".join(f"{a} <= {name} <= {b}" for name, a, b in zip("abc", one, other, strict=True)),
            SCHEMA,
        )
        for one, other in zip(low.tolist(), high.tolist(), strict=True)
    ]
    boxes = BoxTable.of(SCHEMA, filters)
    columns = {name: rng.integers(0, 4096, 1500).astype(np.float64) for name in "abc"}
    none = np.full(1500, "", dtype=object)
    events = EventBatch(SCHEMA, none, none, columns)
    candidate = Candidate.of(RegularPlan.make(SCHEMA, bits=12), filters, 0, count=False)
    bench = Bench.of([candidate], boxes)
    assert bench.coverages[0].order is not None
    listing = Bench(boxes, bench.matcher, (candidate.coverage,))
    counts = []
    for each in (bench, listing):
        count = MatchCounter.of(each)
        count.add(events)
        counts.append(count.settled())
    by_bits, by_lists = counts
    assert np.array_equal(by_bits.matched, boxes.matches(boxes.points(events)).sum(axis=1))
    assert np.array_equal(by_bits.matched, by_lists.matched)
    assert np.array_equal(by_bits.tallies[0].covered, by_lists.tallies[0].covered)
    assert by_bits.tallies[0].covered.sum() > by_bits.matched.sum() > 0
    assert not by_bits.tallies[0].missed.any()
