"""Spanning trees, the routes on them, and the map from dz to tree."""

from __future__ import annotations

import pickle
from collections import Counter
from itertools import pairwise

import pytest
from networks import mean_distance_ms

from flowsieve.errors import BadPlan, BadTopology
from flowsieve.index.dz import Dz
from flowsieve.network.generators import fat_tree, grid, line, random_connected, ring, star
from flowsieve.network.topology import Link, Topology
from flowsieve.network.tree import SpanningTree, TreeMap, center_tree


def busiest_share(topology: Topology, trees: TreeMap) -> float:
    """The load of the busiest link, as a share of all pairs of hosts, when each part has the same traffic."""
    hosts = list(topology.hosts)
    load: Counter[frozenset[str]] = Counter()
    for _, tree in trees:
        for i, a in enumerate(hosts):
            for b in hosts[:i]:
                path = tree.path(topology.hosts[a], topology.hosts[b])
                load.update(map(frozenset, pairwise(path)))
    return max(load.values()) / (len(trees) * len(hosts) * (len(hosts) - 1) / 2)


def test_a_tree_knows_its_switches_edges_and_depths() -> None:
    tree = SpanningTree("r", {"a": "r", "b": "r", "c": "a"})
    assert tree.switches == ("r", "a", "b", "c")
    assert tree.edges == (("r", "a"), ("r", "b"), ("a", "c"))
    assert [tree.depth(switch) for switch in tree.switches] == [0, 1, 1, 2]
    assert tree.neighbours("r") == ("a", "b")
    assert tree.neighbours("a") == ("r", "c")
    assert tree.children("a") == ("c",)
    assert tree.children("r") == ("a", "b")
    assert "c" in tree
    assert "d" not in tree


def test_a_path_climbs_to_the_common_ancestor_and_down_again() -> None:
    tree = SpanningTree("r", {"a": "r", "b": "r", "c": "a", "d": "a"})
    assert tree.path("c", "b") == ("c", "a", "r", "b")
    assert tree.path("c", "d") == ("c", "a", "d")
    assert tree.path("c", "r") == ("c", "a", "r")
    assert tree.path("c", "c") == ("c",)


def test_trees_are_values() -> None:
    tree = SpanningTree("r", {"a": "r", "b": "r"})
    assert tree == SpanningTree("r", {"b": "r", "a": "r"})
    assert hash(tree) == hash(SpanningTree("r", {"b": "r", "a": "r"}))
    assert tree != SpanningTree("r", {"a": "r", "b": "a"})
    assert pickle.loads(pickle.dumps(tree)) == tree
    with pytest.raises(TypeError):
        tree.parent["a"] = "b"  # type: ignore[index]


@pytest.mark.parametrize(
    ("parent", "message"),
    [
        ({"r": "a", "a": "r"}, "switch 'r' is the root of the tree"),
        ({"a": "b"}, "the parent 'b' of switch 'a' is not on the tree"),
        ({"a": "b", "b": "a", "c": "r"}, "the parents above switch 'a' go in a circle"),
    ],
)
def test_what_is_no_tree_is_refused(parent: dict[str, str], message: str) -> None:
    with pytest.raises(BadTopology) as caught:
        SpanningTree("r", parent)
    assert message in str(caught.value)


def test_a_tree_takes_the_quickest_paths_and_among_those_the_ones_with_fewest_hops() -> None:
    slow = Topology.make([Link("a", "b", 5.0), Link("a", "c", 1.0), Link("c", "b", 1.0)], {})
    assert SpanningTree.of(slow, "a").path("a", "b") == ("a", "c", "b")
    even = Topology.make([Link("a", "c", 0.1), Link("c", "b", 0.2), Link("a", "b", 0.3)], {})
    assert 0.1 + 0.2 > 0.3  # what adding floats would get wrong
    assert SpanningTree.of(even, "b").path("a", "b") == ("a", "b")
    long, short = [("r", "a"), ("a", "b"), ("b", "t")], [Link("r", "c", 0.1), ("c", "t")]
    assert SpanningTree.of(Topology.make([*long, *short], {}), "r").path("r", "t") == ("r", "c", "t")


def test_among_equal_paths_the_first_switch_in_order_becomes_the_parent() -> None:
    diamond = [("r", "a"), ("r", "b"), ("b", "t"), ("a", "t")]
    assert SpanningTree.of(Topology.make(diamond, {}), "r").parent["t"] == "a"
    assert SpanningTree.of(Topology.make(diamond, {}, ["b"]), "r").parent["t"] == "b"


def test_a_tree_spans_the_main_component_and_no_other() -> None:
    topology = Topology.make([("a", "b"), ("b", "c"), ("x", "y")], {"h1": "a", "h2": "x", "h3": "y"})
    assert set(center_tree(topology).switches) == {"a", "b", "c"}
    with pytest.raises(BadTopology, match="switch 'x' is cut off"):
        SpanningTree.of(topology, "x")
    with pytest.raises(BadTopology, match="there is no switch 'z'"):
        SpanningTree.of(topology, "z")


def test_the_center_is_where_the_hosts_are() -> None:
    assert center_tree(star(9)).root == "s0"
    assert center_tree(fat_tree(4)).root == "c0"
    assert center_tree(line(7)).root == "s3"
    crowded = Topology.make([(f"s{i}", f"s{i + 1}") for i in range(6)], {f"h{i}": "s5" for i in range(5)})
    assert center_tree(crowded).root == "s5"


@pytest.mark.parametrize("hosts", [None, 0, 1, 7])
def test_no_root_is_better_than_the_center(hosts: int | None) -> None:
    even = random_connected(30, 20, seed=4, hosts=hosts)
    uneven = [Link(link.a, link.b, 1 + i * 7 % 10) for i, link in enumerate(even.links)]
    topology = Topology.make(uneven, even.hosts)
    best = mean_distance_ms(topology, center_tree(topology))
    means = [mean_distance_ms(topology, SpanningTree.of(topology, root)) for root in topology.switches]
    assert best == pytest.approx(min(means))
    assert max(means) > 1.2 * best


def test_the_center_of_a_large_network_is_nearly_the_best() -> None:
    topology = random_connected(400, 200, seed=1)
    best = mean_distance_ms(topology, center_tree(topology))
    sample = topology.switches[::9]
    assert best <= 1.02 * min(mean_distance_ms(topology, SpanningTree.of(topology, root)) for root in sample)


def test_one_switch_is_its_own_tree() -> None:
    topology = line(1, hosts=3)
    tree = center_tree(topology)
    assert (tree.root, tree.edges, mean_distance_ms(topology, tree)) == ("s0", (), 0.0)
    assert len(TreeMap.spread(topology, 4)) == 4


def test_a_single_tree_serves_every_dz() -> None:
    tree = center_tree(ring(5))
    trees = TreeMap.single(tree)
    assert trees.tree_of(Dz.parse("")) is tree
    assert trees.tree_of(Dz.parse("0110")) is tree
    assert list(trees.split(Dz.parse("01"))) == [(Dz.parse("01"), tree)]


def test_a_dz_belongs_to_the_tree_of_the_part_that_covers_it() -> None:
    topology = ring(4)
    a, b, c = (SpanningTree.of(topology, root) for root in ("s0", "s1", "s2"))
    trees = TreeMap(((Dz.parse("1"), a), (Dz.parse("00"), b), (Dz.parse("01"), c)))
    assert [str(dz) for dz, _ in trees] == ["00", "01", "1"]
    assert [trees.tree_of(Dz.parse(text)) for text in ("111", "1", "0010", "01")] == [a, a, b, c]
    assert list(trees.split(Dz.parse("0"))) == [(Dz.parse("00"), b), (Dz.parse("01"), c)]
    assert [tree for _, tree in trees.split(Dz.parse(""))] == [b, c, a]
    assert trees.trees == (b, c, a)
    with pytest.raises(BadPlan, match="dz '0' is served by several trees"):
        trees.tree_of(Dz.parse("0"))


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([], "there are none"),
        (["0"], "a gap at its end"),
        (["1"], "'1' leaves a gap before it"),
        (["0", "01", "1"], "'01' overlaps the one before it"),
        (["0", "0", "1"], "'0' overlaps the one before it"),
        (["0", "11"], "'11' leaves a gap before it"),
        (["", "1"], "'1' overlaps the one before it"),
    ],
)
def test_parts_that_do_not_partition_the_space_are_refused(texts: list[str], message: str) -> None:
    tree = center_tree(ring(3))
    with pytest.raises(BadPlan) as caught:
        TreeMap(tuple((Dz.parse(text), tree) for text in texts))
    assert message in str(caught.value)


def test_trees_of_a_map_span_the_same_switches() -> None:
    small, large = center_tree(line(2)), center_tree(line(3))
    with pytest.raises(BadTopology, match="the tree of dz '1' spans other switches"):
        TreeMap(((Dz.parse("0"), small), (Dz.parse("1"), large)))


def test_spreading_over_one_tree_is_the_center_tree() -> None:
    topology = grid(4, 4)
    assert TreeMap.spread(topology, 1) == TreeMap.single(center_tree(topology))


@pytest.mark.parametrize("topology", [fat_tree(4), ring(12), grid(4, 4), random_connected(20, 20, seed=2)])
def test_spreading_shares_the_load_and_keeps_paths_short(topology: Topology) -> None:
    one, four = TreeMap.spread(topology, 1), TreeMap.spread(topology, 4)
    assert [str(dz) for dz, _ in four] == ["00", "01", "10", "11"]
    assert busiest_share(topology, four) < 0.85 * busiest_share(topology, one)
    shortest = mean_distance_ms(topology, center_tree(topology))
    assert all(mean_distance_ms(topology, tree) <= 1.25 * shortest + 1e-9 for _, tree in four)


def test_a_fat_tree_is_spread_over_all_its_cores() -> None:
    assert {tree.root for _, tree in TreeMap.spread(fat_tree(4), 4)} == {"c0", "c1", "c2", "c3"}


@pytest.mark.parametrize("n", [0, 3, -4, 2048])
def test_the_number_of_trees_is_a_power_of_two(n: int) -> None:
    with pytest.raises(BadTopology, match=r"right are 1, 2, 4, 8, … up to 1024"):
        TreeMap.spread(ring(4), n)
