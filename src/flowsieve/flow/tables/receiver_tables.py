"""The tables of all switches for labels that name receivers: a function of the trees and of the hosts' bits alone.

A packet goes along the tree of its set. It passes one table for each port behind which a host of the set is, and each
says of its port:

    priority 1002   no bit of the hosts behind the port is set     -> the next table
    priority 1001   any other label of the set                     -> out of the port, and the next table

So a switch has two entries for each port and set, and one for each set in the content's table that hands over to the
first of them, whatever is subscribed. On a tree each receiver is behind exactly one port of a switch, and nothing is
sent back, so that no copy doubles or loops though labels stay as they are on the way.

At a port to a host a packet is readdressed to the host, where `deliveries` say how; it goes on with its label.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from flowsieve.errors import BadTopology
from flowsieve.flow.entry import (
    CONTENT_TABLE,
    LABEL_TABLES,
    NOBODY,
    NOWHERE,
    Action,
    Deliver,
    Deliveries,
    Flow,
    Output,
)
from flowsieve.header.encoding import CONTENT_PRIORITY
from flowsieve.header.match import Match
from flowsieve.header.receivers import ReceiverLabels
from flowsieve.network.set_trees import SetTrees
from flowsieve.network.topology import Topology
from flowsieve.network.tree import SpanningTree

HAND_OVER = CONTENT_PRIORITY
SEND, PASS = CONTENT_PRIORITY + 1, CONTENT_PRIORITY + 2


class LabelledPort(NamedTuple):
    """A port of a switch that hosts are behind on the tree, and its table."""

    table: int
    port: int
    hosts: frozenset[str]

    def action(self, deliveries: Mapping[int, Deliver]) -> Action:
        """What sends a packet out of it."""
        return deliveries.get(self.port) or Output(self.port)


def labelled_ports(
    topology: Topology, tree: SpanningTree, hosts: Collection[str] | None = None
) -> dict[str, list[LabelledPort]]:
    """The ports of each switch that labels for these hosts are sent out of, each with its table; those to hosts come
    last. Without hosts, labels are for any.

    At a host's port a packet is given another destination: were a link's after it, a switch would have to give the
    packet its label back first.
    """
    hosts = frozenset(topology.hosts if hosts is None else hosts)
    below = _hosts_below(topology, tree, hosts)
    whole: dict[str, frozenset[str]] = {}  # the hosts of the part of the network that a switch is in
    found: dict[str, list[LabelledPort]] = {switch: [] for switch in topology.switches}
    for switch in tree.switches:
        behind = {child: below[child] for child in tree.children(switch)}
        above = tree.parent.get(switch)
        whole[switch] = below[switch] if above is None else whole[above]
        if above is not None:
            behind[above] = whole[above] - below[switch]
        behind |= {host: frozenset([host]) for host in topology.attached_at(switch) if host in hosts}
        ports = [near for near in topology.neighbours(switch) if behind.get(near)]
        if len(ports) > len(LABEL_TABLES):
            raise BadTopology(
                f"switch {switch} sends out of {len(ports)} ports, and each takes a table for labels; "
                f"a switch has room for {len(LABEL_TABLES)}"
            )
        found[switch] = [
            LabelledPort(table, topology.port(switch, near), behind[near])
            for table, near in zip(LABEL_TABLES, ports, strict=False)
        ]
    return found


def _hosts_below(topology: Topology, tree: SpanningTree, hosts: frozenset[str]) -> dict[str, frozenset[str]]:
    """Which of these hosts are at each switch of a tree and below it."""
    below: dict[str, frozenset[str]] = {}
    for switch in reversed(tree.switches):
        own = hosts & set(topology.attached_at(switch))
        below[switch] = frozenset(own).union(*(below[child] for child in tree.children(switch)))
    return below


def set_ports(
    topology: Topology, trees: SetTrees, labels: ReceiverLabels
) -> Iterator[tuple[range, dict[str, list[LabelledPort]]]]:
    """The sets that each tree has, and the ports of each switch that labels of these are sent out of.

    Tables are numbered tree by tree: when one is mended, those of the others stay what they are.
    """
    there = topology.hosts.keys()
    for at, tree in enumerate(trees.trees):
        numbers = trees.sets_of(at, len(labels.sets))
        hosts = [host for number in numbers for host in labels.sets[number] if host in there]
        yield numbers, labelled_ports(topology, tree, hosts)


def receiver_tables(
    topology: Topology, trees: SetTrees, labels: ReceiverLabels, deliveries: Deliveries = NOWHERE
) -> dict[str, tuple[Flow, ...]]:
    """The entries of all switches, last table first: made in this order, a packet is handed over when all is there."""
    chains: dict[str, dict[int, list[Flow]]] = {switch: {} for switch in topology.switches}
    for numbers, on_tree in set_ports(topology, trees, labels):
        for switch, ports in on_tree.items():
            nobody, own = [labels.none_of(each.hosts) for each in ports], deliveries.get(switch, NOBODY)
            for number in numbers:
                there = [
                    (port, match[number])
                    for port, match in zip(ports, nobody, strict=True)
                    if number in match
                ]
                chains[switch][number] = list(_chain(labels.any_of(number), there, own))
    return {
        switch: tuple(flow for number in sorted(by_set) for flow in by_set[number])
        for switch, by_set in chains.items()
    }


def _chain(
    whole: Match, ports: list[tuple[LabelledPort, Match]], deliveries: Mapping[int, Deliver]
) -> Iterator[Flow]:
    """The entries for one set, `whole`: a packet passes the tables of those ports that some of its hosts are behind.

    Each port comes with the labels that are for nobody behind it.
    """
    onward: int | None = None
    for port, nobody in reversed(ports):
        yield Flow(nobody, PASS, (), table=port.table, onward=onward)
        yield Flow(whole, SEND, (port.action(deliveries),), table=port.table, onward=onward)
        onward = port.table
    if onward is not None:
        yield Flow(whole, HAND_OVER, (), table=CONTENT_TABLE, onward=onward)
