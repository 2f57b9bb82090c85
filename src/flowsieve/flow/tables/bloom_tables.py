"""The tables of all switches for labels that are Bloom filters: entries for the filters that are wanted behind a port.

A packet passes one table for each port behind which hosts are, and each says of its port:

    priority 1001   has the bits of a filter that is wanted behind the port   -> out of the port, and the next table
    priority 1000   anything else                                             -> the next table

Which filters these are, `flow.filter_book` knows; where there are too many for a table, an entry asks for the bits that
several of them share (`flow.tables.port_entries`). In each table one entry wins, so that a packet leaves by a port
once, however many filters it is for. What does not depend on filters, that packets come to all tables, stays as it is
while they come and go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from flowsieve.flow.entry import CONTENT_TABLE, LABEL_TABLES, NOBODY, NOWHERE, Deliveries, Flow
from flowsieve.flow.tables.receiver_tables import HAND_OVER, SEND, LabelledPort, labelled_ports
from flowsieve.header.bloom import BloomLabels
from flowsieve.network.locality import hosts_by_locality
from flowsieve.network.topology import Topology
from flowsieve.network.tree import SpanningTree, center_tree

PASS = HAND_OVER


class PortTable(NamedTuple):
    """A port of a switch that hosts are behind, its table, and the one that packets come to next."""

    switch: str
    port: LabelledPort
    onward: int | None


# What is asked for in the tables: for each port the bits of its entries.
Patterns = Mapping[PortTable, Collection[int]]


@dataclass(frozen=True, slots=True)
class BloomLabelling:
    """A network, the tree of its labels, and how filters stand in them.

    `ports` are those that labels leave by, `ports_of` those of each switch. Some of them are also told as a number that
    has the bit of each: `behind` are those that a host is behind. `nearness` is the place of each host among all,
    neighbours next to each other. `deliveries` are those at which packets are readdressed to the host there.
    """

    topology: Topology
    tree: SpanningTree
    labels: BloomLabels
    deliveries: Deliveries = field(default_factory=dict, hash=False)
    ports: tuple[PortTable, ...] = field(init=False, compare=False, repr=False)
    ports_of: Mapping[str, tuple[PortTable, ...]] = field(init=False, compare=False, repr=False)
    behind: Mapping[str, int] = field(init=False, compare=False, repr=False)
    nearness: Mapping[str, int] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        ports = tuple(_port_tables(self.topology, self.tree))
        behind = dict.fromkeys(self.topology.hosts, 0)
        for at, each in enumerate(ports):
            for host in each.port.hosts:
                behind[host] |= 1 << at
        of: dict[str, tuple[PortTable, ...]] = {}
        for each in ports:
            of[each.switch] = (*of.get(each.switch, ()), each)
        object.__setattr__(self, "ports", ports)
        object.__setattr__(self, "ports_of", of)
        object.__setattr__(self, "behind", behind)
        order = hosts_by_locality(self.topology, self.tree)
        object.__setattr__(self, "nearness", {host: at for at, host in enumerate(order)})

    @classmethod
    def make(
        cls, topology: Topology, labels: BloomLabels, deliveries: Deliveries = NOWHERE
    ) -> BloomLabelling:
        """The labels of a network on its centre tree."""
        return cls(topology, center_tree(topology), labels, deliveries)

    @property
    def everywhere(self) -> int:
        """All ports."""
        return (1 << len(self.ports)) - 1

    def ports_in(self, some: int) -> Iterator[PortTable]:
        """Ports of which a number has the bits."""
        while some:
            lowest = some & -some
            yield self.ports[lowest.bit_length() - 1]
            some ^= lowest

    def at_ports(self, patterns: Mapping[int, int]) -> dict[PortTable, list[int]]:
        """The patterns at each port, given the ports of each."""
        found: dict[PortTable, list[int]] = {}
        for pattern, ports in patterns.items():
            for where in self.ports_in(ports):
                found.setdefault(where, []).append(pattern)
        return found

    def tables(self, patterns: Patterns) -> dict[str, tuple[Flow, ...]]:
        """The entries of all switches."""
        return {switch: self.table(switch, patterns) for switch in self.topology.switches}

    def table(self, switch: str, patterns: Patterns) -> tuple[Flow, ...]:
        """The entries of a switch, last table first: made in this order, a packet comes to what is there."""
        made = {
            each: [self.entry(each, pattern) for pattern in sorted(patterns.get(each, ()))]
            for each in self.ports_of.get(switch, ())
        }
        return self.joined(switch, made)

    def joined(self, switch: str, entries: Mapping[PortTable, Iterable[Flow]]) -> tuple[Flow, ...]:
        """The same, of the entries for patterns at each port."""
        flows: list[Flow] = []
        for each in reversed(self.ports_of.get(switch, ())):
            table = each.port.table
            flows += entries[each]
            if each.onward is not None:
                flows.append(Flow(self.labels.any, PASS, (), table=table, onward=each.onward))
            if table == LABEL_TABLES[0]:
                flows.append(Flow(self.labels.any, HAND_OVER, (), table=CONTENT_TABLE, onward=table))
        return tuple(flows)

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
