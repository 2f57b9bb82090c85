"""What else could carry the same events: broadcast on the same trees, and a central broker.

Both are counted in their favour: broadcast skips branches without hosts, and the broker stands where it makes
for the fewest packets, filters exactly, and sends nothing to itself.
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
    """Events on a network: of each its publisher, the tree that serves it, and its bytes on the wire.

    Hosts are counted from 0 in the topology's order. `wanted[h, e]` says whether host h wants event e.
    """

    topology: Topology
    trees: Sequence[SpanningTree]
    source: NDArray[np.int64]
    tree: NDArray[np.int64]
    size: NDArray[np.int64]
    wanted: NDArray[np.bool_]

    def pairs(self) -> Counter[tuple[str, int, str]]:
        """How many events go from a host, on a tree, to a host that wants them."""
        hosts = tuple(self.topology.hosts)
        at, event = np.nonzero(self.wanted)
        keys = np.stack([self.source[event], self.tree[event], at])
        found, counts = np.unique(keys, axis=1, return_counts=True)
        return Counter(
            {
                (hosts[source], tree, hosts[to]): count
                for (source, tree, to), count in zip(found.T.tolist(), counts.tolist(), strict=True)
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
    host: NDArray[np.integer],
    event: NDArray[np.integer],
) -> Carried:
    """What filtering switches carried: by their own counts, and by host and event of each copy received."""
    topology = traffic.topology
    packets = Counter(between_switches)
    homes = tuple(topology.hosts.items())
    sent, received = (np.bincount(each, minlength=len(homes)).tolist() for each in (traffic.source, host))
    for (name, switch), out, into in zip(homes, sent, received, strict=True):
        packets[name, switch] += out
        packets[switch, name] += into
    return Carried(topology, packets, int(traffic.size[event].sum()), _tree_hops(traffic))


def broadcast(traffic: Traffic) -> Carried:
    """Every event to every other host, on the tree that serves it."""
    topology = traffic.topology
    hosts = tuple(topology.hosts)
    packets: Counter[Way] = Counter()
    sent = Counter(zip(traffic.source.tolist(), traffic.tree.tolist(), strict=True))
    for (number, tree), n in sent.items():
        source, others = hosts[number], hosts[:number] + hosts[number + 1 :]
        reached = {way for host in others for way in _path(topology, traffic.trees[tree], source, host)}
        packets.update(dict.fromkeys(reached, n))
    return Carried(topology, packets, int(traffic.size.sum()) * (len(hosts) - 1), _tree_hops(traffic))


def brokered(traffic: Traffic, broker: str) -> Carried:
    """Every event to a broker by the shortest path, and from there a copy to each host that wants it."""
    topology = traffic.topology
    tree = SpanningTree.of(topology, topology.hosts[broker])
    sent, wanted = _counts(traffic)
    packets: Counter[Way] = Counter()
    for host, out, into in zip(topology.hosts, sent, wanted, strict=True):
        if host != broker:
            packets.update(dict.fromkeys(_path(topology, tree, host, broker), out))
            packets.update(dict.fromkeys(_path(topology, tree, broker, host), into))
    number = list(topology.hosts).index(broker)
    others = np.arange(len(topology.hosts)) != number
    size = int(traffic.size[traffic.source != number].sum() + (traffic.wanted[others] @ traffic.size).sum())
    away = {host: tree.depth(switch) for host, switch in topology.hosts.items()}
    pairs = traffic.pairs()
    hops = sum(n * (away[source] + away[to]) for (source, _, to), n in pairs.items()) / max(1, pairs.total())
    return Carried(topology, packets, size, hops)


def best_broker(traffic: Traffic) -> str:
    """The host that makes for the fewest packets between switches, then into hosts; the first of equals."""
    topology = traffic.topology
    copies = [out + into for out, into in zip(*_counts(traffic), strict=True)]

    def cost(broker: str) -> tuple[int, int]:
        tree = SpanningTree.of(topology, topology.hosts[broker])
        others = [
            (n, tree.depth(at))
            for (host, at), n in zip(topology.hosts.items(), copies, strict=True)
            if host != broker
        ]
        return sum(n * away for n, away in others), sum(n for n, _ in others)

    return min(topology.hosts, key=cost)


def _counts(traffic: Traffic) -> tuple[list[int], list[int]]:
    """How many events each host publishes, and how many it wants."""
    hosts = len(traffic.topology.hosts)
    return np.bincount(traffic.source, minlength=hosts).tolist(), traffic.wanted.sum(axis=1).tolist()


def _path(topology: Topology, tree: SpanningTree, source: str, to: str) -> list[Way]:
    """The links from a host to another on a tree, both hosts' own included."""
    return list(pairwise((source, *tree.path(topology.hosts[source], topology.hosts[to]), to)))


def _tree_hops(traffic: Traffic) -> float:
    homes, pairs = traffic.topology.hosts, traffic.pairs()
    links = sum(
        n * (len(traffic.trees[tree].path(homes[source], homes[to])) - 1)
        for (source, tree, to), n in pairs.items()
    )
    return links / max(1, pairs.total())
