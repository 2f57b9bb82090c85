"""What detours do to a network: which dead links they stand in for, and whether one leads elsewhere.

A packet that goes around a link is to be handled at its far end as if it had come over it, and nowhere else. Then every
proof about the tables holds while a link is dead and bridged as it does while it is up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations

from flowsieve.flow.detours import NOWHERE, bridged, landing, right
from flowsieve.flow.others import NOBODY_ELSE
from flowsieve.flow.view import NetworkView


def with_bridges(view: NetworkView) -> NetworkView:
    """The network as if dead links were up that packets get around in both directions, however their ports are set.

    No way leads over a link that is down, or whose ports do not carry all.
    """
    topology = view.topology
    shut = {
        frozenset((switch, near))
        for switch, others in view.others.items()
        for port in others.ports
        if (near := topology.neighbour(switch, port)) not in topology.attached
    }
    over = bridged(topology, view.protections, view.down, shut.union(view.down))
    if not over:
        return view
    others = dict(view.others)
    for near, far in (ends for edge in over for ends in permutations(edge)):
        there = others.get(near, NOBODY_ELSE)
        ports = {port: each for port, each in there.ports.items() if port != topology.port(near, far)}
        others[near] = replace(there, ports=ports)
    return replace(view, down=frozenset(view.down) - over.keys(), others=others)


def misleading(view: NetworkView) -> Iterator[tuple[str, str]]:
    """The detours that end elsewhere than at the far end of their link, by where they begin, and what they do."""
    topology = view.topology
    for near in view.protections:
        for far in topology.linked(near):
            found = landing(topology, view.protections, near, far)
            if found is not None and not right(topology, found, near, far):
                circles = found.port == NOWHERE
                does = "goes in a circle or to a host" if circles else f"ends at port {found.port}"
                yield near, f"what goes around the link to {far} {does} at switch {found.switch}"
