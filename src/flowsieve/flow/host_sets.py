"""Which hosts share a set, where somebody has chosen it: one JSON value, which `flowsieve sets` learns."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from flowsieve.content.schema import shown
from flowsieve.errors import BadInput, nearest
from flowsieve.header.receivers import HEADER, ReceiverLabels, Sets
from flowsieve.header.tag import POOLS
from flowsieve.network.locality import hosts_by_locality
from flowsieve.network.topology import Topology
from flowsieve.network.tree import SpanningTree

KEY = "sets"
RIGHT = 'right is {"sets": [["h1", "h2"], ["h3"]]}, each host in one set; `flowsieve sets` writes such a file'


@dataclass(frozen=True, slots=True)
class HostSets:
    """Hosts in sets, each in one, and no set larger than an address has bits beside the sets' numbers.

    >>> HostSets.from_json({"sets": [["h1", "h2"], ["h3"]]}).sets
    (('h1', 'h2'), ('h3',))
    """

    sets: Sets

    def __post_init__(self) -> None:
        twice = [
            host for host, times in Counter(host for row in self.sets for host in row).items() if times > 1
        ]
        if twice:
            raise BadInput(f"host {shown(twice[0])} is in two sets, or twice in one; right is once")
        ReceiverLabels(POOLS[HEADER][0], self.sets)  # says which set is too large, or that they are too many

    @classmethod
    def from_json(cls, data: object) -> HostSets:
        rows = data.get(KEY) if isinstance(data, dict) else None
        if not isinstance(rows, list) or not rows:
            raise BadInput(f"is {shown(data)}; {RIGHT}")
        for row in rows:
            if not isinstance(row, list) or not row or not all(isinstance(host, str) for host in row):
                raise BadInput(f"a set is {shown(row)}; {RIGHT}")
        return cls(tuple(map(tuple, rows)))

    def to_json(self) -> dict[str, Any]:
        return {KEY: [[*row] for row in self.sets]}

    def assign(self, topology: Topology, tree: SpanningTree, most: int) -> Sets:
        """The hosts on a tree in sets of so many at most, those behind one port side by side within a set.

        A host that is in none gets a place that is left, in the set with most hosts of its switch, or else a new set;
        so does what is too much where new sets make their numbers longer. One that is not on the tree raises BadInput.
        """
        served = {host: at for at, host in enumerate(hosts_by_locality(topology, tree))}
        strange = [host for row in self.sets for host in row if host not in served]
        if strange:
            more = f" and {len(strange) - 1:,} more" if len(strange) > 1 else nearest(strange[0], served)
            raise BadInput(
                f"the sets have host {shown(strange[0])}, which the network does not reach{more}; right is to take it "
                "out of the file, or to learn the sets anew: `flowsieve sets`"
            )
        rows = [[*row[:most]] for row in self.sets]
        placed = {host for row in rows for host in row}
        near = [Counter(topology.hosts[host] for host in row) for row in rows]
        for host in served:
            if host in placed:
                continue
            switch = topology.hosts[host]
            roomy = [at for at, row in enumerate(rows) if len(row) < most]
            if not roomy:
                roomy = [len(rows)]
                rows.append([])
                near.append(Counter())
            best = max(roomy, key=lambda at: (near[at][switch], most - len(rows[at]), -at))
            rows[best].append(host)
            near[best][switch] += 1
        return tuple(tuple(sorted(row, key=served.__getitem__)) for row in rows)
