from __future__ import annotations

import pytest

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.index.covers import cover
from flowsieve.index.covers.walk import cell_of
from flowsieve.index.dz import Dz
from flowsieve.index.dzset import DzSet
from flowsieve.index.plans.regular import RegularPlan

SCHEMA = Schema.parse({name: {"type": "int", "min": 0, "max": 15} for name in ("A", "B")})
PLAN = RegularPlan.make(SCHEMA)


def boxes(text: str) -> cover.Boxes:
    return PLAN.boxes(Filter.parse(text, SCHEMA))


def test_a_box_touches_what_it_reaches_into_and_encloses_what_lies_in_it() -> None:
    (box,) = boxes("A <= 8")
    low, high = cell_of(PLAN, Dz.parse("0")), cell_of(PLAN, Dz.parse("1"))
    assert cover.touching(low, [box]) == cover.touching(high, [box]) == [box]
    assert cover.encloses(box, low)
    assert not cover.encloses(box, high)


def test_an_exact_cover_has_every_cell_that_is_touched() -> None:
    # A is 1000, B is 0xxx: between the bits of A those of B may be anything.
    wanted = DzSet.of("1000000", "1000010", "1001000", "1001010")
    assert cover.exact(PLAN, boxes("A == 8 and B < 8")) == wanted


def test_boxes_that_together_fill_a_cell_are_that_cell() -> None:
    both = boxes("(A < 3 and B < 8) or (3 <= A < 8 and B < 8)") + boxes("A == 15 and B == 15")
    assert cover.exact(PLAN, both) == DzSet.of("00", "11111111")
    assert cover.count(PLAN, both) == 2


@pytest.mark.parametrize(
    "text",
    [
        "True",
        "A == 3",
        "A != 3 and B != 4",
        "A < 11 and B > 2",
        "A < 5 or B > 12",
        "(A < 5 and B < 5) or (4 < A < 9 and B < 7) or (A > 2 and 3 < B < 11)",
    ],
)
def test_covers_are_counted_as_they_are_listed(text: str) -> None:
    wanted = Filter.parse(text, SCHEMA)
    for bits in range(9):
        plan = RegularPlan.make(SCHEMA, bits)
        assert plan.count_cover(wanted) == len(plan.cover(wanted, 0))


def test_a_cover_longer_than_allowed_is_none() -> None:
    assert cover.exact(PLAN, boxes("A != 3 and B != 4"), most=3) is None


def test_the_cells_of_a_set_that_a_filter_touches_are_told() -> None:
    cells = DzSet.of("00", "0110", "1")
    wanted = Filter.parse("A < 8 and B > 13", SCHEMA)
    assert PLAN.touches(wanted, cells).tolist() == [False, False, False]
    wanted = Filter.parse("A < 9 and B > 7", SCHEMA)
    assert PLAN.touches(wanted, cells).tolist() == [False, True, True]
