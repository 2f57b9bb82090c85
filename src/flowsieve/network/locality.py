"""Hosts in the order of a tree: those behind one port of a switch stand side by side."""

from __future__ import annotations

from itertools import pairwise

from flowsieve.network.topology import Topology
from flowsieve.network.tree import SpanningTree


def hosts_by_locality(topology: Topology, tree: SpanningTree) -> tuple[str, ...]:
    """The hosts on a tree: those of a switch, then those below each of its children, most hosts first.

    So what is behind a port that leads away from the root is one stretch, and what is behind the one towards it is all
    but one.
    """
    crowd = {switch: len(_hosts_at(topology, switch)) for switch in tree.switches}
    for switch in reversed(tree.switches):
        if switch in tree.parent:
            crowd[tree.parent[switch]] += crowd[switch]
    found: list[str] = []
    waiting = [root for root in tree.switches if root not in tree.parent][::-1]
    while waiting:
        switch = waiting.pop()
        found += _hosts_at(topology, switch)
        waiting += sorted(tree.children(switch), key=lambda child: crowd[child])
    return tuple(found)


def sets_by_locality(
    topology: Topology, tree: SpanningTree, most: int, least_sets: int = 1
) -> tuple[tuple[str, ...], ...]:
    """The hosts in sets of so many at most, neighbours on the tree together.

    All but the last are full: an event is sent once for each set in which it is wanted, and rarely for a small one.
    Where several sets are asked for, they are of one size, give or take a host, since each has a tree to load.
    """
    hosts = hosts_by_locality(topology, tree)
    if least_sets == 1 or not hosts:
        return tuple(hosts[at : at + most] for at in range(0, len(hosts), most))
    number = min(len(hosts), max(least_sets, -(-len(hosts) // most)))
    ends = [len(hosts) * at // number for at in range(number + 1)]
    return tuple(hosts[low:high] for low, high in pairwise(ends))


def _hosts_at(topology: Topology, switch: str) -> list[str]:
    return [name for name in topology.attached_at(switch) if name in topology.hosts]
