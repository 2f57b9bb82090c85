"""Counts by group of events agree with following each event and each copy alone."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest

from flowsieve.demo.compare import Traffic, best_broker, broadcast, brokered, filtered
from flowsieve.network.generators import line, random_connected
from flowsieve.network.topology import Topology
from flowsieve.network.tree import SpanningTree


def random_traffic(seed: int, events: int = 40) -> Traffic:
    dice = np.random.default_rng(seed)
    topology = random_connected(6, extra=3, seed=seed, hosts=7)
    trees = [SpanningTree.of(topology, root) for root in topology.switches[:2]]
    source = dice.integers(0, 7, events)
    wanted = dice.random((7, events)) < 0.3
    wanted[source, np.arange(events)] = False
    return Traffic(
        topology, trees, source, dice.integers(0, 2, events), dice.integers(60, 200, events), wanted
    )


def flood(topology: Topology, tree: SpanningTree, source: str) -> list[tuple[str, str]]:
    """The links that a packet takes to reach all hosts, found by walking the tree and pruning dead ends."""

    def beyond(came_from: str, here: str) -> list[tuple[str, str]]:
        taken = [(here, host) for host in topology.attached_at(here) if host != source]
        for near in tree.neighbours(here):
            if near != came_from and (further := beyond(here, near)):
                taken += [(here, near), *further]
        return taken

    return [(source, topology.hosts[source]), *beyond(source, topology.hosts[source])]


@pytest.mark.parametrize("seed", range(6))
def test_broadcast_is_the_sum_over_events_of_a_flood(seed: int) -> None:
    traffic = random_traffic(seed)
    hosts = list(traffic.topology.hosts)
    expected: Counter[tuple[str, str]] = Counter()
    for source, tree in zip(traffic.source, traffic.tree, strict=True):
        expected.update(flood(traffic.topology, traffic.trees[tree], hosts[source]))
    carried = broadcast(traffic)
    assert carried.packets == expected
    assert carried.into_hosts == len(traffic.source) * (len(hosts) - 1)
    assert carried.bytes_into_hosts == traffic.size.sum() * (len(hosts) - 1)


@pytest.mark.parametrize("seed", range(6))
def test_a_broker_costs_a_shortest_path_in_and_one_out_for_each_copy(seed: int) -> None:
    traffic = random_traffic(seed)
    topology, hosts = traffic.topology, list(traffic.topology.hosts)
    graph = nx.Graph([(link.a, link.b) for link in topology.links])
    graph.add_nodes_from(topology.switches)
    away = dict(nx.all_pairs_shortest_path_length(graph))
    costs = {}
    for broker in hosts:
        links = copies = size = hops = 0
        for event, number in enumerate(traffic.source):
            into = away[topology.hosts[hosts[number]]][topology.hosts[broker]]
            if hosts[number] != broker:
                links, copies, size = links + into, copies + 1, size + traffic.size[event]
            for reader in np.flatnonzero(traffic.wanted[:, event]):
                onward = away[topology.hosts[broker]][topology.hosts[hosts[reader]]]
                hops += into + onward
                if hosts[reader] != broker:
                    links, copies, size = links + onward, copies + 1, size + traffic.size[event]
        carried = brokered(traffic, broker)
        assert (carried.between_switches, carried.into_hosts, carried.bytes_into_hosts) == (
            links,
            copies,
            size,
        )
        assert carried.hops == pytest.approx(hops / traffic.wanted.sum())
        costs[broker] = (links, copies)
    assert costs[best_broker(traffic)] == min(costs.values())


def test_what_goes_into_a_node_on_a_broker_s_way_comes_out_of_it() -> None:
    traffic = random_traffic(3)
    carried = brokered(traffic, "h0")
    for switch in traffic.topology.switches:
        into = sum(n for (_, b), n in carried.packets.items() if b == switch)
        assert into == sum(n for (a, _), n in carried.packets.items() if a == switch)


def test_filtering_switches_are_counted_with_the_links_of_hosts() -> None:
    topology = line(2, hosts=2)
    tree = SpanningTree.of(topology, "s0")
    wanted = np.array([[False, False, True], [True, False, False]])
    traffic = Traffic(topology, [tree], np.array([0, 0, 1]), np.zeros(3, int), np.array([100, 10, 1]), wanted)
    carried = filtered(traffic, {("s0", "s1"): 1, ("s1", "s0"): 1}, np.array([1, 0]), np.array([0, 2]))
    assert carried.packets == {
        ("h0", "s0"): 2, ("h1", "s1"): 1, ("s0", "s1"): 1, ("s1", "s0"): 1, ("s1", "h1"): 1, ("s0", "h0"): 1
    }  # fmt: skip
    assert (carried.between_switches, carried.into_hosts, carried.bytes_into_hosts) == (2, 2, 101)
    assert carried.busiest == (("h0", "s0"), 2)
    assert carried.hops == 1.0


def test_hops_follow_the_tree_that_serves_the_event() -> None:
    topology = Topology.make([("a", "b"), ("b", "c"), ("c", "a")], {"x": "a", "y": "b"})
    trees = [SpanningTree("a", {"b": "a", "c": "a"}), SpanningTree("c", {"a": "c", "b": "c"})]
    for tree, path in ((0, ["x", "a", "b", "y"]), (1, ["x", "a", "c", "b", "y"])):
        wanted = np.array([[False], [True]])
        traffic = Traffic(topology, trees, np.array([0]), np.array([tree]), np.array([80]), wanted)
        carried = broadcast(traffic)
        assert carried.packets == dict.fromkeys(pairwise(path), 1)
        assert carried.hops == len(path) - 3
