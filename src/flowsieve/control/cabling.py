"""Which links are up, by what the switches at both ends say."""

from __future__ import annotations

from collections.abc import Mapping

from flowsieve.network.mend import Edge
from flowsieve.network.topology import Topology


class Cabling:
    """A link is down once either end has said so, until both say otherwise; without a word it is up.

    >>> from flowsieve.network.generators import line
    >>> cabling = Cabling(line(2))
    >>> cabling.tell("s0", 1, up=False)
    >>> [sorted(edge) for edge in cabling.down]
    [['s0', 's1']]
    """

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._dead: set[tuple[str, str]] = set()  # the switch that says so, and its neighbour

    @property
    def down(self) -> frozenset[Edge]:
        return frozenset(frozenset(pair) for pair in self._dead)

    def tell(self, switch: str, port: int, up: bool) -> None:
        """A switch says how a port is; ports to hosts and ports of no link make no difference."""
        linked = self._topology.linked(switch)
        if 1 <= port <= len(linked):
            pair = switch, linked[port - 1]
            if up:
                self._dead.discard(pair)
            else:
                self._dead.add(pair)

    def tell_all(self, switch: str, ports: Mapping[int, bool]) -> None:
        """A switch says how all its ports are; one that it does not name is not there."""
        for port in range(1, len(self._topology.linked(switch)) + 1):
            self.tell(switch, port, ports.get(port, False))
