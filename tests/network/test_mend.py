"""Trees are mended edge for edge."""

from __future__ import annotations

from itertools import permutations
from random import Random

import pytest

from flowsieve.network.generators import generate, random_connected
from flowsieve.network.mend import edges_of, mended_tree, unmoved
from flowsieve.network.tree import SpanningTree, center_tree


def edges(tree: SpanningTree) -> set[frozenset[str]]:
    return set(map(frozenset, tree.edges))


def test_one_dead_edge_is_exchanged_for_one_live_one() -> None:
    network = generate("fat-tree:4")
    tree = center_tree(network)
    dead = frozenset(tree.edges[0])
    new = mended_tree(tree, network, {dead})
    assert edges(tree) - edges(new) == {dead}
    assert len(edges(new) - edges(tree)) == 1
    assert not new.others


def test_a_link_outside_the_tree_changes_nothing() -> None:
    network = generate("ring:5")
    tree = center_tree(network)
    (spare,) = {frozenset((link.a, link.b)) for link in network.links} - edges(tree)
    assert mended_tree(tree, network, {spare}) == tree


def test_parts_without_a_live_link_between_them_get_trees_of_their_own_until_it_returns() -> None:
    network = generate("line:4")
    tree = SpanningTree.of(network, "s0")
    apart = mended_tree(tree, network, {frozenset(("s1", "s2"))})
    assert apart.others == ("s2",)
    assert set(apart.switches) == set(network.switches)
    assert apart.path("s3", "s2") == ("s3", "s2")
    assert mended_tree(apart, network, ()) == tree


def test_a_tree_stays_as_mended_when_its_old_link_returns() -> None:
    network = generate("ring:5")
    tree = center_tree(network)
    new = mended_tree(tree, network, {frozenset(tree.edges[0])})
    assert mended_tree(new, network, ()) == new


@pytest.mark.parametrize("seed", range(40))
def test_what_is_fenced_may_leave_and_what_is_dead_and_is_not_fenced_stays(seed: int) -> None:
    """Whatever a table may send over, an edge of the tree before, is in the tree after it or fenced."""
    dice = Random(seed)
    network = random_connected(9, 8, seed)
    tree = center_tree(network)
    links = sorted(edges_of(network), key=sorted)
    for _ in range(6):
        down, fenced = (frozenset(dice.sample(links, dice.randint(0, 8))) for _ in range(2))
        new = mended_tree(tree, network, down, fenced)
        assert edges(tree) - edges(new) <= fenced
        assert not (edges(new) - edges(tree)) & down
        assert mended_tree(new, network, down, fenced) == new
        # A fenced link joins only what no other could.
        good = edges_of(network) - down - fenced
        stuck = (edges(tree) & down) - fenced
        for edge in edges(new) & fenced:
            a, b = edge
            assert b not in reached(a, good | stuck)
        tree = new


def reached(start: str, links: frozenset[frozenset[str]] | set[frozenset[str]]) -> set[str]:
    there, waiting = {start}, [start]
    for switch in waiting:
        fresh = {end for edge in links if switch in edge for end in edge} - there
        there |= fresh
        waiting += fresh
    return there


@pytest.mark.parametrize("seed", range(40))
def test_the_neighbours_that_lead_to_the_same_switches_as_before_are_told_apart(seed: int) -> None:
    dice = Random(seed)
    network = random_connected(9, 8, seed)
    tree = center_tree(network)
    links = sorted(edges_of(network), key=sorted)

    def behind(tree: SpanningTree, near: str, far: str) -> set[str]:
        found, left = {far}, [far]
        while left:
            fresh = set(tree.neighbours(left.pop())) - found - {near}
            found |= fresh
            left += fresh
        return found

    for _ in range(6):
        new = mended_tree(tree, network, set(dice.sample(links, dice.randint(0, 8))))
        both = {pair for edge in edges(tree) & edges(new) for pair in permutations(edge)}
        same = {pair for pair in both if behind(tree, *pair) == behind(new, *pair)}
        assert unmoved(tree, new) == same
        tree = new
