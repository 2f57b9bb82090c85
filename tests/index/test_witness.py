from __future__ import annotations

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.index.axes.inverse import Unfound
from flowsieve.index.dz import WHOLE_SPACE, Dz
from flowsieve.index.dzset import EMPTY, WHOLE, DzSet
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.index.witness import meet, uncovered

SCHEMA = Schema.parse(
    {
        "price": {"type": "int", "min": 0, "max": 99},
        "ratio": {"type": "float", "min": 0.0, "max": 1.0},
        "side": {"type": "enum", "values": ["buy", "sell", "hold"]},
        "word": {"type": "string"},
        "name": {"type": "string", "prefix": True},
    }
)
PLAN = RegularPlan.make(SCHEMA, dimensions=["price", "ratio", "side"])
STRINGS = RegularPlan.make(SCHEMA, dimensions=["word", "name"])


def parse(*texts: str) -> list[Filter]:
    return [Filter.parse(text, SCHEMA) for text in texts]


def test_a_cover_covers_its_filter() -> None:
    for wanted in parse("price < 30", "ratio > 0.3 and side != 'sell'", "price == 4 or ratio < 0.2"):
        for budget in (1, 5, 20):
            assert uncovered(PLAN, wanted, PLAN.cover(wanted, budget)) is None


def test_a_missing_dz_is_found() -> None:
    (wanted,) = parse("price < 30 and side == 'buy'")
    cover = PLAN.cover(wanted, 12)
    for dz in cover:
        missing = uncovered(PLAN, wanted, cover - DzSet([dz]))
        assert missing is not None
        event = meet(PLAN, missing, [wanted])
        assert event is not None
        assert wanted.matches(event)
        assert missing.covers(PLAN.encode(event)[0])
        assert dz.covers(PLAN.encode(event)[0])


def test_nothing_covers_no_filter() -> None:
    (wanted,) = parse("True")
    assert uncovered(PLAN, wanted, EMPTY) == WHOLE_SPACE
    assert uncovered(PLAN, wanted, WHOLE) is None


def test_a_dz_longer_than_an_events_covers_nothing() -> None:
    plan = RegularPlan.make(SCHEMA, bits=2, dimensions=["price"])
    (wanted,) = parse("price < 10")
    assert uncovered(plan, wanted, DzSet.of("000", "0010")) == Dz.parse("")
    assert uncovered(plan, wanted, DzSet.of("00")) is None


def test_a_cell_without_a_value_need_not_be_covered() -> None:
    plan = RegularPlan.make(SCHEMA, dimensions=["side"])  # three values on the cells 00, 01, 10
    assert uncovered(plan, parse("True")[0], DzSet.of("0", "10")) is None


def test_filters_that_meet_in_a_cell_have_an_event_there() -> None:
    cell = Dz.parse("00")
    filters = parse("price < 30", "price > 20 and ratio <= 0.3", "side in ('sell', 'hold') and word != 'x'")
    event = meet(PLAN, cell, filters)
    assert event is not None
    assert all(wanted.matches(event) for wanted in filters)
    assert cell.covers(PLAN.encode(event)[0])


def test_filters_that_exclude_each_other_meet_nowhere() -> None:
    assert meet(PLAN, WHOLE_SPACE, parse("price < 30", "price >= 30")) is None
    assert meet(PLAN, WHOLE_SPACE, parse("word == 'a'", "word == 'b'")) is None
    assert meet(PLAN, WHOLE_SPACE, parse("name < 'b'", "name > 'b'")) is None


def test_filters_that_meet_elsewhere_do_not_meet_in_the_cell() -> None:
    filters = parse("price < 60", "price > 40")
    assert meet(PLAN, Dz.parse("0"), filters) is not None
    assert meet(PLAN, Dz.parse("00"), [*filters, *parse("ratio > 0.5")]) is None


def test_of_many_boxes_those_that_meet_are_found() -> None:
    evens = " or ".join(f"price == {n}" for n in range(0, 99, 2))
    odds = " or ".join(f"price == {n}" for n in range(1, 99, 2))
    assert meet(PLAN, WHOLE_SPACE, parse(evens, odds)) is None
    event = meet(PLAN, WHOLE_SPACE, parse(evens, f"{odds} or price == 42"))
    assert event is not None
    assert event["price"] == 42


def test_an_event_has_a_value_for_every_attribute() -> None:
    event = meet(PLAN, WHOLE_SPACE, [])
    assert event is not None
    assert set(event) == set(SCHEMA.names)


def test_strings_in_a_cell_are_found_or_said_to_be_unfound() -> None:
    (wanted,) = parse("'b' <= name < 'c'")
    event = meet(STRINGS, Dz.parse("00"), [wanted])
    assert event is not None
    assert Dz.parse("00").covers(STRINGS.encode(event)[0])
    deep = meet(STRINGS, STRINGS.encode({"word": "some word", "name": "bx"})[0], [wanted])
    assert deep is not None
    assert deep["name"] == "bx"
    assert isinstance(deep["word"], Unfound)
    same = meet(STRINGS, STRINGS.encode({"word": "w", "name": "bx"})[0], [*parse("word == 'w'"), wanted])
    assert same is not None
    assert same["word"] == "w"
