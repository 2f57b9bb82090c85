"""Schemas and their attributes."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

from flowsieve.content.box import Interval, Text
from flowsieve.content.schema import Attribute, Schema
from flowsieve.errors import BadSchema, BadValue

TABLE = {
    "price": {"type": "int", "min": 0, "max": 1023},
    "ratio": {"type": "float", "min": -1, "max": 1.0},
    "side": {"type": "enum", "values": ["buy", "sell", "hold"]},
    "live": {"type": "bool"},
    "name": {"type": "string"},
    "symbol": {"type": "string", "prefix": True},
}
SCHEMA = Schema.parse(TABLE)


def test_a_schema_keeps_its_attributes_in_order_and_by_name() -> None:
    assert SCHEMA.names == tuple(TABLE)
    assert len(SCHEMA) == 6
    assert [attribute.kind for attribute in SCHEMA] == ["int", "float", "enum", "bool", "string", "string"]
    assert SCHEMA["side"].values == ("buy", "sell", "hold")
    assert "side" in SCHEMA and "slide" not in SCHEMA


def test_an_unknown_attribute_is_named_with_the_nearest_one() -> None:
    with pytest.raises(BadValue, match="no attribute 'prise'; did you mean 'price'"):
        SCHEMA["prise"]


@pytest.mark.parametrize(
    ("table", "bits"),
    [
        ({"type": "int", "min": 5, "max": 5}, 0),
        ({"type": "int", "min": 0, "max": 1}, 1),
        ({"type": "int", "min": -1, "max": 1}, 2),
        ({"type": "int", "min": 0, "max": 1023}, 10),
        ({"type": "int", "min": 0, "max": 1024}, 11),
        ({"type": "int", "min": -(2**53), "max": 2**53}, 55),
        ({"type": "enum", "values": ["a"]}, 0),
        ({"type": "enum", "values": list("abcde")}, 3),
        ({"type": "bool"}, 1),
        ({"type": "float", "min": 0.0, "max": 1e-9}, 52),
        ({"type": "string"}, 64),
        ({"type": "string", "prefix": True}, 64),
    ],
)
def test_the_resolution_is_as_many_bits_as_tell_the_values_apart(table: dict[str, object], bits: int) -> None:
    assert Attribute.parse("a", table).resolution == bits


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({}, "type is missing"),
        ({"type": "integer"}, "'integer' is none of int, .*did you mean 'int'"),
        ({"type": 5}, "5 is none of"),
        ("int", "'int' is not a table"),
        ({"type": "int", "min": 0}, "max is missing"),
        ({"type": "float", "max": 0}, "min is missing"),
        ({"type": "int", "min": 2, "max": 1}, "min = 2 is above max = 1"),
        ({"type": "int", "min": 0, "max": 1.5}, "max = 1.5 is not an integer"),
        ({"type": "int", "min": True, "max": 5}, "min = True is not an integer"),
        ({"type": "int", "min": 0, "max": 2**53 + 1}, "beyond ±2\\^53"),
        ({"type": "float", "min": 1.0, "max": 1.0}, "min = 1.0 is not below max = 1.0"),
        ({"type": "float", "min": math.nan, "max": 1.0}, "min = nan is not finite"),
        ({"type": "float", "min": 0, "max": 10**400}, "is not finite"),
        ({"type": "float", "min": "0", "max": 1}, "'0' is not a number"),
        ({"type": "enum"}, "values is missing"),
        ({"type": "enum", "values": []}, "not a list of one or more"),
        ({"type": "enum", "values": "abc"}, "not a list of one or more"),
        ({"type": "enum", "values": ["a", "b", "a"]}, "'a' stands twice"),
        ({"type": "enum", "values": ["a", 1]}, "the value 1 is not a text"),
        ({"type": "enum", "values": ["\ud800"]}, "is not a text"),
        ({"type": "string", "prefix": "yes"}, "prefix is true or false, not 'yes'"),
        ({"type": "string", "prefixed": True}, "no 'prefixed', only type, prefix; did you mean 'prefix'"),
        ({"type": "bool", "min": 0}, "no 'min', only type"),
    ],
)
def test_a_table_that_describes_no_attribute_is_refused(table: object, message: str) -> None:
    with pytest.raises(BadSchema, match=message) as caught:
        Schema.parse({"size": table})
    assert str(caught.value).startswith("attribute size: ")


@pytest.mark.parametrize("name", ["", "a b", "1st", "a-b", "and", "True", "None", "id", "host", "ﬁt", 5])
def test_a_name_that_no_filter_could_say_is_refused(name: object) -> None:
    with pytest.raises(BadSchema, match="name"):
        Schema.parse({name: {"type": "bool"}})


@pytest.mark.parametrize("table", [{}, [], None, "price"])
def test_a_schema_has_attributes(table: object) -> None:
    with pytest.raises(BadSchema):
        Schema.parse(table)


def test_an_attribute_cannot_be_made_wrong_by_hand() -> None:
    with pytest.raises(BadSchema, match="ends of this enum"):
        Attribute("side", "enum", 0, 5, ("buy", "sell"))
    with pytest.raises(BadSchema, match="different names"):
        Schema((SCHEMA["price"], SCHEMA["price"]))


def test_a_schema_is_what_its_json_says() -> None:
    again = Schema.parse(SCHEMA.to_json())
    assert again == SCHEMA and hash(again) == hash(SCHEMA)
    assert pickle.loads(pickle.dumps(SCHEMA)) == SCHEMA


def test_the_digest_names_the_schema_and_does_not_change_between_releases() -> None:
    small = Schema.parse({"price": {"type": "int", "min": 0, "max": 1023}, "live": {"type": "bool"}})
    assert small.digest == "ee51740f11bf8f04e868f7aefbb3e950"
    assert Schema.parse(SCHEMA.to_json()).digest == SCHEMA.digest
    turned = dict(reversed(TABLE.items()))
    assert Schema.parse(turned).digest != SCHEMA.digest


def test_a_float_range_is_the_same_however_it_is_written() -> None:
    one, two = (Schema.parse({"x": {"type": "float", "min": low, "max": 1}}) for low in (0, -0.0))
    assert one == two and one.digest == two.digest


def test_the_whole_space_is_every_value_of_every_attribute() -> None:
    assert SCHEMA.whole == (
        Interval(0, 1023),
        Interval(-1.0, 1.0),
        Interval(0, 2),
        Interval(0, 1),
        Text(),
        Text(),
    )


@pytest.mark.parametrize(
    ("name", "value", "point"),
    [
        ("price", 60, 60),
        ("price", 60.0, 60),
        ("price", np.int32(60), 60),
        ("price", np.float32(60), 60),
        ("ratio", 1, 1.0),
        ("ratio", np.float64(0.5), 0.5),
        ("ratio", Fraction(1, 4), 0.25),
        ("side", "hold", 2),
        ("live", True, 1),
        ("live", np.False_, 0),
        ("name", "x", "x"),
    ],
)
def test_a_value_has_a_point_and_the_point_has_the_value(name: str, value: object, point: object) -> None:
    attribute = SCHEMA[name]
    found = attribute.point(value)
    assert found == point and type(found) is type(point)
    assert attribute.point(attribute.value(found)) == point


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("price", 1200, "price = 1200 is outside the range; price is an int from 0 to 1023"),
        ("price", 3.5, "not a whole number"),
        ("price", "60", "not a number"),
        ("price", True, "not a number"),
        ("price", math.inf, "not a whole number"),
        pytest.param("price", 10**5000, "a huge int is outside", id="a huge int"),
        ("ratio", math.nan, "ratio = nan is outside"),
        ("ratio", None, "not a number"),
        ("ratio", 10**400, "outside"),
        ("side", "bug", "none of buy, sell, hold; did you mean 'buy'"),
        ("side", 1, "none of buy, sell, hold"),
        ("live", 1, "neither True nor False"),
        ("name", 5, "not a string"),
        ("name", "\ud800", "not valid Unicode"),
    ],
)
def test_a_value_that_the_attribute_cannot_have_is_named(name: str, value: object, message: str) -> None:
    with pytest.raises(BadValue, match=message):
        SCHEMA[name].point(value)


def test_an_error_stays_short_whatever_the_value_and_however_many_are_right() -> None:
    many = Attribute.parse("many", {"type": "enum", "values": [f"v{i}" for i in range(100_000)]})
    with pytest.raises(BadValue) as caught:
        many.number("x" * 100_000)
    assert len(str(caught.value)) < 300
