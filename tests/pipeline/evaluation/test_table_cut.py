"""The cut of a table: the best there is for a price per entry, and counted as exactly as other covers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from plan_workloads import SCHEMA, events_of, filters_of

from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.errors import BadInput
from flowsieve.index.covers.walk import Cell, root
from flowsieve.index.plan import IndexPlan
from flowsieve.index.plans.kd import KdPlan
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.pipeline.evaluation import table_cut_kernel as kernel
from flowsieve.pipeline.evaluation.cut_coverage import candidate_of
from flowsieve.pipeline.evaluation.evaluation import Candidate, evaluate_here
from flowsieve.pipeline.evaluation.table_cut import boxes_of, cut_table, made_up
from flowsieve.pipeline.matching.boxes import BoxTable
from flowsieve.pipeline.planning.methods import INDEXERS, Method, Workshop, make

FILTERS = filters_of(21, 60)
SPACE = Schema.parse({name: {"type": "int", "min": 0, "max": 15} for name in "AB"})
SMALL = [
    RegularPlan.make(SPACE, bits=4),
    KdPlan.make(
        SPACE, [("A", 5), ("B", 9), None, None, ("B", 2), None, None], 4, {"A": [3, 10], "B": [6, 12]}
    ),
]


@pytest.fixture(scope="module")
def plans() -> list[IndexPlan]:
    shop = Workshop(SCHEMA, FILTERS, 10, 0, events_of(22, 1200))
    return [make(Method.parse(text), shop) for text in INDEXERS]


def small_workload(seed: int) -> tuple[tuple[Filter, ...], EventBatch]:
    rng = np.random.default_rng(seed)

    def box() -> str:
        low, high = np.sort(rng.integers(0, 16, (2, 2)), axis=0).tolist()
        return f"({low[0]} <= A <= {high[0]} and {low[1]} <= B <= {high[1]})"

    filters = tuple(Filter.parse(" or ".join(box() for _ in range(1 + i % 2)), SPACE) for i in range(5))
    values = [{"A": int(a), "B": int(b)} for a, b in rng.integers(0, 12, (10, 2))]
    return filters, EventBatch.from_events(SPACE, "", values)


def every_cut(plan: IndexPlan, cell: Cell) -> Iterator[tuple[Cell, ...]]:
    yield (cell,)
    if halves := plan.split(cell):
        for low in every_cut(plan, halves[0]):
            for high in every_cut(plan, halves[1]):
                yield (*low, *high)


def price_of(
    plan: IndexPlan, filters: tuple[Filter, ...], events: EventBatch, cell: Cell, price: float
) -> float:
    """What an entry for a cell costs: the price, and its events for all who touch it; nothing if nobody does."""
    places = plan.places(events)
    wanted = sum(
        any(
            all(
                span.first <= last and span.last >= first
                for span, first, last in zip(box, cell.first, cell.last, strict=True)
            )
            for box in plan.boxes(one)  # type: ignore[attr-defined]
        )
        for one in filters
    )
    inside = ((places >= np.array(cell.first)) & (places <= np.array(cell.last))).all(axis=1)
    return price + wanted * int(inside.sum()) if wanted else 0.0


@pytest.mark.parametrize("plan", SMALL, ids=["regular", "kd"])
@pytest.mark.parametrize("price", [0.5, 2.0, 9.0])
def test_no_cut_is_cheaper_than_the_one_found(plan: RegularPlan | KdPlan, price: float) -> None:
    counts = []
    for seed in range(4):
        filters, events = small_workload(seed)
        cuts = list(every_cut(plan, root(plan)))
        cells = {cell for cut in cuts for cell in cut}
        costs = {cell: price_of(plan, filters, events, cell, price) for cell in cells}
        best = min(sum(costs[cell] for cell in cut) for cut in cuts)
        args = (plan.bits, plan.axis_last, boxes_of(plan, filters), plan.places(events))
        nodes = kernel.grow(plan.splitter, *args, len(events), 1)
        size = len(nodes.high)
        found, whole = np.empty(size), np.empty(size, np.bool_)
        entries, ends = np.empty(size, np.int64), np.empty(size, np.int64)
        counts.append(kernel.best_cut(nodes, 0.0, price, found, entries, ends, whole))
        assert found[0] == pytest.approx(best)
        assert kernel.list_cut(nodes.touching, ends, whole, np.empty(size, np.int64)) == counts[-1]
    assert max(counts) > 1


def test_counts_are_those_of_the_covers_that_the_cut_gives(plans: list[IndexPlan]) -> None:
    events, boxes = events_of(23, 300), BoxTable.of(SCHEMA, FILTERS)
    for plan in plans:
        cut = cut_table(plan, FILTERS, events_of(22, 800), 40)
        assert 20 < len(cut) <= 40
        (score,) = evaluate_here([candidate_of(cut, FILTERS)], boxes, events)
        column = plan.encode_batch(events)
        for i, wanted in enumerate(FILTERS):
            inside = cut.cover(wanted).covers_many(column.hi, column.lo, column.length)
            assert score.covered[i] == len(set(column.rows[inside].tolist()))
            assert score.prefixes[i] == cut.touched(wanted).sum()
        assert score.false_negatives == 0
        assert score.to_json()["prefixes"] == len(cut)


def test_a_cut_does_better_than_budgets_that_make_a_table_of_its_size(plans: list[IndexPlan]) -> None:
    events, boxes = events_of(23, 1000), BoxTable.of(SCHEMA, FILTERS)
    for plan in plans:
        single = Candidate.of(plan, FILTERS, 4)
        cut = cut_table(plan, FILTERS, events_of(22, 1200), len(single.coverage.hi))  # type: ignore[attr-defined]
        one, other = evaluate_here([single, candidate_of(cut, FILTERS)], boxes, events)
        assert other.fpr < one.fpr


def test_larger_tables_deliver_less(plans: list[IndexPlan]) -> None:
    events, boxes = events_of(23, 1000), BoxTable.of(SCHEMA, FILTERS)
    cuts = [cut_table(plans[0], FILTERS, events_of(22, 1200), size) for size in (1, 10, 100)]
    scores = evaluate_here([candidate_of(cut, FILTERS) for cut in cuts], boxes, events)
    assert scores[0].deliveries == len(FILTERS) * 1000  # one entry for all
    assert scores[0].deliveries > scores[1].deliveries > scores[2].deliveries


def test_a_cut_is_the_same_every_time(plans: list[IndexPlan]) -> None:
    one, other = (cut_table(plans[3], FILTERS, events_of(22, 900), 50) for _ in range(2))
    assert one.share == other.share
    assert np.array_equal(one.hi, other.hi) and np.array_equal(one.length, other.length)


def test_made_up_events_have_places_of_events_near_them() -> None:
    places = np.column_stack([np.arange(100), 1000 + np.arange(100)]).astype(np.uint64)
    made = made_up(places, 3, 5).astype(np.int64)
    assert made.shape == (300, 2)
    apart = made[:, 1] - 1000 - made[:, 0]
    assert 0 < np.abs(apart).max() <= 5
    assert len(made_up(places[:0], 3, 5)) == 0


def test_a_table_without_entries_is_an_error(plans: list[IndexPlan]) -> None:
    with pytest.raises(BadInput, match="a table of 0 entries; right is a number from 1 on"):
        cut_table(plans[0], FILTERS, events_of(22, 10), 0)
