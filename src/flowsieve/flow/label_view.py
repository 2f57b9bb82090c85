"""One frozen view of a network of labels that name receivers; what `NetworkView` is for one of dz."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from flowsieve.content.schema import Schema
from flowsieve.flow.entry import Flow
from flowsieve.flow.interest import Interest
from flowsieve.header.receivers import ReceiverLabels
from flowsieve.network.topology import Topology
from flowsieve.network.tree import SpanningTree


@dataclass(frozen=True, slots=True, eq=False)
class LabelView:
    """What a proof and an explanation look at; a switch that `tables` does not name holds nothing."""

    topology: Topology
    tree: SpanningTree
    labels: ReceiverLabels
    schema: Schema
    tables: Mapping[str, tuple[Flow, ...]]
    advertisements: Collection[Interest]
    subscriptions: Collection[Interest]

    def wanted(self, host: str, values: Mapping[str, object]) -> list[Interest]:
        """The subscriptions of others that an event of a host matches."""
        return [each for each in self.subscriptions if each.endpoint != host and each.holds(values, ())]

    def way(self, publisher: str, host: str) -> list[tuple[str, int]]:
        """The switches from one host to another on the tree, each with the port that it sends out of."""
        ends = self.topology.hosts
        path = self.tree.path(ends[publisher], ends[host])
        return [
            (switch, self.topology.port(switch, to))
            for switch, to in zip(path, (*path[1:], host), strict=True)
        ]
