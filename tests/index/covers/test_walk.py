from __future__ import annotations

import pytest

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.errors import BadPlan
from flowsieve.index.axes.grid import Span
from flowsieve.index.covers.walk import Cell, cell_of, root, spans
from flowsieve.index.dz import Dz
from flowsieve.index.plans.regular import RegularPlan

SCHEMA = Schema.parse({name: {"type": "int", "min": 0, "max": 7} for name in ("A", "B")})
PLAN = RegularPlan.make(SCHEMA)


def test_the_walk_begins_with_all_places_of_all_axes() -> None:
    assert root(PLAN) == Cell(Dz.parse(""), (0, 0), (7, 7))


def test_a_cell_is_cut_on_one_axis() -> None:
    low, high = root(PLAN).halves(1, 3)
    assert low == Cell(Dz.parse("0"), (0, 0), (7, 2))
    assert high == Cell(Dz.parse("1"), (0, 3), (7, 7))


def test_a_dz_names_the_cell_at_the_end_of_its_path() -> None:
    assert cell_of(PLAN, Dz.parse("0110")) == Cell(Dz.parse("0110"), (2, 4), (3, 5))


def test_a_dz_longer_than_the_plan_names_no_cell() -> None:
    with pytest.raises(BadPlan, match="the plan makes dz of 6 bits here"):
        cell_of(PLAN, Dz(0, 7))


def test_boxes_that_differ_in_other_attributes_alone_are_one() -> None:
    wanted = Filter.parse("(A < 4 and B == 1) or (A < 4 and B == 5)", SCHEMA)
    assert len(wanted.boxes) == 2
    assert spans(RegularPlan.make(SCHEMA, dimensions=["A"]).axes, wanted) == ((Span(0, 3, 0, 3),),)
