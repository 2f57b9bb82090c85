from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.errors import BadCell, BadFilter, BadPlan, BadValue
from flowsieve.index.dzset import WHOLE, DzSet
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.index.sample import EventSample

AB = Schema.parse({name: {"type": "int", "min": 0, "max": 99} for name in ("A", "B")})
MIXED = Schema.parse(
    {
        "price": {"type": "int", "min": 0, "max": 1023},
        "ratio": {"type": "float", "min": 0.0, "max": 1.0},
        "side": {"type": "enum", "values": ["buy", "sell", "hold"]},
        "live": {"type": "bool"},
        "word": {"type": "string"},
    }
)


def cover(text: str, bits: int | None = None, budget: int = 0) -> list[str]:
    return RegularPlan.make(AB, bits).cover(Filter.parse(text, AB), budget).texts()


@pytest.mark.parametrize("bits", [2, 6, 7, 13, 14, None])
def test_the_cover_of_the_designs_first_example_is_01_however_many_bits_there_are(bits: int | None) -> None:
    assert cover("A < 50 and B >= 50", bits) == ["01"]


@pytest.mark.parametrize("bits", [3, 6, 14, None])
def test_the_cover_of_the_designs_second_example_is_001_and_011(bits: int | None) -> None:
    assert cover("25 <= A < 50", bits) == ["001", "011"]


def test_the_event_of_the_designs_example_is_110010() -> None:
    (dz,) = RegularPlan.make(AB, bits=6).encode({"A": 65, "B": 55})
    assert str(dz) == "110010"


def test_a_filter_that_wants_everything_is_the_whole_space() -> None:
    for budget in (0, 1, 32):
        assert cover("True", None, budget) == [""]


def test_bits_go_round_robin_and_pass_over_an_attribute_that_has_all_its_bits() -> None:
    plan = RegularPlan.make(MIXED, bits=9)
    # price, ratio, side (2 bits), live (1 bit), word; then side's second; then the three that go on.
    assert plan.levels == (0, 1, 2, 3, 4, 0, 1, 2, 4)
    assert [axis.bits for axis in plan.axes] == [2, 2, 2, 1, 2]


def test_bits_that_no_attribute_needs_stay_unused() -> None:
    assert RegularPlan.make(AB).bits == 14
    assert RegularPlan.make(AB, bits=20).bits == 14
    assert RegularPlan.make(MIXED).bits == 112
    assert RegularPlan.make(MIXED, room=23).bits == 23


def test_an_attribute_of_one_value_takes_no_bit() -> None:
    schema = Schema.parse({"one": {"type": "enum", "values": ["x"]}, "two": {"type": "bool"}})
    plan = RegularPlan.make(schema)
    assert plan.levels == (1,)
    assert plan.cover(Filter.parse("one == 'x' and two", schema), 0) == DzSet.of("1")


def test_a_plan_of_no_bits_sends_everything_everywhere() -> None:
    plan = RegularPlan.make(AB, bits=0)
    assert plan.encode({"A": 1, "B": 2})[0].length == 0
    for budget in (0, 5):
        assert plan.cover(Filter.parse("A == 3", AB), budget) == WHOLE


def test_only_the_chosen_dimensions_are_indexed() -> None:
    plan = RegularPlan.make(MIXED, bits=4, dimensions=["side", "live"])
    assert plan.bits == 3
    assert plan.cover(Filter.parse("side == 'sell' and price > 5", MIXED), 0) == DzSet.of("001", "011")
    assert plan.cover(Filter.parse("price > 5", MIXED), 0) == WHOLE
    assert str(plan.encode({"side": "sell", "live": True})[0]) == "011"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dimensions": ["A", "C"]}, "no attribute 'C'"),
        ({"dimensions": ["A", "A"]}, "'A' stands twice"),
        ({"dimensions": []}, "at least one dimension"),
        ({"dimensions": "A"}, "list of attribute names"),
        ({"dimensions": [["A"]]}, "list of attribute names"),
        ({"bits": 113}, "bits = 113 is more than the 112 that the header has room for"),
        ({"bits": 24, "room": 23}, "bits = 24 is more than the 23"),
        ({"bits": -1}, "a whole number from 0 to 112"),
        ({"bits": 2.5}, "a whole number"),
        ({"bits": True}, "a whole number"),
    ],
)
def test_a_plan_that_does_not_fit_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(BadPlan, match=message):
        RegularPlan.make(AB, **arguments)


def test_a_mistyped_dimension_gets_a_hint() -> None:
    with pytest.raises(BadPlan, match="did you mean 'price'"):
        RegularPlan.make(MIXED, dimensions=["prise"])


def test_a_plan_cannot_have_bits_that_its_dimensions_do_not_need() -> None:
    with pytest.raises(BadPlan, match="A, B need 14 bits at most, not 15"):
        RegularPlan(AB, ("A", "B"), 15)


def test_many_events_are_encoded_as_each_is() -> None:
    plan = RegularPlan.make(MIXED)
    values: list[dict[str, object]] = [
        {"price": 0, "ratio": 0.0, "side": "buy", "live": False, "word": ""},
        {"price": 1023, "ratio": 1.0, "side": "hold", "live": True, "word": "abc"},
        {"price": 512, "ratio": 0.3, "side": "sell", "live": True, "word": "ü"},
    ]
    column = plan.encode_batch(EventBatch.from_events(MIXED, "h", values))
    assert column.rows.tolist() == [0, 1, 2]
    assert column.length == 112
    assert [(column.dz(i),) for i in range(3)] == [plan.encode(event) for event in values]


def test_no_events_give_no_dz() -> None:
    column = RegularPlan.make(AB).encode_batch(EventBatch.from_events(AB, "h", []))
    assert len(column.rows) == len(column.hi) == len(column.lo) == 0


def test_an_event_without_a_place_in_the_index_is_refused() -> None:
    plan = RegularPlan.make(AB)
    with pytest.raises(BadValue, match="B is missing"):
        plan.encode({"A": 3})
    with pytest.raises(BadValue, match="outside the range"):
        plan.encode({"A": 3, "B": 100})
    rows = 40_000  # more than are encoded in one go: the row is the event's own
    columns = {"A": np.zeros(rows), "B": np.zeros(rows)}
    columns["B"][33_333] = 100.0
    names = np.full(rows, "x", object)
    with pytest.raises(BadCell, match="B = 100; it is an int from 0 to 99") as caught:
        plan.encode_batch(EventBatch(AB, names, names, columns))
    assert caught.value.row == 33_333


def test_filters_and_events_of_another_schema_are_refused() -> None:
    plan = RegularPlan.make(AB)
    with pytest.raises(BadPlan, match="schema of A, B"):
        plan.cover(Filter.parse("price > 3", MIXED), 32)
    with pytest.raises(BadPlan, match="schema of A, B"):
        plan.encode_batch(EventBatch.from_events(MIXED, "h", []))


def test_a_negative_budget_is_refused() -> None:
    with pytest.raises(BadPlan, match="not -1"):
        RegularPlan.make(AB).cover(Filter.parse("A == 3", AB), -1)


def test_a_sample_of_another_plan_is_refused() -> None:
    events = EventBatch.from_events(AB, "h", [{"A": 1, "B": 2}])
    sample = EventSample.of(RegularPlan.make(AB, bits=3), events)
    with pytest.raises(BadPlan, match="another plan"):
        RegularPlan.make(AB, bits=8).cover(Filter.parse("A == 3", AB), 4, sample)


def test_an_exact_cover_too_long_to_list_is_refused_with_what_would_fit() -> None:
    names = [f"a{i}" for i in range(4)]
    schema = Schema.parse({name: {"type": "int", "min": 0, "max": 4095} for name in names})
    wanted = Filter.parse(" and ".join(f"{name} > 777" for name in names), schema)
    with pytest.raises(
        BadFilter, match=r"can be listed.*max_dz_per_filter = 32.*take bits = (\d+)"
    ) as caught:
        RegularPlan.make(schema).cover(wanted, 0)
    bits = int(str(caught.value).split("take bits = ")[1].split(",")[0])
    assert len(RegularPlan.make(schema, bits).cover(wanted, 0)) <= 100_000
    assert RegularPlan.make(schema, bits + 1).count_cover(wanted) > 100_000
    assert len(RegularPlan.make(schema).cover(wanted, 32)) <= 32


def test_an_astronomic_cover_is_counted_at_once() -> None:
    schema = Schema.parse({f"a{i}": {"type": "float", "min": 0.0, "max": 1.0} for i in range(3)})
    wanted = Filter.parse("a0 > 0.3 and a1 > 0.3 and a2 > 0.3", schema)
    assert RegularPlan.make(schema).count_cover(wanted) > 10**20


def test_counting_loses_no_dz_on_an_axis_with_more_places_than_a_float_has_digits() -> None:
    schema = Schema.parse({"name": {"type": "string", "prefix": True}})
    for bits in (52, 53, 54, 55, 63, 64):
        plan = RegularPlan.make(schema, bits)
        for text in ("name <= 'a'", "name > 'abc'", "'ab' < name < 'zabcdefg'"):
            wanted = Filter.parse(text, schema)
            assert plan.count_cover(wanted) == len(plan.cover(wanted, 0))


def test_a_plan_is_a_value() -> None:
    plan = RegularPlan.make(AB, bits=6)
    assert plan == RegularPlan.make(AB, 6, ["A", "B"])
    assert plan != RegularPlan.make(AB, 6, ["B", "A"])
    assert hash(plan) == hash(RegularPlan.make(AB, 6))
    plan.cover(Filter.parse("A == 3", AB), 32)
    assert pickle.loads(pickle.dumps(plan)) == plan
