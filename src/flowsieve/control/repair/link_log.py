"""Tells an operator which links go down and come back, and which are left out since they come and go."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from flowsieve.network.mend import Edge, edges_of
from flowsieve.network.topology import Topology

log = logging.getLogger(__name__)


class LinkLog:
    """`tell` it how the links are, whenever that may have changed; it logs what is new."""

    def __init__(self) -> None:
        self._down: frozenset[Edge] = frozenset()
        self._left_out: frozenset[Edge] = frozenset()

    def tell(self, topology: Topology, down: frozenset[Edge], left_out: frozenset[Edge]) -> None:
        """These links are down, as the switches at their ends say, and these are left out, down or not."""
        there = edges_of(topology)
        down, left_out = down & there, left_out & there
        for edge in _sorted(down - self._down):
            log.warning("link %s is down", link_text(topology, edge))
        for edge in _sorted((self._down - down) & there):
            log.info("link %s is up again", link_text(topology, edge))
        for edge in _sorted(left_out - self._left_out):
            log.warning(
                "link %s comes and goes, and is left out until it is stable", link_text(topology, edge)
            )
        for edge in _sorted((self._left_out - left_out) & there):
            log.info("link %s is stable, and is used again when it is up", link_text(topology, edge))
        self._down, self._left_out = down, left_out


def link_text(topology: Topology, edge: Edge) -> str:
    """A link by its ends, with the numbers that these switches have for their ports.

    >>> from flowsieve.network.generators import line
    >>> link_text(line(2), frozenset(("s0", "s1")))
    's0 (port 1) - s1 (port 1)'
    """
    a, b = sorted(edge)
    return f"{a} (port {topology.number(a, b)}) - {b} (port {topology.number(b, a)})"


def _sorted(edges: Iterable[Edge]) -> list[Edge]:
    return sorted(edges, key=sorted)
