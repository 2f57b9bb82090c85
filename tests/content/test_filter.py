"""Filters as values: what they match, cover and share."""

from __future__ import annotations

import pickle
import time

import numpy as np
import pytest

from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.errors import BadFilter, BadInput, BadValue

SCHEMA = Schema.parse(
    {
        "price": {"type": "int", "min": 0, "max": 1023},
        "size": {"type": "int", "min": 0, "max": 9999},
        "side": {"type": "enum", "values": ["buy", "sell", "hold"]},
        "name": {"type": "string"},
        "symbol": {"type": "string", "prefix": True},
    }
)
EVENT = {"price": 60, "size": 5, "side": "buy", "name": "x", "symbol": "ABC"}


def read(text: str) -> Filter:
    return Filter.parse(text, SCHEMA)


def test_a_filter_is_a_value() -> None:
    one, two = read("price > 5"), read("price > 5")
    assert one == two and len({one, two}) == 1
    assert one != read("price >  5")
    assert str(one) == "price > 5" and repr(one) == "Filter(text='price > 5')"
    assert pickle.loads(pickle.dumps(one)) == one


def test_a_filter_without_boxes_cannot_be_made() -> None:
    with pytest.raises(BadFilter, match="can match nothing"):
        Filter("price > 5", SCHEMA, ())


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("price == 60", True),
        ("price > 60 or size < 6", True),
        ("side < 'sell' and name != 'y'", True),
        ("name in ('y', 'z')", False),
        ("'AB' <= symbol < 'AC'", True),
        ("symbol >= 'ABCD'", False),
        ("True", True),
    ],
)
def test_an_event_matches_or_not(text: str, matches: bool) -> None:
    assert read(text).matches(EVENT) is matches
    batch = EventBatch.from_events(SCHEMA, "h", [EVENT])
    assert read(text).matches_batch(batch).tolist() == [matches]


def test_strings_are_compared_whole_and_not_by_the_bits_that_an_index_sees() -> None:
    assert not read("symbol == 'abcdefgh1'").matches(EVENT | {"symbol": "abcdefgh2"})
    assert read("symbol > 'abcdefgh1'").matches(EVENT | {"symbol": "abcdefgh2"})


def test_only_what_the_filter_looks_at_must_be_there_and_right() -> None:
    assert read("price > 5").matches({"price": 60})
    with pytest.raises(BadValue, match="price is missing; it is an int from 0 to 1023"):
        read("price > 5").matches({"size": 60})
    with pytest.raises(BadValue, match="price = 5000 is outside"):
        read("price > 5").matches({"price": 5000})


def test_a_missing_value_in_a_batch_matches_no_constraint_on_it() -> None:
    batch = EventBatch.from_events(SCHEMA, "h", [EVENT | {"price": None, "name": None}])
    for text in ("price >= 1", "price <= 1022", "name == 'x'", "name != 'y'"):
        assert not read(text).matches_batch(batch).any()


def test_a_batch_without_events_matches_nothing() -> None:
    batch = EventBatch.from_events(SCHEMA, "h", [])
    for text in ("True", "price > 5", "name != 'x'"):
        found = read(text).matches_batch(batch)
        assert found.dtype == np.bool_ and len(found) == 0


@pytest.mark.parametrize(
    ("large", "small"),
    [
        ("True", "price > 5 and name == 'x'"),
        ("price > 5", "price > 6"),
        ("price < 6 or price > 4 and size > 0 or size < 2", "True"),
        ("price <= 500 or price > 500 and size <= 70 or size > 70", "size == 7 or price > 3"),
        ("name != 'x'", "name == 'y' or name not in ('x', 'z')"),
        ("name != 'x' or price > 5", "price > 7"),
        ("name == 'x' or name != 'x' and size < 9", "size < 9"),
        ("'A' <= symbol < 'M' or 'M' <= symbol < 'Z'", "'B' < symbol <= 'N'"),
        ("symbol < 'M' or symbol == 'M' or symbol > 'M'", "True"),
        ("side in ('buy', 'hold') or size < 50", "side != 'sell' and price > 5"),
    ],
)
def test_a_filter_covers_another_if_need_be_by_several_boxes(large: str, small: str) -> None:
    assert read(large).covers(read(small))
    assert read(large).overlaps(read(small))


@pytest.mark.parametrize(
    ("large", "small"),
    [
        ("price > 5", "price > 4"),
        ("price < 500 or price > 500", "size == 7"),
        ("price <= 500 and size < 9 or price > 500 and size > 0", "True"),
        ("name != 'x'", "True"),
        ("name == 'x'", "name != 'y'"),
        ("'A' <= symbol < 'M' or 'M' < symbol < 'Z'", "'B' < symbol <= 'N'"),
    ],
)
def test_a_filter_does_not_cover_what_sticks_out(large: str, small: str) -> None:
    assert not read(large).covers(read(small))


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("price > 5", "price <= 5"),
        ("name == 'x'", "name != 'x'"),
        ("name == 'x'", "name in ('y', 'z')"),
        ("symbol < 'M'", "symbol >= 'M'"),
        ("symbol <= 'M' and symbol != 'M'", "symbol >= 'M'"),
        ("price < 5 and size < 5 or price > 9 and size > 9", "price < 5 and size > 9"),
    ],
)
def test_filters_that_share_no_event_have_no_intersection(one: str, two: str) -> None:
    assert not read(one).overlaps(read(two)) and not read(two).overlaps(read(one))
    assert read(one).intersection(read(two)) is None


def test_an_intersection_is_a_filter_whose_text_means_it() -> None:
    common = read("price > 5 or size < 3 # either").intersection(read("symbol <= 'M' and name != 'x'"))
    assert common is not None
    assert Filter.parse(common.text, SCHEMA).boxes == common.boxes
    assert not common.matches(EVENT) and common.matches(EVENT | {"name": "y"})


def test_filters_of_different_schemas_do_not_compare() -> None:
    other = Filter.parse("price > 5", Schema.parse({"price": {"type": "int", "min": 0, "max": 9}}))
    for question in (read("price > 5").covers, read("price > 5").overlaps, read("price > 5").intersection):
        with pytest.raises(BadInput, match="different schemas"):
            question(other)


def test_comparing_large_filters_ends_soon_and_errs_on_the_safe_side() -> None:
    odd = read(f"size in ({','.join(str(i) for i in range(1, 8000, 2))})")
    even = read(f"size in ({','.join(str(i) for i in range(0, 8000, 2))})")
    holes = read(" or ".join(f"(price != {i} and size != {9 * i})" for i in range(1, 900)))
    started = time.process_time()
    assert odd.covers(odd)
    assert not odd.covers(even)
    assert odd.overlaps(even)  # more pairs than are looked at
    assert odd.intersection(even) is None
    assert holes.overlaps(odd)
    assert isinstance(holes.covers(read("price > 2 and size > 2")), bool)
    assert time.process_time() - started < 2


def test_a_filter_that_is_known_is_read_when_somebody_asks_what_it_means() -> None:
    known = Filter.known("price > 5 or side == 'buy'", SCHEMA)
    assert "boxes" not in vars(known)
    assert (str(known), hash(known)) == ("price > 5 or side == 'buy'", hash(read(known.text)))
    assert "boxes" not in vars(pickle.loads(pickle.dumps(known)))
    assert pickle.loads(pickle.dumps(known)).matches(EVENT)
    assert known == read(known.text)
    with pytest.raises(AttributeError, match="no 'colour'"):
        known.colour  # noqa: B018
