from __future__ import annotations

import pytest

from flowsieve.content.box import ANY_TEXT, Interval, Text
from flowsieve.content.schema import Attribute
from flowsieve.index.axes.grid import Axis
from flowsieve.index.axes.inverse import Unfound, any_string, number_in, string_in

PERCENT = Axis(Attribute("p", "int", 0, 99), 3)
RATIO = Axis(Attribute("r", "float", -1.0, 1.0), 52)
WORD = Axis(Attribute.parse("word", {"type": "string"}), 8)
NAME = Axis(Attribute.parse("name", {"type": "string", "prefix": True}), 64)


def test_the_lowest_number_at_a_place_is_found() -> None:
    assert number_in(PERCENT, 3, 4, Interval(0, 99)) == 38
    assert number_in(PERCENT, 3, 4, Interval(60, 99)) == 60
    assert number_in(PERCENT, 3, 4, Interval(63, 99)) is None
    assert number_in(PERCENT, 3, 4, Interval(0, 37)) is None


def test_a_float_at_any_place_is_found() -> None:
    for place in (0, 1, 2**51, 2**52 - 1):
        found = number_in(RATIO, place, place, Interval(-1.0, 1.0))
        assert found is not None
        assert RATIO.place(found) == place


def test_a_cell_between_two_neighbouring_floats_is_empty() -> None:
    axis = Axis(Attribute("x", "float", 1e6, 1e6 + 1), 52)
    assert number_in(axis, 1, 1, Interval(1e6, 1e6 + 1)) is None


def test_a_string_with_a_short_hash_is_found_by_trying() -> None:
    found = string_in(WORD, 17, 17, Text(none_of=frozenset({"7"})))
    assert isinstance(found, str)
    assert WORD.place(found) == 17


def test_a_string_with_a_long_hash_is_not_named() -> None:
    found = string_in(Axis(WORD.attribute, 40), 1, 1, ANY_TEXT)
    assert isinstance(found, Unfound)
    assert str(found) == f"a string whose hash begins {'0' * 39}1…"


def test_an_equal_string_is_there_or_not() -> None:
    place = WORD.place("abc")
    assert string_in(WORD, place, place, Text(equals="abc")) == "abc"
    assert string_in(WORD, place + 1, 255, Text(equals="abc")) is None


def test_the_lowest_string_of_a_range_is_found() -> None:
    first, last = NAME.place("B"), NAME.place("Bz")
    assert string_in(NAME, first, last, ANY_TEXT) == "B"
    assert string_in(NAME, first, last, Text(low="Bc")) == "Bc"
    assert string_in(NAME, first, last, Text(high="B")) is None
    assert string_in(NAME, first, last, Text(low="C")) is None


def test_a_string_that_is_ruled_out_has_a_neighbour() -> None:
    place = NAME.place("B")
    found = string_in(NAME, place, place, Text(none_of=frozenset({"B"})))
    assert found == "B\0"


@pytest.mark.parametrize("data", [b"\x80", b"A\xc3", b"\xed\xa0\x80", b"\xe2\x28\xa1", b"\xc3\xff"])
def test_bytes_that_are_no_text_give_the_next_text(data: bytes) -> None:
    first = int.from_bytes(data.ljust(8, b"\0"), "big")
    found = string_in(NAME, first, 2**64 - 1, ANY_TEXT)
    assert isinstance(found, str)
    assert NAME.place(found) >= first
    # One character less at the end, and it lies below: nothing was passed over.
    before = found[:-1] + chr(ord(found[-1]) - 1 if found[-1] != "\ue000" else 0xD7FF)
    assert NAME.place(before) < first


def test_beyond_the_last_character_there_is_no_string() -> None:
    assert string_in(NAME, 0xFF << 56, 2**64 - 1, ANY_TEXT) is None


def test_some_string_meets_any_constraint() -> None:
    assert any_string(Text(equals="x")) == "x"
    assert any_string(ANY_TEXT) == ""
    assert any_string(Text(none_of=frozenset({""}))) == "\0"
    assert any_string(Text(low="AB", high="AC")) == "AB"
    assert any_string(Text(low="AC", high="AB")) is None
