"""Frozen views of a network whose packets are labelled; what `NetworkView` is for one of dz."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from flowsieve.content.schema import Schema
from flowsieve.flow.entry import Deliveries, Flow
from flowsieve.flow.guard import Gate
from flowsieve.flow.interest import Interest
from flowsieve.flow.others import Others
from flowsieve.flow.send_policy import EVERYBODY, SendPolicy
from flowsieve.header.address import Prefix
from flowsieve.header.receivers import ReceiverLabels
from flowsieve.network.set_trees import SetTrees
from flowsieve.network.topology import Topology
from flowsieve.network.tree import SpanningTree


class Label(NamedTuple):
    """The addresses that a packet is sent with, as numbers; a source of 0 says nothing."""

    source: int
    destination: int


class TreeView(Protocol):
    """What all such views tell, whatever labels say."""

    @property
    def topology(self) -> Topology: ...
    @property
    def schema(self) -> Schema: ...
    @property
    def tables(self) -> Mapping[str, tuple[Flow, ...]]: ...
    @property
    def advertisements(self) -> Collection[Interest]: ...
    @property
    def subscriptions(self) -> Collection[Interest]: ...
    @property
    def group(self) -> Prefix:
        """Of the labels' destinations."""

    @property
    def family(self) -> int:
        """Of the labels."""

    @property
    def deliveries(self) -> Deliveries:
        """The ports to hosts at which packets are to be readdressed, and how; at all others they are to stay."""

    @property
    def others(self) -> Mapping[str, Others]:
        """What others have made of switches."""

    def sent(self, host: str, values: Mapping[str, object]) -> list[Label]:
        """The packets in which a host sends an event that it has advertised."""

    def wanted(self, host: str, values: Mapping[str, object]) -> list[Interest]:
        """The subscriptions of others that an event of a host matches."""

    def may_send(self, publisher: str, host: str) -> bool:
        """Whether the operator lets one host address another; its port drops what it may not send."""

    def tree_to(self, host: str) -> SpanningTree:
        """The tree along which packets for a host go."""

    def names(self, label: Label, host: str) -> bool:
        """Whether a packet may be for a host."""

    def way(self, publisher: str, host: str) -> list[tuple[str, int]]:
        """The switches from one host to another on the tree, each with the port that it sends out of."""


class OnTree:
    """What follows from the rest of a view."""

    __slots__ = ()

    def wanted(self: TreeView, host: str, values: Mapping[str, object]) -> list[Interest]:
        return [each for each in self.subscriptions if each.endpoint != host and each.holds(values, ())]

    def may_send(self, publisher: str, host: str) -> bool:
        return True

    def way(self: TreeView, publisher: str, host: str) -> list[tuple[str, int]]:
        ends = self.topology.hosts
        path = self.tree_to(host).path(ends[publisher], ends[host])
        return [
            (switch, self.topology.port(switch, to))
            for switch, to in zip(path, (*path[1:], host), strict=True)
        ]


@dataclass(frozen=True, slots=True, eq=False)
class LabelView(OnTree):
    """What a proof and an explanation look at where labels name receivers; a switch that `tables` does not name holds
    nothing. `gates` are the ports of hosts that are held to the `policy`, as far as they are known."""

    topology: Topology
    trees: SetTrees
    labels: ReceiverLabels
    schema: Schema
    tables: Mapping[str, tuple[Flow, ...]]
    advertisements: Collection[Interest]
    subscriptions: Collection[Interest]
    deliveries: Deliveries = field(default_factory=dict)
    others: Mapping[str, Others] = field(default_factory=dict)
    policy: SendPolicy = EVERYBODY
    gates: Mapping[str, Gate] = field(default_factory=dict)

    def sent(self, host: str, values: Mapping[str, object]) -> list[Label]:
        receivers = dict.fromkeys(each.endpoint for each in self.wanted(host, values))
        return [Label(0, address) for address in self.labels.addresses(self.policy.reached(host, receivers))]

    def may_send(self, publisher: str, host: str) -> bool:
        return self.policy.allows(publisher, host)

    def tree_to(self, host: str) -> SpanningTree:
        return self.trees.of_set(self.labels.place(host).set)

    def names(self, label: Label, host: str) -> bool:
        return host in self.labels.receivers(label.destination)

    @property
    def group(self) -> Prefix:
        return self.labels.tag.group

    @property
    def family(self) -> int:
        return self.labels.family
