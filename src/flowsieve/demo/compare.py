"""What else could carry the same events: broadcast on the same trees, and a central broker.

Both are counted in their favour: broadcast skips branches without hosts, and the broker stands where it causes the
fewest packets, filters exactly, and sends nothing to itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from flowsieve.network.topology import Topology
from flowsieve.network.tree import SpanningTree

Way = tuple[str, str]  # from one end of a link to the other; hosts' own links too


@dataclass(frozen=True, slots=True, eq=False)
class Traffic:
    """Events on a network: of each the host that published it, the tree that serves it, and its bytes on the wire.

    Hosts are counted from 0 in the topology's order. `wanted[h, e]` says whether host h wants event e.
    """

    topology: Topology
    trees: Sequence[SpanningTree]
    source: NDArray[np.int64]
    tree: NDArray[np.int64]
    size: NDArray[np.int64]
    wanted: NDArray[np.bool_]

    def flows(self) -> Counter[tuple[str, int, str]]:
        """How many wanted events went from a host, on a tree, to a host."""
        hosts = tuple(self.topology.hosts)
        at, event = np.nonzero(self.wanted)
        keys, counts = np.unique(
            np.stack([self.source[event], self.tree[event], at]), axis=1, return_counts=True
        )
        return Counter(
            {
                (hosts[source], tree, hosts[to]): count
                for (source, tree, to), count in zip(keys.T.tolist(), counts.tolist(), strict=True)
            }
        )


@dataclass(frozen=True, slots=True, eq=False)
class Carried:
    """What one way of dissemination puts on the links: packets by direction, and bytes into hosts.

    `hops` is the mean number of links between switches from a publisher to a host that wants its event.
    """

    topology: Topology
    packets: Mapping[Way, int]
    bytes_into_hosts: int
    hops: float

    @property
    def between_switches(self) -> int:
        hosts = self.topology.hosts
        return sum(n for (a, b), n in self.packets.items() if a not in hosts and b not in hosts)

    @property
    def into_hosts(self) -> int:
        return sum(n for (_, b), n in self.packets.items() if b in self.topology.hosts)

    @property
    def busiest(self) -> tuple[Way, int]:
        """The link and direction with most packets."""
        way = max(self.packets, key=lambda way: self.packets[way])
        return way, self.packets[way]


def filtered(
    traffic: Traffic,
    between_switches: Mapping[Way, int],
    copies: NDArray[np.integer],
    events: NDArray[np.integer],
) -> Carried:
    """What switches carried that filter: their own counts, and the host and event of every copy that arrived."""
    topology = traffic.topology
    hosts = tuple(topology.hosts)
    packets = Counter({way: n for way, n in between_switches.items() if n})
    for number, n in zip(*_counted(traffic.source), strict=True):
        packets[hosts[number], topology.hosts[hosts[number]]] += n
    for number, n in zip(*_counted(copies), strict=True):
        packets[topology.hosts[hosts[number]], hosts[number]] += n
    return Carried(topology, packets, int(traffic.size[events].sum()), _tree_hops(traffic))


def broadcast(traffic: Traffic) -> Carried:
    """Every event to every other host, on the tree that serves it."""
    topology = traffic.topology
    hosts = tuple(topology.hosts)
    packets: Counter[Way] = Counter()
    keys, counts = np.unique(np.stack([traffic.source, traffic.tree]), axis=1, return_counts=True)
    for (source, tree), n in zip(keys.T.tolist(), counts.tolist(), strict=True):
        reached = {
            way for host in hosts if host != hosts[source] for way in _path(topology, traffic.trees[tree], hosts[source], host)
        }
        packets.update(dict.fromkeys(reached, n))
    return Carried(topology, packets, int(traffic.size.sum()) * (len(hosts) - 1), _tree_hops(traffic))


def brokered(traffic: Traffic, broker: str) -> Carried:
    """Every event to a broker by the shortest path, and from there one copy to each other host that wants it."""
    topology = traffic.topology
    hosts = tuple(topology.hosts)
    tree = SpanningTree.of(topology, topology.hosts[broker])
    packets: Counter[Way] = Counter()
    away = {host: len(tree.path(topology.hosts[host], tree.root)) - 1 for host in hosts}
    wanted_by = traffic.wanted.sum(axis=1).tolist()
    for number, n in zip(*_counted(traffic.source), strict=True):
        if hosts[number] != broker:
            packets.update(dict.fromkeys(_path(topology, tree, hosts[number], broker), n))
    for host, n in zip(hosts, wanted_by, strict=True):
        if host != broker and n:
            packets.update(dict.fromkeys(_path(topology, tree, broker, host), n))
    number = hosts.index(broker)
    size = int(traffic.size[traffic.source != number].sum())
    size += int((traffic.wanted @ traffic.size).sum() - traffic.size[traffic.wanted[number]].sum())
    flows = traffic.flows()
    hops = sum(n * (away[source] + away[to]) for (source, _, to), n in flows.items()) / max(1, flows.total())
    return Carried(topology, packets, size, hops)


def best_broker(traffic: Traffic) -> str:
    """The host that causes the fewest packets between switches as a broker, then into hosts; the first of equals."""

    def cost(host: str) -> tuple[int, int]:
        carried = brokered(traffic, host)
        return carried.between_switches, carried.into_hosts

    return min(traffic.topology.hosts, key=cost)


def _counted(numbers: NDArray[np.integer]) -> tuple[list[int], list[int]]:
    found, counts = np.unique(numbers, return_counts=True)
    return found.tolist(), counts.tolist()


def _path(topology: Topology, tree: SpanningTree, source: str, to: str) -> list[Way]:
    """The links from a host to another on a tree, both hosts' own included."""
    return list(pairwise((source, *tree.path(topology.hosts[source], topology.hosts[to]), to)))


def _tree_hops(traffic: Traffic) -> float:
    hosts = traffic.topology.hosts
    flows = traffic.flows()
    links = sum(
        n * (len(traffic.trees[tree].path(hosts[source], hosts[to])) - 1)
        for (source, tree, to), n in flows.items()
    )
    return links / max(1, flows.total())
