"""How a network is labelled: the trees that labels go along, and the bit of each host. The tables follow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from flowsieve.errors import BadInput
from flowsieve.flow.entry import NOWHERE, Deliveries, Flow
from flowsieve.flow.tables.receiver_tables import receiver_tables
from flowsieve.header.receivers import ReceiverLabels, Sets
from flowsieve.network.locality import sets_by_locality
from flowsieve.network.set_trees import SetTrees
from flowsieve.network.topology import Topology
from flowsieve.network.tree import SpanningTree, center_tree

# Puts the hosts on a tree into sets of so many at most.
SetAssignment = Callable[[Topology, SpanningTree, int], Sets]


@dataclass(frozen=True, slots=True)
class Labelling:
    """A network, the trees of its labels, and the bits that stand for its hosts; it changes with the network alone.

    `deliveries` are the ports of each switch at which packets are readdressed to the host there.
    """

    topology: Topology
    trees: SetTrees
    labels: ReceiverLabels
    deliveries: Deliveries = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        served = {host for host, switch in self.topology.hosts.items() if switch in self.trees}
        if served != set(self.labels.hosts):
            wrong = min(served ^ set(self.labels.hosts))
            raise BadInput(
                f"host {wrong!r} has no bit though the tree reaches it, or one though it does not; right is one "
                "for each host on the tree"
            )

    @classmethod
    def make(
        cls,
        topology: Topology,
        assign: SetAssignment | None = None,
        deliveries: Deliveries = NOWHERE,
        partitions: int = 1,
    ) -> Labelling:
        """The labels of a network; `assign` says which hosts share a set, and else neighbours do.

        With one partition all go along the centre tree. With more, there are at least so many sets, unless they are
        assigned, and each has a tree of its own.
        """
        tree = center_tree(topology)
        assign = assign or partial(sets_by_locality, least_sets=partitions)
        labels = ReceiverLabels.make(lambda most: assign(topology, tree, most))
        if partitions == 1:
            return cls(topology, SetTrees((tree,)), labels, deliveries)
        trees = SetTrees.over(topology, labels.sets, max(1, len(labels.sets)))
        return cls(topology, trees, labels, deliveries)

    def tables(self) -> dict[str, tuple[Flow, ...]]:
        """The entries of all switches."""
        return receiver_tables(self.topology, self.trees, self.labels, self.deliveries)
