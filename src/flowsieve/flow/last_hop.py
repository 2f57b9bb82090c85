"""The last hop of events: at each port to a host, they are readdressed to the host's own group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from flowsieve.flow.entry import Deliver, Flow
from flowsieve.header.host_groups import host_addresses
from flowsieve.network.topology import Topology


def deliveries_of(topology: Topology, family: int) -> Mapping[str, Mapping[int, Deliver]]:
    """For each switch of a network, what is done at its ports to hosts."""
    addresses = host_addresses(topology)
    found: dict[str, dict[int, Deliver]] = {switch: {} for switch in topology.switches}
    for host, switch in topology.hosts.items():
        port = topology.port(switch, host)
        found[switch][port] = Deliver(port, *addresses[host].events(family))
    return found


def readdressed(entry: Flow, deliveries: Mapping[int, Deliver], owner: int) -> Flow:
    """An entry of an owner that readdresses what it sends to hosts."""
    actions = tuple(deliveries.get(action.port, action) for action in entry.actions)
    return replace(entry, actions=actions, owner=owner)
