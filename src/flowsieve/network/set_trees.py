"""A spanning tree for each set of hosts, where packets say for which set they are.

All that is for one set goes along one tree, so that whatever the design says of a dz and its tree is true of a set of
hosts and its tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flowsieve.errors import BadTopology
from flowsieve.network.roots import Mesh, spread_to_receivers
from flowsieve.network.topology import Topology
from flowsieve.network.tree import SpanningTree, TreeMap, named_tree


@dataclass(frozen=True, slots=True)
class SetTrees:
    """The trees of sets by their numbers; where there are more sets than trees, these come again.

    >>> near, far = SpanningTree("s1", {"s2": "s1"}), SpanningTree("s2", {"s1": "s2"})
    >>> [SetTrees((near, far)).of_set(number).root for number in range(3)]
    ['s1', 's2', 's1']
    """

    trees: tuple[SpanningTree, ...]

    def __post_init__(self) -> None:
        if not self.trees:
            raise BadTopology("sets of hosts have no tree; right is one at least")

    @classmethod
    def first_of(cls, trees: TreeMap, n: int) -> SetTrees:
        """The trees of the first n parts of a map."""
        return cls(tuple(tree for _, tree in trees.parts[:n]))

    @classmethod
    def over(cls, topology: Topology, sets: Sequence[Sequence[str]], n: int) -> SetTrees:
        """n trees, chosen by where the hosts of each one's sets are; together they share the load of the links.

        A set that nobody is in yet is expected to have hosts wherever the network has some.
        """
        mesh = Mesh.of(topology)
        number = {switch: at for at, switch in enumerate(mesh.names)}
        receivers = np.zeros((n, len(mesh.names)), dtype=np.int64)
        for at, row in enumerate(sets):
            for host in row:
                if (switch := topology.hosts.get(host)) in number:
                    receivers[at % n, number[switch]] += 1
        receivers[receivers.sum(axis=1) == 0] = mesh.weight
        rooted = spread_to_receivers(mesh, receivers)
        named = {tree.root: named_tree(mesh, tree) for tree in rooted}
        return cls(tuple(named[tree.root] for tree in rooted))

    def of_set(self, number: int) -> SpanningTree:
        """The tree of a set."""
        return self.trees[number % len(self.trees)]

    def sets_of(self, tree: int, sets: int) -> range:
        """Which of so many sets the tree at a place has."""
        return range(tree, sets, len(self.trees))

    def __contains__(self, switch: object) -> bool:
        return switch in self.trees[0]  # all of them have the same switches

    def __len__(self) -> int:
        return len(self.trees)
