from __future__ import annotations

import random
from functools import cache

import pytest

from flowsieve.content.box import Interval
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.index.covers.cover import Boxes, encloses, touching
from flowsieve.index.covers.refine import PATIENCE, outside, refine, volume_weight
from flowsieve.index.covers.walk import Cell, cell_of, root
from flowsieve.index.dz import Dz
from flowsieve.index.dzset import DzSet
from flowsieve.index.plans.regular import RegularPlan

SCHEMA = Schema.parse({name: {"type": "int", "min": 0, "max": 63} for name in ("A", "B", "C")})
PLAN = RegularPlan.make(SCHEMA)


def cover(text: str, budget: int) -> DzSet:
    return PLAN.cover(Filter.parse(text, SCHEMA), budget)


def random_filter(seed: int) -> Filter:
    rng = random.Random(seed)
    box = []
    for _ in SCHEMA:
        low = rng.randrange(64)
        box.append(Interval(low, min(63, low + rng.randrange(1, 40))))
    return Filter(f"random {seed}", SCHEMA, (tuple(box),))


def test_one_dz_is_the_smallest_cell_around_the_filter() -> None:
    assert cover("8 <= A < 16 and 40 <= B < 48 and 32 <= C < 40", 1).texts() == ["011000110"]
    assert cover("8 <= A < 16 and 40 <= B < 48 and C >= 32", 1).texts() == ["01100"]
    assert cover("A == 31 or A == 32", 1).texts() == [""]


def test_two_dz_cut_what_straddles_an_edge() -> None:
    plan = RegularPlan.make(SCHEMA, dimensions=["A"])
    assert plan.cover(Filter.parse("31 <= A <= 32", SCHEMA), 2).texts() == ["011111", "100000"]


def test_an_exact_cover_that_fits_the_budget_is_found() -> None:
    wanted = Filter.parse("A < 32 and B >= 48", SCHEMA)
    exact = PLAN.cover(wanted, 0)
    assert PLAN.cover(wanted, len(exact)) == exact
    assert PLAN.cover(wanted, 1000) == exact


def test_a_gain_behind_halvings_that_bring_nothing_is_found() -> None:
    # C comes third in every round: the halvings of A and B before it drop nothing.
    assert cover("C < 32", 2).texts() == [""]
    assert cover("C < 32", 3).texts() == ["000", "010", "1"]
    assert cover("C < 32", 4).texts() == ["000", "010", "100", "110"]


def test_the_budget_is_used_up_where_that_helps() -> None:
    wanted = random_filter(1)
    exact = len(PLAN.cover(wanted, 0))
    for budget in (2, 3, 5, 8, 13, 21, 34, 55, 89):
        assert budget < exact
        assert len(PLAN.cover(wanted, budget)) >= budget - 2


def test_more_dz_waste_less() -> None:
    wasted = {
        n: sum(PLAN.cover(random_filter(seed), n).share for seed in range(40)) for n in (1, 2, 4, 8, 16, 32)
    }
    assert sorted(wasted.values(), reverse=True) == list(wasted.values())
    assert wasted[32] < 0.5 * wasted[1]


def test_boxes_that_fill_a_cell_together_leave_the_budget_to_others() -> None:
    halves = Filter.parse("(A < 20 and B < 32) or (20 <= A < 32 and B < 32) or (A > 40 and B > 40)", SCHEMA)
    assert Dz.parse("00") in PLAN.cover(halves, 6)


def test_the_share_outside_a_box_loses_no_digits() -> None:
    schema = Schema.parse({"x": {"type": "float", "min": 0.0, "max": 1.0}, "y": {"type": "bool"}})
    plan = RegularPlan.make(schema)
    (box,) = plan.boxes(Filter.parse("x > 2.3e-16", schema))
    assert box[0].below == 1
    assert outside(root(plan), [box]) == 2.0**-52


def test_the_share_outside_a_few_boxes_counts_nothing_twice() -> None:
    overlapping = PLAN.boxes(Filter.parse("(A < 32 and B < 32) or (A < 16 and B < 48)", SCHEMA))
    assert outside(root(PLAN), overlapping) == pytest.approx(1 - (0.25 + 0.1875 - 0.125))
    tiling = PLAN.boxes(
        Filter.parse("(A < 9 and B < 9) or (A < 9 and B >= 9) or (A >= 9 and C < 64)", SCHEMA)
    )
    assert outside(root(PLAN), tiling) < 1e-9


def best_waste(boxes: Boxes, budget: int) -> float:
    """The least waste that any cover of so many dz has, from all ways to divide the budget among halves."""
    weigh = volume_weight(PLAN)

    @cache
    def below(dz: Dz, left: int) -> float:
        cell: Cell = cell_of(PLAN, dz)
        near = touching(cell, boxes)
        if not near or any(encloses(box, cell) for box in near):
            return 0.0
        waste = weigh(cell, near, None).waste
        if dz.length == PLAN.bits:
            return waste
        low, high = dz.children
        touched = [half for half in (low, high) if touching(cell_of(PLAN, half), boxes)]
        if len(touched) == 1:
            return below(touched[0], left)
        return min([waste, *(below(low, n) + below(high, left - n) for n in range(1, left))])

    return below(Dz.parse(""), budget)


def test_covers_are_close_to_the_best_of_their_size() -> None:
    found = best = 0.0
    weigh = volume_weight(PLAN)
    for seed in range(100, 120):
        wanted = random_filter(seed)
        boxes = PLAN.boxes(wanted)
        for dz in PLAN.cover(wanted, 6):
            cell = cell_of(PLAN, dz)
            found += weigh(cell, touching(cell, boxes), None).waste
        best += best_waste(boxes, 6)
    assert best <= found <= 1.05 * best


def test_the_plain_search_finds_the_same() -> None:
    for seed in range(5):
        wanted = random_filter(seed)
        plain = refine(PLAN, PLAN.boxes(wanted), 17, volume_weight(PLAN), PATIENCE)
        assert PLAN.cover(wanted, 17) == plain


def test_a_filter_of_thousands_of_boxes_is_covered_in_a_moment() -> None:
    rng = random.Random(4)
    pairs = [(rng.randrange(60), rng.randrange(60), rng.randrange(60)) for _ in range(4000)]
    boxes = tuple(tuple(Interval(low, low + 1) for low in lows) for lows in pairs)
    wanted = Filter("many", SCHEMA, boxes)
    few = PLAN.cover(wanted, 40)
    assert len(few) <= 40
    assert few.covers_set(PLAN.cover(wanted, 0))
