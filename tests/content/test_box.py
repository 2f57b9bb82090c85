"""Constraints on one attribute."""

from __future__ import annotations

from itertools import product

from flowsieve.content.box import Interval, Text

TEXTS = [
    Text(),
    Text(equals="a"),
    Text(equals=""),
    Text(none_of=frozenset({"a"})),
    Text(none_of=frozenset({"", "b"})),
    Text(low="a", high="b"),
    Text(low="a\0", high="b\0"),
    Text(low="b"),
    Text(high="b\0"),
    Text(low="a", none_of=frozenset({"b"})),
]
STRINGS = ["", "\0", "a", "a\0", "aa", "ab", "b", "b\0", "c", "é"]


def test_an_interval_holds_both_its_ends() -> None:
    assert Interval(1, 3).admits(1) and Interval(1, 3).admits(3)
    assert not Interval(1, 3).admits(0) and not Interval(1, 3).admits(4)


def test_intervals_cover_and_overlap_as_sets_of_numbers_do() -> None:
    intervals = [Interval(a, b) for a in range(4) for b in range(a, 4)]
    for one, two in product(intervals, intervals):
        first, second = (set(range(i.low, i.high + 1)) for i in (one, two))  # type: ignore[arg-type]
        assert one.covers(two) == (first >= second)
        assert one.overlaps(two) == bool(first & second)


def test_texts_cover_and_overlap_as_sets_of_strings_do() -> None:
    for one, two in product(TEXTS, TEXTS):
        first, second = ({s for s in STRINGS if text.admits(s)} for text in (one, two))
        assert one.covers(two) == (first >= second), (one, two)
        assert one.overlaps(two) == bool(first & second), (one, two)


def test_a_range_of_strings_goes_by_the_whole_string_and_not_by_its_first_bytes() -> None:
    text = Text(low="abcdefghi", high="abcdefghk")
    assert text.admits("abcdefghj") and not text.admits("abcdefgha")


def test_strings_order_as_their_utf8_bytes_do() -> None:
    strings = ["", "Z", "a", "z", "é", "\u07ff", "\u0800", "\uffff", "\U00010000", "\U0010ffff"]
    assert sorted(strings) == sorted(strings, key=str.encode)


def test_ranges_that_share_one_string_overlap_unless_it_is_left_out() -> None:
    assert Text(low="a").overlaps(Text(high="a\0"))
    assert not Text(low="a", none_of=frozenset({"a"})).overlaps(Text(high="a\0"))
    assert not Text(low="a\0").overlaps(Text(high="a\0"))
