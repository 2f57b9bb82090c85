"""What holds for every dz and every set of dz."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from flowsieve.index import algebra
from flowsieve.index.dz import Dz
from flowsieve.index.dzset import DzSet

DEPTH = 6


def dzs(longest: int, shortest: int = 0) -> st.SearchStrategy[Dz]:
    return st.integers(shortest, longest).flatmap(
        lambda n: st.builds(Dz, st.integers(0, 2**n - 1), st.just(n))
    )


def near(path: Dz) -> st.SearchStrategy[Dz]:
    """Dz that leave a long path somewhere: they cover, neighbour and touch each other all the way down."""

    def leave(at: int, turn: bool) -> Dz:
        return Dz((path.bits >> (path.length - at)) ^ (turn and at > 0), at)

    return st.builds(leave, st.integers(0, path.length), st.booleans())


short = st.lists(dzs(DEPTH), max_size=12)
long = dzs(112, 112).flatmap(lambda path: st.lists(near(path) | dzs(112), max_size=12))
either = short | long
pairs = st.tuples(short, short) | dzs(112, 112).flatmap(
    lambda p: st.tuples(*[st.lists(near(p), max_size=12)] * 2)
)


def cells(some: Iterable[Dz]) -> set[int]:
    """The cells of the finest level that a set holds, one by one."""
    return {
        leaf
        for dz in some
        for leaf in range(dz.bits << (DEPTH - dz.length), (dz.bits + 1) << (DEPTH - dz.length))
    }


@given(short, short)
def test_operations_on_sets_are_operations_on_their_cells(left: list[Dz], right: list[Dz]) -> None:
    a, b = DzSet(left), DzSet(right)
    assert cells(a) == cells(left)
    assert cells(a | b) == cells(left) | cells(right)
    assert cells(a & b) == cells(left) & cells(right)
    assert cells(a - b) == cells(left) - cells(right)
    assert a.covers_set(b) == (cells(left) >= cells(right))
    assert a.overlaps(b) == bool(cells(left) & cells(right))
    assert (a == b) == (cells(left) == cells(right))


@given(short, dzs(DEPTH))
def test_a_set_covers_a_dz_if_it_has_all_its_cells(some: list[Dz], dz: Dz) -> None:
    assert DzSet(some).covers(dz) == (cells(some) >= cells([dz]))


@given(pairs)
def test_compiled_operations_are_their_plain_twins(pair: tuple[list[Dz], list[Dz]]) -> None:
    left, right = pair
    a, b = DzSet(left), DzSet(right)
    assert set(a) == algebra.canonical(left)
    assert set(a | b) == algebra.union(left, right)
    assert set(a & b) == algebra.intersection(left, right)
    assert set(a - b) == algebra.difference(left, right)
    assert a.covers_set(b) == all(any(x.covers(y) for x in a) for y in b)
    assert a.overlaps(b) == any(x.overlaps(y) for x in a for y in b)


@given(pairs)
def test_every_result_is_canonical_and_sorted(pair: tuple[list[Dz], list[Dz]]) -> None:
    a, b = DzSet(pair[0]), DzSet(pair[1])
    for result in (a, a | b, a & b, a - b):
        listed = list(result)
        assert listed == sorted(listed, key=str)
        assert DzSet(listed) == result
        assert set(listed) == algebra.canonical(listed)


@given(pairs)
def test_a_set_is_what_two_sets_share_and_what_they_do_not(pair: tuple[list[Dz], list[Dz]]) -> None:
    a, b = DzSet(pair[0]), DzSet(pair[1])
    assert (a & b) | (a - b) == a
    assert (a - b) | b == a | b
    assert not (a - b).overlaps(b)
    assert (a | b).covers_set(a) and a.covers_set(a & b)


@given(either)
def test_the_order_of_the_dz_does_not_matter(some: list[Dz]) -> None:
    assert DzSet(reversed(some)) == DzSet(some) == DzSet(some + some)


@given(st.lists(dzs(DEPTH), min_size=1, max_size=12), st.lists(st.integers(0, 2**DEPTH - 1), max_size=20))
def test_looking_up_many_dz_is_looking_up_each(some: list[Dz], leaves: list[int]) -> None:
    hi = np.array([leaf << (64 - DEPTH) for leaf in leaves], np.uint64)
    mask = DzSet(some).covers_many(hi, np.zeros(len(leaves), np.uint64), DEPTH)
    assert mask.tolist() == [leaf in cells(some) for leaf in leaves]


@given(dzs(112), dzs(112))
def test_dz_sort_as_texts_and_parse_back(a: Dz, b: Dz) -> None:
    assert Dz.parse(str(a)) == a
    assert (a < b) == (str(a) < str(b))
    assert a.covers(b) == str(b).startswith(str(a))
