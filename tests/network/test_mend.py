"""Trees are mended edge for edge."""

from __future__ import annotations

from flowsieve.network.generators import generate
from flowsieve.network.mend import mended_tree
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
