"""A topology as a JSON value, for files that outlive the process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flowsieve.network.topology import EndpointKind, Link, Topology


def topology_to_json(topology: Topology) -> dict[str, Any]:
    """All that makes a topology, in its order.

    >>> network = Topology.make([("s1", "s2")], {"h1": "s1"}, numbers={"s1": {"s2": 4, "h1": 7}})
    >>> topology_from_json(topology_to_json(network)) == network
    True
    """
    return {
        "switches": list(topology.switches),
        "links": [[link.a, link.b, link.latency_ms] for link in topology.links],
        "hosts": [[name, switch] for name, switch in topology.attached.items()],
        "numbers": {switch: dict(row) for switch, row in topology.numbers.items()},
        "kinds": {name: kind.value for name, kind in topology.kinds.items()},
    }


def topology_from_json(data: Mapping[str, Any]) -> Topology:
    """The topology that `topology_to_json` wrote down; what is none raises a BadTopology or a Python error."""
    links = tuple(Link(a, b, latency) for a, b, latency in data["links"])
    kinds = {name: EndpointKind(kind) for name, kind in data.get("kinds", {}).items()}
    return Topology(tuple(data["switches"]), links, dict(data["hosts"]), data["numbers"], kinds)
