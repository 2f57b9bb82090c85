"""The last hop of events in a lab: at each port to a host, they are readdressed to the host's own group."""

from __future__ import annotations

from collections.abc import Mapping

from flowsieve.flow.entry import Deliver
from flowsieve.lab.lab import Lab


def deliveries(lab: Lab, family: int) -> Mapping[str, Mapping[int, Deliver]]:
    """For each switch, what is done at its ports to hosts."""
    topology = lab.topology
    found: dict[str, dict[int, Deliver]] = {switch: {} for switch in topology.switches}
    for host, switch in topology.hosts.items():
        port = topology.port(switch, host)
        found[switch][port] = Deliver(port, *lab.addresses(host).events(family))
    return found
