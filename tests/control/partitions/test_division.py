"""A request cut along partitions: nothing is lost, nothing is in two of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowsieve.control.partitions.division import MOST_PARTITIONS, Division, partition_trees
from flowsieve.errors import BadPlan
from flowsieve.index.dz import MAX_LENGTH, WHOLE_SPACE, Dz
from flowsieve.index.dzset import EMPTY, DzSet, union
from flowsieve.network.generators import fat_tree


@st.composite
def divisions(draw: st.DrawFn) -> Division:
    """Any number of partitions, of any sizes, down to the last bit."""
    parts = [WHOLE_SPACE]
    last = st.just(-1)  # again and again the one that was made last, so that some are small
    for at in draw(st.lists(st.integers(0, 10**6), max_size=12) | st.lists(last, max_size=MAX_LENGTH)):
        dz = parts.pop(at % len(parts))
        parts += dz.children if dz.length < MAX_LENGTH else [dz]
    return Division(tuple(parts))


lengths = st.integers(0, 8) | st.integers(60, 68) | st.integers(105, MAX_LENGTH)
cells = lengths.flatmap(lambda length: st.builds(Dz, st.integers(0, 2**length - 1), st.just(length)))
sets = st.lists(cells, max_size=6).map(lambda some: DzSet.of(*some))


@given(divisions(), sets)
def test_what_a_set_is_cut_into_is_what_of_it_lies_in_each_partition(division: Division, dz: DzSet) -> None:
    found = dict(division.cut(dz))
    assert len(found) == len(division.cut(dz))
    assert union([EMPTY, *found.values()]) == dz
    for partition in division.partitions:
        assert found.get(partition, EMPTY) == dz & DzSet.of(partition)


@given(divisions(), st.lists(st.integers(0, 2**MAX_LENGTH - 1), min_size=1, max_size=3))
def test_every_event_lies_in_the_partition_that_covers_it(division: Division, events: list[int]) -> None:
    for bits in events:
        (mine,) = [dz for dz in division.partitions if dz.covers(Dz(bits, MAX_LENGTH))]
        assert division.of_dz(Dz(bits, MAX_LENGTH)) == mine


@given(st.integers(1, 70))
def test_an_even_division_has_partitions_of_two_sizes_at_most(n: int) -> None:
    division = Division.even(n)
    assert len(division) == n
    assert division.depth - min(dz.length for dz in division.partitions) <= 1


@pytest.mark.parametrize("n", [0, -1, MOST_PARTITIONS + 1])
def test_the_space_is_divided_into_one_partition_or_some_more(n: int) -> None:
    with pytest.raises(BadPlan, match=f"into {n} partitions; right is 1 to {MOST_PARTITIONS}"):
        Division.even(n)


@pytest.mark.parametrize("texts", [["0"], ["0", "01", "1"], ["0", "11"], []])
def test_partitions_leave_no_gap_and_do_not_overlap(texts: list[str]) -> None:
    with pytest.raises(BadPlan):
        Division.of(texts)


def test_a_dz_that_is_wider_than_its_partition_lies_in_several() -> None:
    with pytest.raises(BadPlan, match="'0' lies in several partitions"):
        Division.of(["00", "01", "1"]).of_dz(Dz.parse("0"))


@pytest.mark.parametrize("n", [1, 3, 16])
def test_each_partition_has_a_tree_over_all_switches(n: int) -> None:
    network = fat_tree(4)
    trees = partition_trees(network, n)
    assert [dz for dz, _ in trees] == list(Division.even(n).partitions)
    assert all(set(tree.switches) == set(network.switches) for _, tree in trees)
