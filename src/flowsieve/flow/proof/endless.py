"""Where packets go round without end, whatever port they come in on."""

from __future__ import annotations

from collections.abc import Mapping

from flowsieve.flow.entry import Flow
from flowsieve.flow.label_view import Label
from flowsieve.flow.table_chain import met
from flowsieve.network.topology import Topology


def endless(
    topology: Topology, tables: Mapping[str, tuple[Flow, ...]], family: int, label: Label
) -> set[str]:
    """The switches that a packet comes to without end, wherever it starts."""
    arrivals = {(switch, near) for switch in topology.switches for near in topology.linked(switch)}
    out = {
        switch: {
            near[port - 1]
            for flow in met(tables.get(switch, ()), family, label.destination, label.source)
            for port in flow.ports
            if 1 <= port <= len(near := topology.neighbours(switch))
        }
        for switch in topology.switches
    }
    while True:
        fed = {(to, switch) for switch, came in arrivals for to in out[switch] if to != came and to in out}
        if fed & arrivals == arrivals:
            return {switch for switch, _ in arrivals}
        arrivals &= fed
