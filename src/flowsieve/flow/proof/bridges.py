"""What detours do to a network: which dead links they stand in for, and whether one leads elsewhere.

A packet that goes around a link is to be handled at its far end as if it had come over it, and nowhere else. Then every
proof about the tables holds while a link is dead and bridged as it does while it is up.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

from flowsieve.flow.detours import NOWHERE, emulated, landing
from flowsieve.flow.view import NetworkView
from flowsieve.network.mend import Edge


def cut(view: NetworkView) -> frozenset[Edge]:
    """The links that carry nothing: those that are down and that packets do not get around in both directions."""
    return frozenset(
        edge
        for edge in view.down
        if not all(
            emulated(view.topology, view.protections, near, far, view.down)
            for near, far in permutations(edge)
        )
    )


def misleading(view: NetworkView) -> Iterator[tuple[str, str]]:
    """The detours that end elsewhere than at the far end of their link, by where they begin, and what they do."""
    topology = view.topology
    for near in view.protections:
        for far in topology.linked(near):
            found = landing(topology, view.protections, near, far)
            if found is not None and found != (far, topology.port(far, near)):
                there, port = found
                does = "goes in a circle or to a host" if port == NOWHERE else f"ends at port {port}"
                yield near, f"what goes around the link to {far} {does} at switch {there}"
