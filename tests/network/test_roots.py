"""Roots are chosen by exact sums over the links of a tree."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest

from flowsieve.network.generators import random_connected, ring
from flowsieve.network.roots import (
    CANDIDATES,
    STRETCH,
    Mesh,
    length_ns,
    pair_loads,
    rank_roots,
    shortest_paths,
    spread_roots,
)
from flowsieve.network.topology import Link, Topology
from flowsieve.network.tree import SpanningTree


def test_a_mesh_is_the_main_component_in_whole_nanoseconds() -> None:
    topology = Topology.make(
        [Link("x", "y"), Link("a", "b", 1.5), Link("b", "c", 1.001)],
        {"h1": "a", "h2": "a", "h3": "c", "h4": "x"},
    )
    mesh = Mesh.of(topology)
    assert mesh.names == ("a", "b", "c")
    assert mesh.latency_ns == (1_500_000, 1_001_000)
    assert mesh.weight == (2, 0, 1)
    assert mesh.near == (((1, 1_500_000, 0),), ((0, 1_500_000, 0), (2, 1_001_000, 1)), ((1, 1_001_000, 1),))


@pytest.mark.parametrize("hosts", [0, 1])
def test_without_pairs_of_hosts_every_switch_counts(hosts: int) -> None:
    assert Mesh.of(ring(5, hosts=hosts)).weight == (1,) * 5


def test_loads_count_the_pairs_whose_path_takes_a_link() -> None:
    topology = random_connected(12, 8, seed=3, hosts=9)
    mesh = Mesh.of(topology)
    rooted = shortest_paths(mesh, 4)
    tree = SpanningTree.of(topology, mesh.names[4])
    number = {frozenset((link.a, link.b)): i for i, link in enumerate(topology.links)}
    counted = [0] * len(number)
    for a, b in combinations(topology.hosts.values(), 2):
        for step in pairwise(tree.path(a, b)):
            counted[number[frozenset(step)]] += 1
    loads = pair_loads(mesh, rooted)
    assert loads.tolist() == counted
    assert length_ns(mesh, loads) == 50_000 * sum(counted)


def test_each_further_tree_leaves_the_busiest_link_as_free_as_any_could() -> None:
    mesh = Mesh.of(random_connected(16, 10, seed=8))
    ranked = rank_roots(mesh)
    short = [candidate for candidate in ranked if candidate.length_ns <= STRETCH * ranked[0].length_ns]
    loads = {candidate.tree.root: candidate.loads for candidate in short}
    chosen = [tree.root for tree in spread_roots(mesh, [1.0] * 8)]
    assert chosen[0] == ranked[0].tree.root
    assert len(set(chosen)) > 3
    total = loads[chosen[0]]
    for root in chosen[1:]:
        assert max(total + loads[root]) == min(max(total + other) for other in loads.values())
        total = total + loads[root]


def test_a_large_network_is_sampled_the_same_way_each_time() -> None:
    mesh = Mesh.of(random_connected(350, 100, seed=6))
    ranked = rank_roots(mesh)
    assert CANDIDATES // 2 < len(ranked) <= CANDIDATES
    assert [candidate.rank for candidate in rank_roots(mesh)] == sorted(
        candidate.rank for candidate in ranked
    )
