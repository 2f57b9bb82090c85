"""Where hosts are on a tree, as far as sets of them are concerned: which are beyond each of its edges.

A packet for a set crosses an edge if somebody beyond wants it, and a set with hosts beyond an edge takes entries at its
ends. Both are audiences again: the hosts beyond an edge, and those of an audience that are beyond it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flowsieve.network.topology import Topology
from flowsieve.network.tree import SpanningTree
from flowsieve.pipeline.receiver_sets.audiences import Audiences, Numbers


@dataclass(frozen=True, eq=False)
class TreePlaces:
    """Hosts numbered in the order of a tree: beyond edge i are those from `low[i]` to before `high[i]`."""

    hosts: int
    low: Numbers
    high: Numbers

    @classmethod
    def of(cls, hosts: Sequence[str], topology: Topology, tree: SpanningTree) -> TreePlaces:
        """The places of hosts that are in the order of `hosts_by_locality`."""
        number = {host: at for at, host in enumerate(hosts)}
        low, high = dict.fromkeys(tree.switches, len(hosts)), dict.fromkeys(tree.switches, 0)
        for switch in reversed(tree.switches):
            own = [number[name] for name in topology.attached_at(switch) if name in number]
            low[switch], high[switch] = min([low[switch], *own]), max([high[switch], *(at + 1 for at in own)])
            if switch in tree.parent:
                parent = tree.parent[switch]
                low[parent], high[parent] = min(low[parent], low[switch]), max(high[parent], high[switch])
        edges = [child for _, child in tree.edges if low[child] < high[child]]
        return cls(
            len(hosts),
            np.array([low[child] for child in edges], np.int64),
            np.array([high[child] for child in edges], np.int64),
        )

    def __len__(self) -> int:
        return len(self.low)

    def beyond(self, weight: int) -> Audiences:
        """The hosts beyond each edge, which count as much all together as `weight` says."""
        groups = [range(low, high) for low, high in zip(self.low, self.high, strict=True)]
        return Audiences.of(self.hosts, groups, [max(1, weight // max(1, len(groups)))] * len(groups))

    def parted(self, audiences: Audiences, weight: float) -> Audiences:
        """What of each audience is beyond each edge, if it is two hosts or more; it counts so many times as much."""
        owner = np.repeat(np.arange(len(audiences)), np.diff(audiences.start))
        sizes, members, weights = [np.zeros(1, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for low, high in zip(self.low, self.high, strict=True):
            inside = np.flatnonzero((audiences.host >= low) & (audiences.host < high))
            count = np.bincount(owner[inside], minlength=len(audiences))
            several = np.flatnonzero(count > 1)
            members.append(audiences.host[inside[count[owner[inside]] > 1]])
            sizes.append(count[several])
            weights.append(np.rint(audiences.weight[several] * weight).astype(np.int64))
        start = np.cumsum(np.concatenate(sizes)).astype(np.int64)
        return Audiences.joined(self.hosts, start, np.concatenate(members), np.concatenate(weights))

    def above(self) -> tuple[Numbers, Numbers]:
        """The edges that each host is beyond: where those of host v begin in a list, and the list."""
        lists = [np.flatnonzero((self.low <= v) & (v < self.high)) for v in range(self.hosts)]
        start = np.cumsum([0, *map(len, lists)]).astype(np.int64)
        return start, np.concatenate([np.zeros(0, np.int64), *lists])
