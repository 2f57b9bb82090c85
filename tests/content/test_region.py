"""Unions of products, checked against the sets of points that they are."""

from __future__ import annotations

import random
from itertools import product

import pytest

from flowsieve.content.box import Interval
from flowsieve.content.region import LARGEST, Algebra, Product, Region, TooComplex
from flowsieve.content.schema import Schema

SCHEMA = Schema.parse({name: {"type": "int", "min": 0, "max": 4} for name in "abc"})
POINTS = list(product(range(5), repeat=3))


def holds(one: Product, point: tuple[int, ...]) -> bool:
    return all(sum(cut <= point[i] for cut in cuts) % 2 for i, cuts in one.items())


def points(region: Region) -> set[tuple[int, ...]]:
    return {point for point in POINTS if any(holds(one, point) for one in region)}


def some_product(chance: random.Random) -> Product:
    places = chance.sample(range(3), chance.randint(1, 3))
    return {i: tuple(sorted(chance.sample(range(5), chance.randint(1, 3)))) for i in places}


def some_region(chance: random.Random) -> Region:
    return [some_product(chance) for _ in range(chance.randint(1, 4))]


def test_regions_join_meet_and_tidy_as_sets_do() -> None:
    chance = random.Random(1)
    for _ in range(300):
        one, two, three = (some_region(chance) for _ in range(3))
        algebra = Algebra(SCHEMA)
        assert points(algebra.any_of([one, two])) == points(one) | points(two)
        assert points(algebra.all_of([one, two, three])) == points(one) & points(two) & points(three)
        assert points(algebra.tidy(one)) == points(one)


def test_a_difference_of_products_is_that_of_sets_and_its_pieces_share_nothing() -> None:
    chance = random.Random(2)
    for _ in range(500):
        one, two = some_product(chance), some_product(chance)
        pieces = Algebra(SCHEMA).minus(one, two)
        assert points(pieces) == points([one]) - points([two])
        assert sum(len(points([piece])) for piece in pieces) == len(points(pieces))


def test_products_that_differ_in_one_attribute_become_one() -> None:
    algebra = Algebra(SCHEMA)
    assert algebra.tidy([{0: (1, 2), 1: (3,)}, {0: (2, 4), 1: (3,)}]) == [{0: (1, 4), 1: (3,)}]
    assert algebra.tidy([{0: (0, 2)}, {0: (2,)}]) == [{}]
    assert algebra.tidy([{0: (0, 2), 1: (1,)}, {0: (2,), 1: (1,)}, {1: (0, 1)}]) == [{}]


def test_a_product_that_another_covers_is_left_out() -> None:
    assert Algebra(SCHEMA).tidy([{0: (1, 2), 1: (1, 2)}, {0: (0, 3)}]) == [{0: (0, 3)}]


def test_a_box_becomes_a_product_and_a_box_again() -> None:
    algebra = Algebra(SCHEMA)
    box = (Interval(0, 4), Interval(1, 1), Interval(3, 4))
    assert algebra.product(box) == {1: (1, 2), 2: (3,)}
    assert algebra.boxes([algebra.product(box)]) == (box,)


def test_too_many_boxes_are_too_complex_before_they_are_made() -> None:
    wide = Schema.parse({name: {"type": "int", "min": 0, "max": 10_000} for name in "ab"})
    many = tuple(range(1, 131))  # 65 ranges
    assert len(Algebra(wide).boxes([{0: many[:128], 1: many[:128]}])) == LARGEST
    with pytest.raises(TooComplex):
        Algebra(wide).boxes([{0: many, 1: many[:128]}])


def test_effort_is_bounded() -> None:
    with pytest.raises(TooComplex):
        Algebra(SCHEMA, effort=10).all_of([[{0: (1, 2)}], [{0: (1, 3)}], [{0: tuple(range(9))}]])
