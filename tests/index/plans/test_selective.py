from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.errors import BadCell, BadPlan, BadValue, Refused
from flowsieve.index.dz import Dz
from flowsieve.index.dzset import DzSet
from flowsieve.index.plan import plan_from_json
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.index.plans.selective import SelectivePlan
from flowsieve.index.witness import meet

SCHEMA = Schema.parse(
    {
        "A": {"type": "int", "min": 0, "max": 99},
        "B": {"type": "int", "min": 0, "max": 99},
        "ratio": {"type": "float", "min": 0.0, "max": 1.0},
        "word": {"type": "string"},
    }
)
PARTS = [{"A": (0, 15), "B": (0, 15)}, {"A": (8, 39), "B": (8, 23)}, {"A": (80, 80)}]
PLAN = SelectivePlan.make(SCHEMA, PARTS, 10, ["A", "B"])
BARE = SelectivePlan.make(SCHEMA, PARTS, 10, ["A", "B"], rest=False)


def test_ids_are_as_short_as_they_can_be() -> None:
    assert [str(part.id) for part in PLAN.parts] == ["00", "01", "10", "11"]
    assert [str(part.id) for part in BARE.parts] == ["00", "01", "1"]


def test_a_part_is_halved_by_itself() -> None:
    assert str(PLAN.encode({"A": 0, "B": 15})[0]) == "0001010101"
    assert str(PLAN.encode({"A": 39, "B": 8})[0]) == "0110101010"
    # Of the third part only B is left to halve: its 7 bits, 99 at place 126, then nothing.
    assert str(PLAN.encode({"A": 80, "B": 99})[0]) == "1011111100"


def test_an_event_is_sent_once_for_every_part_that_holds_it() -> None:
    assert len(PLAN.encode({"A": 8, "B": 8})) == 2
    assert len(PLAN.encode({"A": 7, "B": 8})) == 1


def test_an_event_outside_all_parts_is_sent_in_the_rest_or_not_at_all() -> None:
    (dz,) = PLAN.encode({"A": 50, "B": 50})
    assert Dz.parse("11").covers(dz)
    assert BARE.encode({"A": 50, "B": 50}) == ()


def test_many_events_are_encoded_as_one_by_one() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 100, (2, 500))
    names = np.full(500, "e", object)
    zeros, words = np.zeros(500), np.full(500, "x", object)
    batch = EventBatch(SCHEMA, names, names, {"A": a * 1.0, "B": b * 1.0, "ratio": zeros, "word": words})
    for plan in (PLAN, BARE):
        column = plan.encode_batch(batch)
        found = [[column.dz(i) for i in np.flatnonzero(column.rows == row)] for row in range(500)]
        assert [tuple(cells) for cells in found] == [
            plan.encode({"A": int(x), "B": int(y)}) for x, y in zip(a, b, strict=True)
        ]
    batch.columns["B"][7] = np.nan
    with pytest.raises(BadCell, match="B = nan"):
        PLAN.encode_batch(batch)


def test_a_filter_is_covered_in_every_part_that_it_touches() -> None:
    def cover(text: str, plan: SelectivePlan = PLAN) -> list[str]:
        return plan.cover(Filter.parse(text, SCHEMA), 0).texts()

    assert cover("A < 8 and B < 16") == ["000"]
    assert cover("8 <= A < 16 and 8 <= B < 16") == ["0011", "01000"]
    assert cover("A == 80") == ["10"]
    assert cover("True") == [""]


def test_without_a_rest_a_filter_that_reaches_outside_is_refused() -> None:
    inside = "A <= 15 and B <= 15 or A == 80"
    assert BARE.cover(Filter.parse(inside, SCHEMA), 0).texts() == ["00", "01000", "1"]
    for text in ("A < 20 and B < 10", "A == 81", "True", "A <= 15 and B <= 15 or A == 79"):
        with pytest.raises(Refused, match="reaches outside all 3 parts of the index"):
            BARE.cover(Filter.parse(text, SCHEMA), 4)


def test_parts_that_hold_a_filter_only_together_hold_it() -> None:
    plan = SelectivePlan.make(SCHEMA, [{"A": (0, 49)}, {"A": (50, 99)}], 8, ["A", "B"], rest=False)
    assert plan.cover(Filter.parse("B < 3", SCHEMA), 9)
    halves = SelectivePlan.make(SCHEMA, [{"ratio": (0, 0.5)}, {"ratio": (0.5, 1)}], 8, ["ratio"], rest=False)
    assert halves.cover(Filter.parse("True", SCHEMA), 9) == DzSet.of("")
    gap = SelectivePlan.make(SCHEMA, [{"ratio": (0, 0.5)}, {"ratio": (0.6, 1)}], 8, ["ratio"], rest=False)
    with pytest.raises(Refused):
        gap.cover(Filter.parse("True", SCHEMA), 9)


def test_what_lies_in_a_part_is_not_found_in_the_rest() -> None:
    rest = PLAN.parts[-1].id
    assert meet(PLAN, rest, [Filter.parse("A == 80", SCHEMA)]) is None
    assert meet(PLAN, rest, [Filter.parse("A < 16 and B < 16", SCHEMA)]) is None
    found = meet(PLAN, rest, [Filter.parse("A < 16 and B < 17", SCHEMA)])
    assert found is not None
    assert (found["B"], PLAN.encode(found)[0].bits >> 8) == (16, 0b11)


def test_a_plan_of_the_rest_alone_is_a_regular_one() -> None:
    plan, regular = SelectivePlan.make(SCHEMA, [], 6), RegularPlan.make(SCHEMA, 6)
    event = {"A": 65, "B": 55, "ratio": 0.3, "word": "x"}
    assert plan.encode(event) == regular.encode(event)
    wanted = Filter.parse("A < 50 and B >= 50", SCHEMA)
    assert plan.cover(wanted, 0) == regular.cover(wanted, 0)


def test_a_missing_or_wrong_value_is_named() -> None:
    with pytest.raises(BadValue, match="B is missing; it is an int from 0 to 99"):
        PLAN.encode({"A": 3})
    with pytest.raises(BadValue, match="B = 100 is outside"):
        PLAN.encode({"A": 3, "B": 100})


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"A": (5,)}, r"a part reaches over \(5,\) of A; right are two numbers"),
        ({"A": (9, 5)}, r"reaches over \(9, 5\) of A"),
        ({"A": (0, 100)}, "from 0 to 99, the lower one first"),
        ({"A": (0, 1.5)}, r"\(0, 1.5\) of A"),
        ({"A": "09"}, "'09' of A"),
        ({"word": ("a", "b")}, "word is a string, which no part bounds"),
        ({"C": (0, 1)}, "a part bounds 'C', which is no dimension"),
    ],
)
def test_a_part_that_is_none_is_refused(part: dict[str, Any], message: str) -> None:
    with pytest.raises(BadPlan, match=message):
        SelectivePlan.make(SCHEMA, [part], 8)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bits": 1}, "the ids of 4 parts need 2 bits; there are 1"),
        ({"parts": None}, "parts = None; it is a list of parts"),
        ({"parts": [[[0, 1]]]}, "parts has .* it is a list of parts, each a list of the ends on A, B"),
        ({"parts": [], "rest": False}, "a selective plan has 1 to"),
        ({"rest": 1}, "rest = 1; it is true or false"),
        ({"mbrs": []}, "a selective plan has no 'mbrs'"),
    ],
)
def test_a_plan_written_down_wrongly_is_refused(changes: dict[str, Any], message: str) -> None:
    assert plan_from_json(PLAN.to_json(), SCHEMA) == PLAN
    assert plan_from_json(BARE.to_json(), SCHEMA) == BARE
    with pytest.raises(BadPlan, match=message):
        plan_from_json(PLAN.to_json() | changes, SCHEMA)
