"""Events, one by one and in batches."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from flowsieve.content.event import EventBatch, check_event, read_event
from flowsieve.content.schema import Schema
from flowsieve.errors import BadCell, BadValue

SCHEMA = Schema.parse(
    {
        "price": {"type": "int", "min": 0, "max": 1023},
        "ratio": {"type": "float", "min": -1.0, "max": 1.0},
        "side": {"type": "enum", "values": ["buy", "sell"]},
        "live": {"type": "bool"},
        "name": {"type": "string"},
    }
)
GOOD = {"price": "60", "ratio": "0.5", "side": "sell", "live": "True", "name": "x"}


def frame(*changes: dict[str, object]) -> pd.DataFrame:
    """A table of text with a good event per row, but for some changes."""
    rows = [{"id": f"e{i}", "host": "h1"} | GOOD | change for i, change in enumerate(changes)]
    return pd.DataFrame(rows, dtype=object)


def reasons(*changes: dict[str, object]) -> list[str | None]:
    bad, reason = EventBatch.from_frame(SCHEMA, frame(*changes)).faults()
    return [reason(row) if bad[row] else None for row in range(len(changes))]


def test_a_table_of_text_becomes_columns_of_numbers() -> None:
    batch = EventBatch.from_frame(SCHEMA, frame({}, {"price": "1e2", "live": "0", "name": ""}))
    assert batch.ids.tolist() == ["e0", "e1"] and batch.hosts.tolist() == ["h1", "h1"]
    assert {name: column.tolist() for name, column in batch.columns.items()} == {
        "price": [60, 100],
        "ratio": [0.5, 0.5],
        "side": [1, 1],
        "live": [1, 0],
        "name": ["x", ""],
    }
    assert not batch.faults()[0].any()
    assert batch.event(1) == {"price": 100, "ratio": 0.5, "side": "sell", "live": False, "name": ""}


def test_other_columns_are_passed_over_and_their_order_does_not_matter() -> None:
    table = frame({}).assign(extra="?")[["extra", "name", "live", "side", "ratio", "price", "host", "id"]]
    assert EventBatch.from_frame(SCHEMA, table).event(0)["price"] == 60


@pytest.mark.parametrize("word", ["true", "TRUE", "True", "1"])
def test_a_bool_is_told_by_its_words_in_any_case(word: str) -> None:
    assert EventBatch.from_frame(SCHEMA, frame({"live": word})).columns["live"].tolist() == [1]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, None),
        ({"price": "1200"}, "price = 1200 is above 1023"),
        ({"price": "-1"}, "price = -1 is below 0"),
        ({"price": "3.5"}, "price = 3.5 is not a whole number"),
        ({"price": "3.0"}, None),
        ({"price": ""}, "price is missing or not a number"),
        ({"ratio": "nan"}, "ratio is missing or not a number"),
        ({"ratio": "inf"}, "ratio = inf is not finite"),
        ({"ratio": "-inf"}, "ratio = -inf is not finite"),
        ({"ratio": "1e999"}, "ratio = inf is not finite"),
        ({"ratio": "1.5"}, "ratio = 1.5 is above 1.0"),
        ({"side": "bug"}, "side = 'bug' is none of buy, sell"),
        ({"side": ""}, "side = '' is none of buy, sell"),
        ({"side": None}, "side is missing"),
        ({"live": "maybe"}, "live = 'maybe' is neither true nor false"),
        ({"live": math.nan}, "live is missing"),
        ({"name": None}, "name is missing"),
        ({"name": "\ud800"}, "name = '\\ud800' is not valid Unicode"),
        ({"price": "-1", "side": "bug"}, "price = -1 is below 0"),
    ],
)
def test_a_faulty_event_is_rejected_with_a_reason(change: dict[str, object], reason: str | None) -> None:
    assert reasons({}, change, {}) == [None, reason, None]


def test_a_row_without_fault_has_no_reason() -> None:
    with pytest.raises(ValueError, match="row 0 has no fault"):
        EventBatch.from_frame(SCHEMA, frame({})).reason(0)


def test_taking_rows_keeps_what_belongs_to_them() -> None:
    batch = EventBatch.from_frame(SCHEMA, frame({}, {"side": "bug"}, {"price": "7"}, {"side": "bag"}))
    for rows in ([3, 2], np.array([False, False, True, True])):
        part = batch.take(rows)
        bad, reason = part.faults()
        assert len(part) == 2 and sorted(part.ids) == ["e2", "e3"]
        assert reason(int(np.flatnonzero(bad)[0])) == "side = 'bag' is none of buy, sell"


@pytest.mark.parametrize(
    ("change", "column"),
    [({"price": "abc"}, "price"), ({"ratio": "1,5"}, "ratio"), ({"id": ""}, "id"), ({"host": None}, "host")],
)
def test_a_cell_that_cannot_be_read_is_bad_input_and_names_its_row(
    change: dict[str, object], column: str
) -> None:
    with pytest.raises(BadCell) as caught:
        EventBatch.from_frame(SCHEMA, frame({}, {}, change))
    assert (caught.value.row, caught.value.column) == (2, column)
    assert str(caught.value).startswith("row 3: ") and column in caught.value.message


def test_a_missing_column_is_named_with_the_nearest_one() -> None:
    with pytest.raises(BadValue, match=r"no column 'price'; .* did you mean 'prize'"):
        EventBatch.from_frame(SCHEMA, frame({}).rename(columns={"price": "prize"}))


def test_a_column_that_stands_twice_is_refused() -> None:
    table = frame({})
    with pytest.raises(BadValue, match="column 'price' stands twice"):
        EventBatch.from_frame(SCHEMA, pd.concat([table, table[["price"]]], axis=1))


def test_a_table_may_lack_the_host_where_it_is_not_needed() -> None:
    table = frame({}).drop(columns="host")
    assert EventBatch.from_frame(SCHEMA, table, needs_host=False).hosts.tolist() == [""]
    with pytest.raises(BadValue, match="no column 'host'"):
        EventBatch.from_frame(SCHEMA, table)


def test_events_given_as_mappings_are_read_like_those_of_a_table() -> None:
    event = {"price": 60, "ratio": 0.5, "side": "sell", "live": True, "name": "x"}
    batch = EventBatch.from_events(SCHEMA, "h9", [event, event | {"price": 5000}, {"price": 1}])
    assert batch.event(0) == event
    assert batch.ids.tolist() == ["0", "1", "2"] and batch.hosts.tolist() == ["h9"] * 3
    bad, reason = batch.faults()
    assert bad.tolist() == [False, True, True]
    assert [reason(1), reason(2)] == ["price = 5000 is above 1023", "ratio is missing or not a number"]
    assert EventBatch.from_events(SCHEMA, "h9", [event], ids=["e7"]).ids.tolist() == ["e7"]
    with pytest.raises(BadValue, match="1 events and 2 ids"):
        EventBatch.from_events(SCHEMA, "h9", [event], ids=["e7", "e8"])
    with pytest.raises(BadCell, match="row 2: there is no attribute 'prise'; did you mean 'price'"):
        EventBatch.from_events(SCHEMA, "h9", [event, {"prise": 5}])


def test_no_events_are_a_batch_too() -> None:
    for batch in (EventBatch.from_frame(SCHEMA, frame({}).iloc[:0]), EventBatch.from_events(SCHEMA, "h", [])):
        assert len(batch) == 0 and len(batch.faults()[0]) == 0 and len(batch.take([])) == 0


def test_a_checked_event_has_the_types_and_order_of_its_schema() -> None:
    event = {"name": "x", "live": np.True_, "side": "buy", "ratio": 1, "price": 60.0}
    checked = check_event(SCHEMA, event)
    assert list(checked.items()) == [
        ("price", 60),
        ("ratio", 1.0),
        ("side", "buy"),
        ("live", True),
        ("name", "x"),
    ]
    assert [type(value) for value in checked.values()] == [int, float, str, bool, str]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prise": 5}, "no attribute 'prise'; did you mean 'price'"),
        ({"price": None}, "price = None is not a number"),
        ({"price": "60"}, "price = '60' is not a number"),
        ({"price": 1200}, "price = 1200 is outside the range; price is an int from 0 to 1023"),
        ({"side": "bug"}, "side = 'bug' is none of buy, sell; did you mean 'buy'"),
    ],
)
def test_a_wrong_event_is_refused(change: dict[str, object], message: str) -> None:
    event = {"price": 60, "ratio": 0.5, "side": "sell", "live": True, "name": "x"}
    with pytest.raises(BadValue, match=message):
        check_event(SCHEMA, event | change)


def test_an_event_that_lacks_an_attribute_is_refused() -> None:
    with pytest.raises(BadValue, match="price is missing; it is an int from 0 to 1023"):
        check_event(SCHEMA, {})


def test_an_event_can_be_read_from_text() -> None:
    expected = {"price": 60, "ratio": 0.5, "side": "sell", "live": True, "name": "x"}
    assert read_event(SCHEMA, GOOD) == expected
    for change, message in (
        ({"price": "abc"}, "^price = 'abc' is not a number"),
        ({"price": "1200"}, "^price = 1200 is above 1023"),
        ({"side": "bug"}, "^side = 'bug' is none of"),
        ({"prise": "5"}, "^there is no attribute 'prise'"),
    ):
        with pytest.raises(BadValue, match=message):
            read_event(SCHEMA, GOOD | change)
    with pytest.raises(BadValue, match="ratio is missing"):
        read_event(SCHEMA, {"price": "60"})
