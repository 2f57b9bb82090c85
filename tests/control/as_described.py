"""A network, and what discovery finds where all is as described."""

from __future__ import annotations

from flowsieve.control.discovery.findings import Findings, FoundHost, FoundLink, SwitchPort
from flowsieve.network.topology import Topology

NETWORK = Topology.make([("s1", "s2"), ("s2", "s3")], {"ann": "s1", "bob": "s3", "cy": "s3"})


def found(topology: Topology) -> Findings:
    """What discovery finds where all is as described."""

    def place(switch: str, near: str) -> SwitchPort:
        return SwitchPort(switch, topology.number(switch, near))

    links = [FoundLink(place(link.a, link.b), place(link.b, link.a)) for link in topology.links]
    hosts = [
        FoundHost(host, f"02:00:00:00:00:{n:02x}", (topology.endpoint(host).address,), place(switch, host))
        for n, (host, switch) in enumerate(topology.hosts.items())
    ]
    return Findings(topology.switches, tuple(links), (), tuple(hosts))


FOUND = found(NETWORK)
