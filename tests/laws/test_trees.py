"""What holds for the spanning trees of all networks."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from networks import mean_distance_ms

from flowsieve.index.dz import Dz
from flowsieve.network.topology import Link, Topology
from flowsieve.network.tree import SpanningTree, TreeMap, center_tree


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
    """Any links between up to twelve switches, of coarse latencies so that equal paths are common."""
    size = draw(st.integers(1, 12))
    names = [f"s{i}" for i in range(size)]
    ends = st.tuples(st.sampled_from(names), st.sampled_from(names)).filter(lambda pair: pair[0] != pair[1])
    links = draw(st.lists(ends, max_size=3 * size)) if size > 1 else []
    latencies = draw(
        st.lists(st.sampled_from([0.0, 0.1, 0.2, 0.3]), min_size=len(links), max_size=len(links))
    )
    homes = draw(st.lists(st.sampled_from(names), max_size=8))
    made = [Link(a, b, ms) for (a, b), ms in zip(links, latencies, strict=True)]
    return Topology.make(made, {f"h{i}": home for i, home in enumerate(homes)}, names)


@st.composite
def rooted(draw: st.DrawFn) -> tuple[Topology, SpanningTree]:
    topology = draw(topologies())
    return topology, SpanningTree.of(topology, draw(st.sampled_from(sorted(topology.main))))


def shortest(topology: Topology, start: str) -> dict[str, tuple[int, int]]:
    """How far every switch is in µs, then in hops, by relaxing all links as often as there are switches."""
    reach = {start: (0, 0)}
    for _ in topology.switches:
        for link in topology.links:
            for a, b in ((link.a, link.b), (link.b, link.a)):
                if a in reach:
                    us, hops = reach[a]
                    way = (us + round(1000 * link.latency_ms), hops + 1)
                    reach[b] = min(reach.get(b, way), way)
    return reach


def latency_ms(topology: Topology, path: tuple[str, ...]) -> float:
    return sum(topology.latency_ms(a, b) for a, b in pairwise(path))


@given(topologies())
def test_components_are_the_classes_of_switches_that_reach_each_other(topology: Topology) -> None:
    for part in topology.components():
        assert all(set(shortest(topology, switch)) == part for switch in part)
    assert sorted(switch for part in topology.components() for switch in part) == sorted(topology.switches)
    assert len(topology.main) == max(map(len, topology.components()))


@given(rooted())
def test_a_tree_spans_the_main_component_with_one_edge_less_than_switches(
    case: tuple[Topology, SpanningTree],
) -> None:
    topology, tree = case
    assert set(tree.switches) == topology.main
    assert len(tree.switches) == len(topology.main)
    assert len(set(map(frozenset, tree.edges))) == len(topology.main) - 1
    assert all(child in topology.linked(parent) for parent, child in tree.edges)


@given(rooted())
def test_a_path_is_simple_symmetric_and_made_of_tree_edges(case: tuple[Topology, SpanningTree]) -> None:
    _, tree = case
    edges = set(map(frozenset, tree.edges))
    for a, b in combinations(tree.switches, 2):
        path = tree.path(a, b)
        assert (path[0], path[-1]) == (a, b)
        assert len(set(path)) == len(path)
        assert all(frozenset(step) in edges for step in pairwise(path))
        assert tree.path(b, a) == path[::-1]


@given(rooted())
def test_paths_from_the_root_are_quickest_and_of_those_have_fewest_hops(
    case: tuple[Topology, SpanningTree],
) -> None:
    topology, tree = case
    for switch, (us, hops) in shortest(topology, tree.root).items():
        path = tree.path(tree.root, switch)
        assert round(1000 * latency_ms(topology, path)) == us
        assert tree.depth(switch) == len(path) - 1 == hops


@given(rooted())
def test_the_mean_distance_by_edges_is_the_mean_over_all_pairs(case: tuple[Topology, SpanningTree]) -> None:
    topology, tree = case
    homes = [home for home in topology.hosts.values() if home in tree]
    if len(homes) < 2:
        homes = list(tree.switches)
    paths = [latency_ms(topology, tree.path(a, b)) for a, b in combinations(homes, 2)]
    mean = sum(paths) / len(paths) if paths else 0.0
    assert mean_distance_ms(topology, tree) == pytest.approx(mean)


@given(rooted())
def test_no_tree_is_shorter_than_that_of_the_center(case: tuple[Topology, SpanningTree]) -> None:
    topology, tree = case
    center = mean_distance_ms(topology, center_tree(topology))
    assert center <= mean_distance_ms(topology, tree) + 1e-9


@given(topologies(), st.integers(0, 4), st.text("01", min_size=4, max_size=12))
def test_a_spread_map_gives_every_long_dz_one_tree_of_the_main_component(
    topology: Topology, length: int, text: str
) -> None:
    trees = TreeMap.spread(topology, 1 << length)
    dz = Dz.parse(text)
    covering = [tree for part, tree in trees if part.covers(dz)]
    assert covering == [trees.tree_of(dz)]
    assert all(set(tree.switches) == topology.main for tree in trees.trees)
    best = mean_distance_ms(topology, center_tree(topology))
    assert all(mean_distance_ms(topology, tree) <= 1.25 * best + 1e-9 for tree in trees.trees)
