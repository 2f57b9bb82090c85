"""A tree for each set of hosts: chosen by where its hosts are, so that links share the load."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from networks import topologies

from flowsieve.errors import BadTopology
from flowsieve.index.dz import Dz
from flowsieve.network.generators import fat_tree, line, random_connected, ring
from flowsieve.network.locality import sets_by_locality
from flowsieve.network.roots import STRETCH, Mesh, receiver_loads, shortest_paths
from flowsieve.network.set_trees import SetTrees
from flowsieve.network.topology import Topology
from flowsieve.network.tree import SpanningTree, TreeMap, center_tree

Sets = tuple[tuple[str, ...], ...]


def loads_of(topology: Topology, trees: SetTrees, sets: Sets) -> Counter[frozenset[str]]:
    """What each link carries when every host sends to every other, as many pairs as go over it."""
    home, load = topology.hosts, Counter[frozenset[str]]()
    for number, row in enumerate(sets):
        tree = trees.of_set(number)
        for host in row:
            for sender in home:
                load.update(map(frozenset, pairwise(tree.path(home[sender], home[host]))))
    return load


def distance(topology: Topology, tree: SpanningTree, row: tuple[str, ...]) -> float:
    mine, home = topology.links, topology.hosts
    latency = {frozenset((link.a, link.b)): link.latency_ms for link in mine}
    paths = [tree.path(home[sender], home[host]) for host in row for sender in home]
    return sum(latency[frozenset(step)] for path in paths for step in pairwise(path))


def test_more_sets_than_trees_share_them_in_turn() -> None:
    trees = SetTrees((SpanningTree("a", {"b": "a"}), SpanningTree("b", {"a": "b"})))
    assert [trees.of_set(number).root for number in range(5)] == ["a", "b", "a", "b", "a"]
    assert [[*trees.sets_of(at, 5)] for at in range(2)] == [[0, 2, 4], [1, 3]]
    assert "a" in trees and "c" not in trees
    with pytest.raises(BadTopology, match="no tree"):
        SetTrees(())


def test_the_first_parts_of_a_map_have_the_trees_of_sets() -> None:
    trees = TreeMap.spread(ring(5), 4)
    assert SetTrees.first_of(trees, 2).trees == tuple(tree for _, tree in trees.parts[:2])
    assert SetTrees.first_of(trees, 9) == SetTrees.first_of(trees, 4)
    assert SetTrees.first_of(TreeMap.single(center_tree(ring(5))), 3).of_set(2) == center_tree(ring(5))
    assert trees.parts[0][0] == Dz.parse("00")


def test_trees_of_sets_share_the_load_of_a_fat_tree() -> None:
    topology = fat_tree(4, 64)
    tree = center_tree(topology)
    sets = sets_by_locality(topology, tree, 112, least_sets=4)
    assert [len(row) for row in sets] == [16] * 4
    spread = SetTrees.over(topology, sets, 4)
    assert len(set(spread.trees)) == 4
    one, several = (max(loads_of(topology, trees, sets).values()) for trees in (SetTrees((tree,)), spread))
    assert several <= 0.7 * one


def test_on_a_tree_there_is_nothing_to_choose() -> None:
    topology = line(5)
    sets = tuple((host,) for host in topology.hosts)
    trees = SetTrees.over(topology, sets, len(sets))
    edges = {frozenset(map(frozenset, tree.edges)) for tree in trees.trees}
    assert len(edges) == 1


def test_sets_that_nobody_is_in_yet_have_trees_as_well() -> None:
    nobody = Topology.make([link[:2] for link in [("a", "b"), ("b", "c"), ("c", "a")]], {})
    assert len(SetTrees.over(nobody, (), 3)) == 3
    assert len(SetTrees.over(random_connected(70, extra=40, seed=1, hosts=9), ((),), 70)) == 70


@given(topologies(switches=6, hosts=6), st.integers(1, 5))
def test_every_set_has_a_tree_of_all_switches_with_short_ways_to_it(topology: Topology, n: int) -> None:
    sets = sets_by_locality(topology, center_tree(topology), 112, least_sets=n)
    trees = SetTrees.over(topology, sets, n)
    assert len(trees) == n
    for number, row in enumerate(sets):
        tree = trees.of_set(number)
        assert set(tree.switches) == set(topology.main)
        reached = tuple(host for host in row if topology.hosts[host] in tree)
        here = Topology.make(
            topology.links,
            {host: at for host, at in topology.hosts.items() if at in topology.main},
            topology.switches,
        )
        best = min(distance(here, SpanningTree.of(here, root), reached) for root in topology.main)
        assert distance(here, tree, reached) <= STRETCH * best + 1e-6


@given(topologies(switches=6, hosts=6))
def test_loads_are_the_ways_from_all_hosts_to_those_of_a_set(topology: Topology) -> None:
    mesh = Mesh.of(topology)
    home = {host: at for host, at in topology.hosts.items() if at in topology.main}
    if len(home) < 2:
        return
    some = tuple(sorted(home))[::2]
    receivers = np.array([[sum(home[host] == name for host in some) for name in mesh.names]])
    here = Topology.make(topology.links, home, topology.switches)
    links = [frozenset((link.a, link.b)) for link in topology.links if link.a in topology.main]
    for root, name in enumerate(mesh.names):
        right = loads_of(here, SetTrees((SpanningTree.of(here, name),)), (some,))
        found = receiver_loads(mesh, shortest_paths(mesh, root), receivers)[0]
        assert dict(zip(links, found.tolist(), strict=True)) == {link: right[link] for link in links}
