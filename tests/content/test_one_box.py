"""The short way to a filter's box against the long one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowsieve.content import parser
from flowsieve.content.one_box import one_box
from flowsieve.content.schema import Schema
from flowsieve.errors import BadFilter

SCHEMA = Schema.parse(
    {
        "a": {"type": "int", "min": -5, "max": 9},
        "b": {"type": "int", "min": 0, "max": 1},
        "x": {"type": "float", "min": 0.0, "max": 1.0},
        "t": {"type": "bool"},
    }
)
SHORT = ["a < 5", "0 <= a < 4 and b == 1", "3 >= a", "a <= 100 and a > 2", "b == 0 and a == 9 and 1 <= a"]
LONG = [
    "a != 3", "not a < 3", "a < 3 or b == 1", "a in (1, 2)", "a < 2.5", "x < 1", "t", "True", "a < -3",
    "a < 3 and (b == 1 or a == 0)",
]  # fmt: skip
WRONG = [
    "a < 3 and a > 4",
    "a > 100",
    "a < b",
    "3 < 4",
    "c < 3",
    "a is 3",
    "a < 'x'",
    "a < True",
    "1 < a < b",
    "3",
]


def meanings(text: str) -> tuple[object, object]:
    expression = parser._expression(text)
    box = one_box(expression, SCHEMA)
    return (box and (box,)), parser._boxes(text, expression, SCHEMA)


@pytest.mark.parametrize("text", SHORT)
def test_ranges_of_integers_go_the_short_way_to_the_same_box(text: str) -> None:
    short, long = meanings(text)
    assert short == long


@pytest.mark.parametrize("text", LONG)
def test_all_else_goes_the_long_way(text: str) -> None:
    assert meanings(text)[0] is None


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_left_to_the_long_way(text: str) -> None:
    assert one_box(parser._expression(text), SCHEMA) is None
    with pytest.raises(BadFilter):
        parser.parse_boxes(text, SCHEMA)


NAMES, NUMBERS, ORDERS = (
    st.sampled_from("abx"),
    st.integers(-7, 11).map(str),
    st.sampled_from(["<", "<=", ">", ">=", "==", "!="]),
)
COMPARISONS = st.one_of(
    st.tuples(NAMES, ORDERS, NUMBERS),
    st.tuples(NUMBERS, ORDERS, NAMES),
    st.tuples(NUMBERS, ORDERS, NAMES, ORDERS, NUMBERS),
).map(" ".join)


@given(st.lists(COMPARISONS, min_size=1, max_size=4).map(" and ".join))
def test_both_ways_mean_the_same(text: str) -> None:
    box = one_box(parser._expression(text), SCHEMA)
    if box is not None:
        assert parser._boxes(text, parser._expression(text), SCHEMA) == (box,)
