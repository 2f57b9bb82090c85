from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.errors import BadCell, BadPlan
from flowsieve.index.axes.cut_axis import CutAxis
from flowsieve.index.dzset import DzSet
from flowsieve.index.plan import plan_from_json
from flowsieve.index.plans.learned import AdaptivePlan, LevelwisePlan
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.index.sample import EventSample

SCHEMA = Schema.parse(
    {
        "A": {"type": "int", "min": 0, "max": 99},
        "B": {"type": "int", "min": 0, "max": 99},
        "ratio": {"type": "float", "min": 0.0, "max": 1.0},
        "big": {"type": "int", "min": -(2**53), "max": 2**53},
        "word": {"type": "string"},
    }
)
CUTS = {"A": [5, 9, 70], "B": [3]}


def batch(**columns: list[Any]) -> EventBatch:
    some = {name: np.zeros(len(next(iter(columns.values())))) for name in SCHEMA.names if name != "word"}
    some["word"] = np.full(len(some["A"]), "x", object)
    for name, column in columns.items():
        some[name] = np.array(column, float)
    names = np.full(len(some["A"]), "e", object)
    return EventBatch(SCHEMA, names, names, some)


def test_a_value_at_a_cut_lies_above_it() -> None:
    plan = AdaptivePlan.make(SCHEMA, CUTS)
    assert [str(plan.encode({"A": a, "B": 2})[0]) for a in (4, 5, 8, 9, 69, 70)] == [
        "000", "001", "001", "100", "100", "101",
    ]  # fmt: skip


def test_bits_go_round_robin_or_in_the_order_that_was_learned() -> None:
    assert AdaptivePlan.make(SCHEMA, CUTS).levels == (0, 1, 0)
    assert LevelwisePlan.make(SCHEMA, CUTS, order="AAB").levels == (0, 0, 1)


def test_a_strict_bound_on_a_cut_does_not_touch_the_next_cell() -> None:
    plan = LevelwisePlan.make(SCHEMA, CUTS, order="AAB")
    assert plan.cover(Filter.parse("A < 9", SCHEMA), 0) == DzSet.of("0")
    assert plan.cover(Filter.parse("A <= 9", SCHEMA), 0) == DzSet.of("0", "10")
    assert plan.cover(Filter.parse("A >= 70", SCHEMA), 0) == DzSet.of("11")


def test_a_cell_without_values_makes_no_cover_longer() -> None:
    plan = AdaptivePlan.make(SCHEMA, {"A": [50, 50, 50]})
    assert plan.cover(Filter.parse("A < 50", SCHEMA), 0) == DzSet.of("0")
    assert plan.cover(Filter.parse("A >= 50", SCHEMA), 0) == DzSet.of("1")
    assert plan.encode({"A": 50}) == plan.encode({"A": 99})


def test_cuts_of_equal_widths_make_a_regular_plan() -> None:
    schema = Schema.parse({name: {"type": "int", "min": 0, "max": 1023} for name in "AB"})
    plan = AdaptivePlan.make(schema, {name: list(range(64, 1024, 64)) for name in "AB"})
    regular = RegularPlan.make(schema, bits=8)
    for text in ("100 <= A < 300 and B > 77", "A == 5 or B == 9", "True"):
        wanted = Filter.parse(text, schema)
        for budget in (0, 3, 10):
            assert plan.cover(wanted, budget) == regular.cover(wanted, budget)


def test_fewer_bits_take_the_cuts_of_the_first_halvings() -> None:
    assert AdaptivePlan.make(SCHEMA, CUTS, bits=2).cuts == ((9,), (3,))
    assert AdaptivePlan.make(SCHEMA, CUTS, bits=1).cuts == ((9,), ())
    assert AdaptivePlan.make(SCHEMA, CUTS, room=2).bits == 2
    assert LevelwisePlan.make(SCHEMA, CUTS, order="BAA", bits=2).cuts == ((9,), (3,))
    assert AdaptivePlan.make(SCHEMA, CUTS).shortened(2) == AdaptivePlan.make(SCHEMA, CUTS, bits=2)


def test_a_string_has_bits_in_place_of_cuts() -> None:
    plan = AdaptivePlan.make(SCHEMA, {"word": 4, "A": [50]})
    assert plan.bits == 5
    wanted = Filter.parse("word == 'hello' and A < 50", SCHEMA)
    assert plan.cover(wanted, 0) == DzSet(plan.encode({"word": "hello", "A": 3}))


def test_columns_have_the_places_of_their_values_to_the_last_digit() -> None:
    top = 2**53
    axis = CutAxis(SCHEMA["big"], (-top, 0, top - 1, top, top + 1))
    column = np.array([-top, -1, 0, top - 2, top - 1, top], float)
    assert axis.places(column).tolist() == [axis.place(int(n)) for n in column] == [1, 1, 2, 2, 3, 4]
    with pytest.raises(BadCell, match=r"big = 0\.5; it is an int"):
        axis.places(np.array([0.5]))
    with pytest.raises(BadCell, match="ratio = nan"):
        CutAxis(SCHEMA["ratio"], (0.5,)).places(np.array([0.1, np.nan]))
    with pytest.raises(BadCell, match="A = 100; it is an int from 0 to 99"):
        AdaptivePlan.make(SCHEMA, CUTS).encode_batch(batch(A=[99, 100], B=[1, 1]))


def test_cuts_may_be_arrays() -> None:
    arrays = {"A": np.array([5, 9, 70]), "ratio": np.array([0.25])}
    plan = AdaptivePlan.make(SCHEMA, arrays)
    assert plan == AdaptivePlan.make(SCHEMA, {"A": [5.0, 9.0, 70.0], "ratio": [0.25]})
    assert all(type(cut) is int for cut in plan.cuts[0])  # type: ignore[union-attr]


def test_a_sample_of_another_plan_is_refused() -> None:
    plan, other = (LevelwisePlan.make(SCHEMA, CUTS, order=order) for order in ("AAB", "ABA"))
    sample = EventSample.of(other, batch(A=[1, 2], B=[1, 2]))
    with pytest.raises(BadPlan, match="another plan"):
        plan.cover(Filter.parse("A < 9", SCHEMA), 3, sample)


@pytest.mark.parametrize(
    ("cuts", "message"),
    [
        ({"A": [5, 9]}, "A has 2 cuts; right is one less than a power of two, such as 3"),
        ({"A": [9, 5, 70]}, "A has a cut at 5 after one at 9; right is in order"),
        ({"A": [101]}, r"A has a cut at 101; right is a number from 0 to 99"),
        ({"A": [-1]}, "A has a cut at -1"),
        ({"A": [1.5]}, "A has a cut at 1.5; right is a whole number"),
        ({"A": [True]}, "A has a cut at True"),
        ({"ratio": [float("nan")]}, "ratio has a cut at nan; right is a number"),
        ({"A": "5"}, "the cuts of A are '5'; right is a list of numbers, or a number of bits"),
        ({"A": None}, "the cuts of A are None"),
        ({"A": 8}, "A has 0 to 7 bits in an index, not 8"),
        ({"word": [3]}, "word is a string and has no cuts"),
        ({"C": [3]}, "there is no attribute 'C' to index"),
        ({}, "at least one dimension"),
    ],
)
def test_cuts_that_make_no_axis_are_refused(cuts: dict[str, Any], message: str) -> None:
    with pytest.raises(BadPlan, match=message):
        AdaptivePlan.make(SCHEMA, cuts)


def test_an_order_that_does_not_fit_the_cuts_is_refused() -> None:
    with pytest.raises(BadPlan, match="B has cuts for 1 halvings, and stands in the order 2 times"):
        LevelwisePlan.make(SCHEMA, CUTS, order="BBA")
    with pytest.raises(BadPlan, match="'C' stands in the order, and only A, B have cuts"):
        LevelwisePlan.make(SCHEMA, CUTS, order="CA")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cuts": None}, "cuts = None; it is a list with an entry for each of A, B"),
        ({"cuts": [[5]]}, "an entry for each of A, B"),
        ({"cuts": [[5, 9, 70], ["x"]]}, "B has a cut at 'x'; right is a whole number"),
        ({"order": [0, 2, 0]}, "order has 2 at position 1; it is a list of whole numbers from 0 to 1"),
        ({"order": "001"}, "order = '001'; it is a list"),
        ({"order": [0, 0]}, "B has 1 bits and is halved 0 times in the order"),
        ({"bits": 3}, "a levelwise plan has no 'bits'"),
        ({"dimensions": 3}, "dimensions = 3; it is a list of attribute names"),
    ],
)
def test_a_plan_written_down_wrongly_is_refused(changes: dict[str, Any], message: str) -> None:
    data = LevelwisePlan.make(SCHEMA, CUTS, order="AAB").to_json()
    assert plan_from_json(data, SCHEMA).bits == 3
    with pytest.raises(BadPlan, match=message):
        plan_from_json(data | changes, SCHEMA)
    with pytest.raises(BadPlan, match="bits = 3 is more than the 2"):
        plan_from_json(data, SCHEMA, room=2)


def test_a_plan_without_its_cuts_is_refused() -> None:
    data = AdaptivePlan.make(SCHEMA, CUTS).to_json()
    del data["cuts"]
    with pytest.raises(BadPlan, match="the cuts of this adaptive plan are missing"):
        plan_from_json(data, SCHEMA)
