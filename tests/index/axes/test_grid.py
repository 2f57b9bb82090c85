from __future__ import annotations

import hashlib

import numpy as np
import pytest

from flowsieve.content.box import ANY_TEXT, Interval, Text
from flowsieve.content.schema import Attribute
from flowsieve.errors import BadCell, BadPlan
from flowsieve.index.axes.grid import Axis, Span

PERCENT = Attribute("p", "int", 0, 99)
RATIO = Attribute("r", "float", -1.0, 1.0)
SIDE = Attribute.parse("side", {"type": "enum", "values": ["buy", "sell", "hold"]})
WORD = Attribute.parse("word", {"type": "string"})
NAME = Attribute.parse("name", {"type": "string", "prefix": True})


def test_an_int_lies_in_the_cell_that_its_share_of_the_range_gives() -> None:
    assert [Axis(PERCENT, 3).place(v) for v in (0, 12, 13, 49, 50, 99)] == [0, 0, 1, 3, 4, 7]


def test_the_top_of_a_float_lies_in_the_last_cell() -> None:
    assert [Axis(RATIO, 2).place(v) for v in (-1.0, -0.5, 0.0, 0.999, 1.0)] == [0, 1, 2, 3, 3]


def test_a_float_just_below_an_edge_stays_below_it() -> None:
    axis = Axis(Attribute("x", "float", 0.0, 0.3), 1)
    assert axis.place(0.15) == 1
    assert axis.place(float(np.nextafter(0.15, 0.0))) == 0


def test_a_string_lies_where_the_top_bits_of_its_hash_say() -> None:
    digest = hashlib.blake2b(b"abc", digest_size=8).digest()
    assert Axis(WORD, 64).place("abc") == int.from_bytes(digest, "big")
    assert Axis(WORD, 8).place("abc") == digest[0]


def test_a_prefix_string_lies_where_its_first_bytes_say() -> None:
    assert Axis(NAME, 16).place("AB") == 0x4142
    assert Axis(NAME, 64).place("ABCDEFGHIJ") == int.from_bytes(b"ABCDEFGH", "big")
    assert Axis(NAME, 24).place("é") == 0xC3A900


def test_a_strict_bound_on_an_edge_does_not_touch_the_next_cell() -> None:
    assert Axis(PERCENT, 2).span(Interval(25, 49)) == Span(1, 1, 1, 1)
    below_half = float(np.nextafter(0.5, 0.0))
    assert Axis(RATIO, 2).span(Interval(0.0, below_half))[:2] == (2, 2)
    assert Axis(NAME, 16).span(Text(low="AB", high="AC")) == Span(0x4142, 0x4142, 0x4142, 0x4142)


def test_cells_without_a_value_can_be_taken_along() -> None:
    # Three values on four cells: the last one is empty.
    assert Axis(SIDE, 2).span(Interval(2, 2)) == Span(2, 2, 2, 3)
    assert Axis(SIDE, 2).span(Interval(0, 2)) == Span(0, 2, 0, 3)
    # A hundred values on 128 cells: 0 to 49 fill the lower half but for its last cell.
    assert Axis(PERCENT, 7).span(Interval(0, 49)) == Span(0, 62, 0, 63)


def test_a_cell_that_holds_the_next_value_is_not_taken_along() -> None:
    five = Attribute("five", "int", 0, 4)  # at 3 bits on 0, 1, 3, 4, 6; at 2 bits on 0, 0, 1, 2, 3
    assert Axis(five, 3).span(Interval(0, 1)) == Span(0, 1, 0, 2)
    assert Axis(five, 2).span(Interval(0, 1)) == Span(0, 0, 0, 0)


def test_what_a_hash_cannot_tell_touches_everything() -> None:
    everything = Span(0, 255, 0, 255)
    assert Axis(WORD, 8).span(Text(none_of=frozenset({"abc"}))) == everything
    assert Axis(WORD, 8).span(ANY_TEXT) == everything
    place = Axis(WORD, 8).place("abc")
    assert Axis(WORD, 8).span(Text(equals="abc")) == Span(place, place, place, place)


def test_an_upper_bound_that_shares_its_place_with_strings_below_it_touches_that_place() -> None:
    axis = Axis(NAME, 64)
    eight = axis.place("ABCDEFGH")
    assert axis.span(Text(high="ABCDEFGHI")).last == eight  # ABCDEFGH and ABCDEFGHA are below it
    assert axis.span(Text(high="ABCDEFGH")).last == eight - 1
    assert axis.span(Text(high="AB\0")).last == axis.place("AB")  # s <= "AB"


def test_an_axis_of_no_bits_has_one_cell() -> None:
    assert Axis(PERCENT, 0).place(77) == 0
    assert Axis(PERCENT, 0).span(Interval(3, 4)) == Span(0, 0, 0, 0)
    assert Axis(WORD, 0).place("abc") == 0


def test_an_attribute_has_no_more_bits_than_tell_its_values_apart() -> None:
    with pytest.raises(BadPlan, match="p has 0 to 7 bits in an index, not 8"):
        Axis(PERCENT, 8)


def test_a_column_has_the_places_of_its_values() -> None:
    assert Axis(PERCENT, 3).places(np.array([0.0, 12, 13, 99])).tolist() == [0, 0, 1, 7]
    assert Axis(WORD, 8).places(np.array(["abc", "", "abc"], object)).tolist() == [
        Axis(WORD, 8).place(word) for word in ("abc", "", "abc")
    ]


@pytest.mark.parametrize("wrong", [100.0, -1.0, np.nan, np.inf, 3.5])
def test_a_number_outside_the_range_has_no_place(wrong: float) -> None:
    with pytest.raises(BadCell, match=r"p = .*an int from 0 to 99") as caught:
        Axis(PERCENT, 3).places(np.array([1.0, 2.0, wrong]))
    assert (caught.value.row, caught.value.column) == (2, "p")


@pytest.mark.parametrize("wrong", [1.5, np.nan, -np.inf])
def test_a_float_outside_the_range_has_no_place(wrong: float) -> None:
    with pytest.raises(BadCell, match=r"a float from -1\.0 to 1\.0"):
        Axis(RATIO, 3).places(np.array([wrong]))


def test_a_missing_string_has_no_place() -> None:
    with pytest.raises(BadCell, match="word = None; it is a string"):
        Axis(WORD, 3).places(np.array(["abc", None], object))


def test_ints_as_wide_as_floats_hold_them_have_exact_places() -> None:
    widest = Axis(Attribute("w", "int", -(2**53), 2**53), 54)
    values = [-(2**53), -(2**53) + 1, -1, 0, 1, 2**53 - 1, 2**53]
    assert widest.places(np.array(values, float)).tolist() == [widest.place(v) for v in values]
