from __future__ import annotations

import numpy as np
import pytest

from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.index.covers.refine import PATIENCE_WITH_SAMPLE, refine
from flowsieve.index.covers.walk import cell_of
from flowsieve.index.dz import Dz
from flowsieve.index.dzset import DzSet
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.index.sample import EventSample

SCHEMA = Schema.parse({name: {"type": "int", "min": 0, "max": 255} for name in ("A", "B")})
PLAN = RegularPlan.make(SCHEMA)


def batch(a: np.ndarray, b: np.ndarray) -> EventBatch:
    names = np.full(len(a), "x", object)
    return EventBatch(SCHEMA, names, names, {"A": a.astype(float), "B": b.astype(float)})


def clustered(seed: int, n: int) -> EventBatch:
    """Events around four places."""
    rng = np.random.default_rng(seed)
    near = rng.integers(0, 4, n)
    a = np.array([40, 200, 90, 140])[near] + rng.normal(0, 12, n)
    b = np.array([60, 180, 220, 30])[near] + rng.normal(0, 12, n)
    return batch(np.clip(a, 0, 255).astype(int), np.clip(b, 0, 255).astype(int))


def filters() -> list[Filter]:
    lows = [(25, 45), (70, 200), (130, 10), (180, 160), (60, 60), (100, 20)]
    return [Filter.parse(f"{a} <= A < {a + 37} and {b} <= B < {b + 41}", SCHEMA) for a, b in lows]


def unwanted(wanted: Filter, cells: DzSet, events: EventBatch) -> int:
    column = PLAN.encode_batch(events)
    return int((cells.covers_many(column.hi, column.lo, PLAN.bits) & ~wanted.matches_batch(events)).sum())


def test_a_sample_has_its_dz_in_order_and_the_places_beside_them() -> None:
    sample = EventSample.of(PLAN, clustered(1, 200))
    codes = [hi << 64 | lo for hi, lo in zip(sample.hi.tolist(), sample.lo.tolist(), strict=True)]
    assert codes == sorted(codes)
    for code, places in zip(codes, sample.places.tolist(), strict=True):
        assert cell_of(PLAN, Dz(code >> (128 - PLAN.bits), PLAN.bits)).first == tuple(places)


@pytest.mark.parametrize("budget", [8, 16, 32])
def test_a_sample_saves_unwanted_traffic_of_later_events(budget: int) -> None:
    sample, later = EventSample.of(PLAN, clustered(1, 3000)), clustered(2, 3000)
    with_sample = sum(unwanted(f, PLAN.cover(f, budget, sample), later) for f in filters())
    without = sum(unwanted(f, PLAN.cover(f, budget), later) for f in filters())
    assert with_sample < 0.95 * without


def test_cells_that_the_sample_never_hit_are_not_free() -> None:
    # All events lie in one corner, far from the filter: the volume must decide.
    far = EventSample.of(PLAN, batch(np.zeros(50, int), np.zeros(50, int)))
    wanted = Filter.parse("100 <= A < 150 and 100 <= B < 150", SCHEMA)
    assert PLAN.cover(wanted, 16, far).share < 1.05 * PLAN.cover(wanted, 16).share


def test_an_empty_sample_is_no_sample() -> None:
    nothing = EventSample.of(PLAN, clustered(1, 0))
    for wanted in filters():
        assert PLAN.cover(wanted, 9, nothing) == PLAN.cover(wanted, 9)


def test_the_plain_search_finds_the_same() -> None:
    sample = EventSample.of(PLAN, clustered(3, 300))
    for wanted in filters():
        boxes = PLAN.boxes(wanted)
        plain = refine(PLAN, boxes, 11, sample.weight(PLAN, boxes), PATIENCE_WITH_SAMPLE)
        assert PLAN.cover(wanted, 11, sample) == plain
