"""Sets of values of one attribute."""

from __future__ import annotations

import ast
import math
from itertools import product

import pytest

from flowsieve.content.box import Interval, Text
from flowsieve.content.cuts import (
    compare,
    complement,
    constraints,
    covers,
    cuts_of,
    intersection,
    union,
    whole,
)
from flowsieve.content.schema import Attribute

INT = Attribute.parse("n", {"type": "int", "min": -2, "max": 5})
FLOAT = Attribute.parse("x", {"type": "float", "min": -1.0, "max": 1.0})
TEXT = Attribute.parse("s", {"type": "string"})

# All sets of integers from -2 to 5 that have at most four cuts among these.
SETS = [cuts for cuts in product(range(-2, 6), repeat=2) if cuts[0] < cuts[1]]
SETS += [(a,) for a in range(-2, 6)] + [(), (-2, 0, 3), (-1, 0, 1, 2), (0, 2, 4), (-2, 1, 3, 5)]


def members(cuts: tuple[int, ...]) -> set[int]:
    return {n for n in range(-2, 6) if sum(cut <= n for cut in cuts) % 2}


def test_unions_intersections_complements_and_covering_are_those_of_sets() -> None:
    for one, two in product(SETS, SETS):
        assert members(union([one, two])) == members(one) | members(two)
        assert members(intersection([one, two])) == members(one) & members(two)
        assert covers(one, two) == (members(one) >= members(two))
    for cuts in SETS:
        assert members(complement(INT, cuts)) == members(whole(INT)) - members(cuts)
        assert complement(INT, complement(INT, cuts)) == cuts


def test_many_sets_meet_in_one_sweep() -> None:
    singles = [complement(INT, (n, n + 1)) for n in range(-1, 4)]
    assert members(intersection(singles)) == {-2, 4, 5}
    assert union([]) == ()


@pytest.mark.parametrize(
    ("operator", "constant", "expected"),
    [
        (ast.Lt, 2, [Interval(-2, 1)]),
        (ast.LtE, 2, [Interval(-2, 2)]),
        (ast.Lt, 2.5, [Interval(-2, 2)]),
        (ast.Gt, 2.5, [Interval(3, 5)]),
        (ast.Eq, 2.5, []),
        (ast.Eq, 2.0, [Interval(2, 2)]),
        (ast.NotEq, 2.5, [Interval(-2, 5)]),
        (ast.NotEq, 0, [Interval(-2, -1), Interval(1, 5)]),
        (ast.NotEq, -2, [Interval(-1, 5)]),
        (ast.Gt, 5, []),
        (ast.Gt, -99, [Interval(-2, 5)]),
        (ast.Lt, math.inf, [Interval(-2, 5)]),
        (ast.Gt, math.inf, []),
        (ast.GtE, -math.inf, [Interval(-2, 5)]),
        pytest.param(ast.Lt, 10**5000, [Interval(-2, 5)], id="a huge int"),
    ],
)
def test_a_comparison_of_an_int_is_clipped_and_rounded_inwards(
    operator: type[ast.cmpop], constant: float, expected: list[Interval]
) -> None:
    assert constraints(INT, compare(INT, operator, constant)) == expected


def test_a_strict_bound_of_a_float_ends_at_the_next_float() -> None:
    below, above = math.nextafter(0.5, -1), math.nextafter(0.5, 1)
    assert constraints(FLOAT, compare(FLOAT, ast.Lt, 0.5)) == [Interval(-1.0, below)]
    assert constraints(FLOAT, compare(FLOAT, ast.Gt, 0.5)) == [Interval(above, 1.0)]
    assert constraints(FLOAT, compare(FLOAT, ast.NotEq, 0.5)) == [Interval(-1.0, below), Interval(above, 1.0)]
    assert constraints(FLOAT, compare(FLOAT, ast.Gt, 10**400)) == []


def test_an_integer_between_two_floats_is_no_float() -> None:
    wide = Attribute.parse("x", {"type": "float", "min": 0, "max": 1e18})
    odd = 2**53 + 1
    assert compare(wide, ast.Eq, odd) == ()
    assert constraints(wide, compare(wide, ast.Lt, odd)) == [Interval(0.0, 2.0**53)]
    assert constraints(wide, compare(wide, ast.Gt, odd)) == [Interval(2.0**53 + 2, 1e18)]


def test_the_strings_that_are_left_out_are_listed_and_not_fenced_in_by_ranges() -> None:
    others = intersection([compare(TEXT, ast.NotEq, string) for string in ("b", "", "a", "aa")])
    assert constraints(TEXT, others) == [Text(none_of=frozenset({"", "a", "aa", "b"}))]
    some = union([compare(TEXT, ast.Eq, string) for string in ("b", "", "a")])
    assert constraints(TEXT, some) == [Text(equals=""), Text(equals="a"), Text(equals="b")]


def test_constraints_become_cuts_again() -> None:
    for text in (Text(), Text(equals="a"), Text(none_of=frozenset({"", "b"})), Text(low="a\0", high="c")):
        assert constraints(TEXT, cuts_of(TEXT, text)) == [text]
    for interval in (Interval(-2, 5), Interval(0, 0), Interval(3, 5)):
        assert constraints(INT, cuts_of(INT, interval)) == [interval]
