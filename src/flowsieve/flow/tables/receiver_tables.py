"""The tables of all switches for labels that name receivers: a function of the tree and of the hosts' bits alone.

A packet passes one table for each port behind which a host of its set is, and each says of its port:

    priority 1002   no bit of the hosts behind the port is set     -> the next table
    priority 1001   any other label of the set                     -> out of the port, and the next table

So a switch has two entries for each port and set, and one for each set in the content's table that hands over to the
first of them, whatever is subscribed. On a tree each receiver is behind exactly one port of a switch, and nothing is
sent back, so that no copy doubles or loops though labels stay as they are on the way.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from flowsieve.errors import BadTopology
from flowsieve.flow.entry import CONTENT_TABLE, LABEL_TABLES, Flow, Output
from flowsieve.header.encoding import CONTENT_PRIORITY
from flowsieve.header.receivers import ReceiverLabels
from flowsieve.network.topology import Topology
from flowsieve.network.tree import SpanningTree, endpoints_behind

HAND_OVER = CONTENT_PRIORITY
SEND, PASS = CONTENT_PRIORITY + 1, CONTENT_PRIORITY + 2


class LabelledPort(NamedTuple):
    """A port of a switch that hosts are behind on the tree, and its table."""

    table: int
    port: int
    hosts: frozenset[str]


def labelled_ports(topology: Topology, tree: SpanningTree, switch: str) -> list[LabelledPort]:
    """The ports of a switch that labels are sent out of, each with its table; those to hosts come last.

    At a host's port a packet may be given another destination, which no later table would know.
    """
    if switch not in tree:
        return []
    found = []
    for port in range(1, len(topology.neighbours(switch)) + 1):
        behind = endpoints_behind(topology, tree, switch, port) & topology.hosts.keys()
        if behind:
            found.append((port, behind))
    if len(found) > len(LABEL_TABLES):
        raise BadTopology(
            f"switch {switch} sends out of {len(found)} ports, and each takes a table for labels; "
            f"a switch has room for {len(LABEL_TABLES)}"
        )
    return [LabelledPort(LABEL_TABLES[n], port, behind) for n, (port, behind) in enumerate(found)]


def receiver_table(
    topology: Topology, tree: SpanningTree, labels: ReceiverLabels, switch: str
) -> tuple[Flow, ...]:
    """The entries of one switch, last table first: made in this order, a packet is handed over when all is there."""
    ports = labelled_ports(topology, tree, switch)
    return tuple(flow for number in range(len(labels.sets)) for flow in _chain(labels, number, ports))


def receiver_tables(
    topology: Topology, tree: SpanningTree, labels: ReceiverLabels
) -> dict[str, tuple[Flow, ...]]:
    """The entries of all switches."""
    return {switch: receiver_table(topology, tree, labels, switch) for switch in topology.switches}


def _chain(labels: ReceiverLabels, number: int, ports: list[LabelledPort]) -> Iterator[Flow]:
    """The entries for one set: a packet passes the tables of those ports that some of its hosts are behind."""
    members = set(labels.sets[number])
    ours = [port for port in ports if port.hosts & members]
    whole = labels.any_of(number)
    for each, after in reversed([*pairwise([*ours, None])]):
        assert each is not None
        onward = after.table if after is not None else None
        nobody = labels.none_of(number, each.hosts & members)
        yield Flow(nobody, PASS, (), table=each.table, onward=onward)
        yield Flow(whole, SEND, (Output(each.port),), table=each.table, onward=onward)
    if ours:
        yield Flow(whole, HAND_OVER, (), table=CONTENT_TABLE, onward=ours[0].table)
