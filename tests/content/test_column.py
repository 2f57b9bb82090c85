"""Columns of tables, in all the forms that files and programs give them."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

from flowsieve.content.column import numbers, places, strings
from flowsieve.content.schema import LARGEST_INT, Attribute
from flowsieve.errors import BadCell, BadValue

INT = Attribute.parse("n", {"type": "int", "min": -(2**53), "max": 2**53})
FLOAT = Attribute.parse("x", {"type": "float", "min": -1.0, "max": 1.0})
ENUM = Attribute.parse("e", {"type": "enum", "values": ["buy", "sell", "7"]})
BOOL = Attribute.parse("t", {"type": "bool"})
NAN = math.nan


@pytest.mark.parametrize(
    ("cells", "dtype", "expected"),
    [
        (["1", "3.0", "1e2", " 4 ", "+5", "-0.5"], object, [1, 3, 100, 4, 5, -0.5]),
        (["", " ", "nan", "NaN", None], object, [NAN] * 5),
        (["inf", "-inf", "Infinity", "1e999"], object, [math.inf, -math.inf, math.inf, math.inf]),
        (["1", None], "string", [1, NAN]),
        (["1", None], "string[pyarrow]", [1, NAN]),
        (["1", None, "1"], "category", [1, NAN, 1]),
        ([1, 2, 1], "category", [1, 2, 1]),
        ([1, -2], "int32", [1, -2]),
        ([1, 2], "uint8", [1, 2]),
        ([0.5, NAN, math.inf], "float64", [0.5, NAN, math.inf]),
        ([0.5], "float32", [0.5]),
        ([1, None], "Int64", [1, NAN]),
        ([0.5, None], "Float64", [0.5, NAN]),
        ([1, None], "int64[pyarrow]", [1, NAN]),
        (
            [1, "2", None, Decimal(3), NAN, pd.NA, np.int8(4), 10**400],
            object,
            [1, 2, NAN, 3, NAN, NAN, 4, math.inf],
        ),
        ([b"5", str(LARGEST_INT).encode()], object, [5, LARGEST_INT]),
        ([], object, []),
    ],
)
def test_numbers_are_read_in_every_form(cells: list[Any], dtype: str, expected: list[float]) -> None:
    out = numbers(INT, pd.Series(cells, dtype=dtype))
    assert out.dtype == np.float64
    np.testing.assert_array_equal(out, np.array(expected, dtype=np.float64))


@pytest.mark.parametrize(
    "cell", ["abc", "1_000", "1,5", "0x10", "1 2", "--1", [1], datetime.date(2020, 1, 1), "\ud800"]
)
def test_what_is_no_number_is_named_with_its_row(cell: object) -> None:
    with pytest.raises(BadCell, match=r"n = .* is not a number; n is an int from") as caught:
        numbers(INT, pd.Series(["1", "", cell, "2"], dtype=object))
    assert caught.value.row == 2


@pytest.mark.parametrize("series", [pd.Series(pd.to_datetime(["2020-01-01"])), pd.Series([1j])])
def test_a_column_of_another_kind_of_thing_is_refused(series: Any) -> None:
    with pytest.raises(BadValue, match="column n holds"):
        numbers(INT, series)


def test_text_is_rounded_as_python_rounds_it() -> None:
    chance = np.random.default_rng(1)
    texts = [str(x) for x in chance.uniform(-1, 1, 500)] + [f"{x:.25f}" for x in chance.uniform(-1, 1, 500)]
    texts += ["0.1", "2.2250738585072011e-308", "5e-324", "9007199254740993", "0.30000000000000004"]
    assert numbers(FLOAT, pd.Series(texts, dtype=object)).tolist() == [float(text) for text in texts]


@pytest.mark.parametrize("dtype", ["object", "int64", "Int64"])
def test_an_integer_just_beyond_all_ranges_is_not_rounded_into_one(dtype: str) -> None:
    ends = [LARGEST_INT, -LARGEST_INT, LARGEST_INT + 1, -LARGEST_INT - 1]
    column = pd.Series(ends if dtype != "object" else [str(end) for end in ends], dtype=dtype)
    assert (np.abs(numbers(INT, column)) <= LARGEST_INT).tolist() == [True, True, False, False]


@pytest.mark.parametrize("dtype", [object, "string", "category"])
def test_the_words_of_an_enum_have_places_and_unknown_ones_are_kept(dtype: str) -> None:
    out, words = places(ENUM, pd.Series(["sell", "buy", None, "sell"], dtype=dtype))
    np.testing.assert_array_equal(out, [1, 0, NAN, 1])
    assert words is None
    out, words = places(ENUM, pd.Series(["sell", "bug", "BUY"], dtype=dtype))
    np.testing.assert_array_equal(out, [1, NAN, NAN])
    assert words is not None and words.tolist() == ["sell", "bug", "BUY"]


def test_an_enum_of_figures_may_come_as_numbers() -> None:
    assert places(ENUM, pd.Series([7, 7]))[0].tolist() == [2, 2]


@pytest.mark.parametrize(
    ("cells", "dtype"),
    [
        (["true", "FALSE", "1", "0"], object),
        ([True, False, True, False], bool),
        ([True, False, True, False], "boolean"),
        ([1, 0, 1, 0], "int64"),
        (["True", "False", "true", "false"], "category"),
    ],
)
def test_bools_are_read_in_every_form(cells: list[Any], dtype: str) -> None:
    out, words = places(BOOL, pd.Series(cells, dtype=dtype))
    assert out.tolist() == [1, 0, 1, 0] and words is None


def test_words_that_are_lists_are_refused() -> None:
    with pytest.raises(BadValue, match="column e holds lists"):
        places(ENUM, pd.Series([["buy"]]))


@pytest.mark.parametrize("dtype", [object, "string", "category"])
def test_strings_stay_as_they_are_and_missing_ones_are_none(dtype: str) -> None:
    assert strings(pd.Series(["a", "", None, "é"], dtype=dtype)).tolist() == ["a", "", None, "é"]


def test_what_is_no_string_becomes_one() -> None:
    assert strings(pd.Series([1, 2])).tolist() == ["1", "2"]
    assert strings(pd.Series(["a", 5, None], dtype=object)).tolist() == ["a", "5", None]
    table = pd.Series(["a", None], dtype=object)
    strings(table)[0] = "b"
    assert table[0] == "a"
