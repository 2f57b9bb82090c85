"""Which links are up, by what the switches at both ends say."""

from __future__ import annotations

from collections.abc import Collection
from itertools import permutations

from flowsieve.network.mend import Edge, edges_of
from flowsieve.network.topology import Topology


class Cabling:
    """A link is down once either end has said so, until both say otherwise; without a word it is up.

    >>> from flowsieve.network.generators import line
    >>> cabling = Cabling(line(2))
    >>> cabling.tell("s0", 1, up=False)
    >>> [sorted(edge) for edge in cabling.down]
    [['s0', 's1']]
    """

    def __init__(self, topology: Topology, down: Collection[Edge] = ()) -> None:
        self._topology = topology
        # The switch that says so, and its neighbour; `down` were so when somebody looked last.
        self._dead = {pair for edge in down for pair in permutations(edge)}

    @property
    def down(self) -> frozenset[Edge]:
        return frozenset(frozenset(pair) for pair in self._dead)

    def grow(self, topology: Topology) -> None:
        """Go over to another topology; what was reported of links that it still has stays."""
        there = edges_of(topology)
        self._topology = topology
        self._dead = {pair for pair in self._dead if frozenset(pair) in there}

    def tell(self, switch: str, port: int, up: bool) -> None:
        """A switch says how a port is; ports to hosts and ports of no link make no difference."""
        linked = self._topology.linked(switch)
        if 1 <= port <= len(linked):
            pair = switch, linked[port - 1]
            if up:
                self._dead.discard(pair)
            else:
                self._dead.add(pair)
