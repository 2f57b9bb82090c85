"""Partitions go to configurators by past load; of those that are taken over, nothing else moves."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowsieve.control.partitions.assignment import at_random, by_load, taken_over
from flowsieve.errors import BadInput
from flowsieve.index.dz import Dz

NAMES = ["c1", "c2", "c3", "c4", "c5"]
PARTITIONS = [Dz(bits, 5) for bits in range(32)]
weights = st.lists(st.just(0) | st.integers(1, 50), min_size=1, max_size=32)
crowds = st.integers(1, 5).map(lambda n: NAMES[:n])


def loads_of(some: list[int]) -> dict[Dz, float]:
    return dict(zip(PARTITIONS, map(float, some), strict=False))


def sums(owners: dict[Dz, str], loads: dict[Dz, float], names: list[str]) -> list[float]:
    return [sum(loads[dz] for dz, owner in owners.items() if owner == name) for name in names]


def test_the_heaviest_goes_first_and_each_to_the_least_loaded() -> None:
    owners = by_load(loads_of([7, 6, 5, 4, 3]), ["c1", "c2"])
    assert [owners[dz] for dz in PARTITIONS[:5]] == ["c1", "c2", "c2", "c1", "c1"]


def test_of_equals_the_first_in_the_given_order_comes_first() -> None:
    assert by_load({PARTITIONS[0]: 1.0}, ["c2", "c1"]) == {PARTITIONS[0]: "c2"}
    two = by_load({PARTITIONS[1]: 1.0, PARTITIONS[0]: 1.0}, ["c1", "c2"])
    assert two == {PARTITIONS[0]: "c1", PARTITIONS[1]: "c2"}


@given(weights, crowds)
def test_nobody_has_more_than_the_rest_by_more_than_one_partition(some: list[int], names: list[str]) -> None:
    loads = loads_of(some)
    owners = by_load(loads, names)
    assert owners.keys() == loads.keys()
    for name in names:
        own = [loads[dz] for dz, owner in owners.items() if owner == name and loads[dz]]
        # Without the lightest that it got, it was the least loaded.
        assert not own or sum(own) - min(own) <= min(sums(owners, loads, names)) + 1e-9


@given(weights, crowds)
def test_what_has_no_load_is_spread_evenly(some: list[int], names: list[str]) -> None:
    loads = loads_of(some)
    idle = Counter(dict.fromkeys(names, 0))
    idle.update(owner for dz, owner in by_load(loads, names).items() if not loads[dz])
    assert max(idle.values()) - min(idle.values()) <= 1


@given(weights, crowds, st.randoms(use_true_random=False))
def test_an_assignment_does_not_depend_on_the_order_of_partitions(
    some: list[int], names: list[str], rng: random.Random
) -> None:
    loads = loads_of(some)
    shuffled = dict(rng.sample(sorted(loads.items()), len(loads)))
    assert by_load(shuffled, names) == by_load(loads, names)


def test_at_random_all_have_equally_many_and_the_dice_decide_which() -> None:
    owners = at_random(PARTITIONS, NAMES[:4], random.Random(1))
    assert owners.keys() == set(PARTITIONS)
    assert set(Counter(owners.values()).values()) == {8}
    assert owners == at_random(PARTITIONS[::-1], NAMES[:4], random.Random(1))
    assert owners != at_random(PARTITIONS, NAMES[:4], random.Random(2))


@given(weights, crowds, st.sets(st.sampled_from(NAMES)), st.integers(0, 100))
def test_only_what_lost_its_owner_moves(some: list[int], left: list[str], gone: set[str], seed: int) -> None:
    loads = loads_of(some)
    before = at_random(list(loads), [*left, *sorted(gone - set(left))], random.Random(seed))
    after = taken_over(before, loads, left)
    assert after.keys() == before.keys()
    assert set(after.values()) <= set(left)
    assert all(after[dz] == owner for dz, owner in before.items() if owner in left)


@given(weights, crowds)
def test_taking_over_everything_is_an_assignment_by_load(some: list[int], names: list[str]) -> None:
    loads = loads_of(some)
    assert taken_over(dict.fromkeys(loads, "gone"), loads, names) == by_load(loads, names)


def test_what_is_taken_over_goes_to_whoever_has_least_of_all_that_he_owns() -> None:
    a, b, c, d, e = PARTITIONS[:5]
    owners = {a: "c1", b: "c2", c: "c3", d: "c3", e: "c3"}
    after = taken_over(owners, {a: 10, b: 4, c: 5, d: 3}, ["c1", "c2"])
    assert after == {a: "c1", b: "c2", c: "c2", d: "c2", e: "c1"}


def test_partitions_need_somebody_to_own_them_and_loads_that_are_numbers() -> None:
    with pytest.raises(BadInput, match="no configurator"):
        by_load({PARTITIONS[0]: 1.0}, [])
    with pytest.raises(BadInput, match="no configurator"):
        at_random(PARTITIONS, [], random.Random(1))
    with pytest.raises(BadInput, match="'00000' has a load of nan"):
        by_load({PARTITIONS[0]: float("nan")}, ["c1"])
    with pytest.raises(BadInput, match="a load of -1"):
        taken_over({PARTITIONS[0]: "c1"}, {PARTITIONS[0]: -1}, ["c2"])
