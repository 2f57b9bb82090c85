"""Whether detours bridge dead links, and how many entries they may take: as configuration and room say."""

from __future__ import annotations

from flowsieve.control.core import DetourRoom
from flowsieve.flow.detours import protections, ways_around
from flowsieve.network.mend import edges_of
from flowsieve.network.topology import Topology
from flowsieve.serving.guarding import SHARE, Choice


def detour_room(choice: Choice, capacity: int | None) -> DetourRoom:
    """What says how many entries of a switch may be for detours: 0 for none, None for any number.

    Where tables have a capacity, no more than a share of it, and no more than ways around all links would take; it is
    asked often, and networks seldom grow.
    """
    known: list[tuple[Topology, int | None]] = []

    def room(topology: Topology) -> int | None:
        if not known or known[0][0] is not topology:
            known[:] = [(topology, _room(choice, topology, capacity))]
        return known[0][1]

    return room


def _room(choice: Choice, topology: Topology, capacity: int | None) -> int | None:
    if choice is False:
        return 0
    if capacity is None:
        return None
    ways = ways_around(topology, edges_of(topology), ())
    most = max((each.entries for each in protections(topology, ways.values()).values()), default=0)
    return most if choice is True else min(most, capacity // SHARE)
