"""The tables of all switches for labels that are Bloom filters: an entry for each filter that is wanted behind a port.

A packet passes one table for each port behind which hosts are, and each says of its port:

    priority 1001   has the bits of a filter that is wanted behind the port   -> out of the port, and the next table
    priority 1000   anything else                                             -> the next table

In each table one entry wins, so that a packet leaves by a port once, however many filters it is for. What does not
depend on filters, that packets come to all tables, stays as it is while they come and go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from flowsieve.flow.covering import Covering
from flowsieve.flow.entry import CONTENT_TABLE, LABEL_TABLES, NOBODY, NOWHERE, Deliveries, Flow
from flowsieve.flow.tables.receiver_tables import HAND_OVER, SEND, LabelledPort, labelled_ports
from flowsieve.header.bloom import BloomLabels
from flowsieve.network.topology import Topology
from flowsieve.network.tree import SpanningTree, center_tree

PASS = HAND_OVER
Wanted = Mapping[str, frozenset[str]]  # for each host its filters, by their canonical texts


class PortTable(NamedTuple):
    """A port of a switch that hosts are behind, its table, and the one that packets come to next."""

    switch: str
    port: LabelledPort
    onward: int | None


# What is asked for in the tables: for each port the patterns of filters, those of one pattern once.
Patterns = dict[PortTable, frozenset[int]]


@dataclass(frozen=True, slots=True)
class BloomLabelling:
    """A network, the tree of its labels, and how filters stand in them; `ports` are those that labels leave by.

    `deliveries` are those at which packets are readdressed to the host there.
    """

    topology: Topology
    tree: SpanningTree
    labels: BloomLabels
    deliveries: Deliveries = field(default_factory=dict, hash=False)
    ports: tuple[PortTable, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ports", tuple(_port_tables(self.topology, self.tree)))

    @classmethod
    def make(
        cls, topology: Topology, labels: BloomLabels, deliveries: Deliveries = NOWHERE
    ) -> BloomLabelling:
        """The labels of a network on its centre tree."""
        return cls(topology, center_tree(topology), labels, deliveries)

    def patterns(self, wanted: Wanted, covering: Covering) -> Patterns:
        """What the tables ask for: the filters that are wanted behind each port and that no other there covers."""
        known: dict[str, int] = {}
        found: Patterns = {}
        for each in self.ports:
            behind = frozenset[str]().union(*(wanted.get(host, ()) for host in each.port.hosts))
            texts = covering.widest(behind)
            for text in texts - known.keys():
                known[text] = self.labels.pattern(text)
            found[each] = frozenset([known[text] for text in texts])
        return found

    def tables(self, patterns: Mapping[PortTable, Collection[int]]) -> dict[str, tuple[Flow, ...]]:
        """The entries of all switches, last table first: made in this order, a packet comes to what is there."""
        found: dict[str, list[Flow]] = {switch: [] for switch in self.topology.switches}
        for each in reversed(self.ports):
            flows, table = found[each.switch], each.port.table
            flows += (self.entry(each, pattern) for pattern in sorted(patterns.get(each, ())))
            if each.onward is not None:
                flows.append(Flow(self.labels.any, PASS, (), table=table, onward=each.onward))
            if table == LABEL_TABLES[0]:
                flows.append(Flow(self.labels.any, HAND_OVER, (), table=CONTENT_TABLE, onward=table))
        return {switch: tuple(flows) for switch, flows in found.items()}

    def entry(self, where: PortTable, pattern: int) -> Flow:
        """The entry that sends packets with the bits of a pattern out of a port."""
        match, out = (
            self.labels.match_of(pattern),
            where.port.action(self.deliveries.get(where.switch, NOBODY)),
        )
        return Flow(match, SEND, (out,), table=where.port.table, onward=where.onward)


def _port_tables(topology: Topology, tree: SpanningTree) -> Iterator[PortTable]:
    for switch, ports in labelled_ports(topology, tree).items():
        after = [each.table for each in ports[1:]]
        for port, onward in zip(ports, [*after, None], strict=False):
            yield PortTable(switch, port, onward)
