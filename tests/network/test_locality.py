"""Hosts in the order of a tree."""

from __future__ import annotations

from itertools import pairwise

from flowsieve.network.generators import fat_tree, random_connected
from flowsieve.network.locality import hosts_by_locality, sets_by_locality
from flowsieve.network.topology import Topology
from flowsieve.network.tree import SpanningTree, center_tree, endpoints_behind


def test_what_is_behind_a_port_is_one_stretch_or_all_but_one() -> None:
    for topology in (fat_tree(4, 40), random_connected(12, extra=5, seed=3, hosts=30)):
        tree = center_tree(topology)
        hosts = hosts_by_locality(topology, tree)
        assert sorted(hosts) == sorted(topology.hosts)
        for switch in tree.switches:
            for port in range(1, len(topology.neighbours(switch)) + 1):
                behind = endpoints_behind(topology, tree, switch, port)
                edges = sum((a in behind) != (b in behind) for a, b in pairwise(hosts))
                assert edges <= 2


def test_the_busiest_branch_comes_first_and_sets_are_full_but_for_the_last() -> None:
    hosts = {"a": "s1", "b": "s2", "c": "s3", "d": "s3", "e": "s4", "cut off": "s5"}
    topology = Topology.make([("s1", "s2"), ("s1", "s3"), ("s1", "s4"), ("s5", "s6")], hosts)
    tree = SpanningTree("s1", {"s2": "s1", "s3": "s1", "s4": "s1"})
    assert hosts_by_locality(topology, tree) == ("a", "c", "d", "e", "b")
    assert sets_by_locality(topology, tree, 2) == (("a", "c"), ("d", "e"), ("b",))
