"""Dead links are fenced before others take their place: a switch that lost its controller still forwards.

A fence is a port that neither receives nor forwards. One end of a link will do. It is opened again when the link is
up and both ends have acknowledged tables that send over it only what the tree wants there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from flowsieve.errors import SwitchError
from flowsieve.network.mend import Edge, edges_of
from flowsieve.network.topology import Topology
from flowsieve.southbound.fabric import LiveSwitches


class Fences:
    """The links that are closed, or should be; `reachable` are the switches that can be asked at this moment."""

    def __init__(
        self,
        topology: Topology,
        switches: LiveSwitches,
        reachable: Collection[str],
        closed: Collection[Edge] = (),
    ) -> None:
        self._topology, self._edges = topology, edges_of(topology)
        self._switches = switches
        self._reachable = reachable
        self._closed = set(closed)
        self._turn = asyncio.Lock()

    @property
    def closed(self) -> frozenset[Edge]:
        return frozenset(self._closed)

    def grow(self, topology: Topology) -> None:
        """Go over to another topology; of links that it does not have, nothing is known any more."""
        self._topology, self._edges = topology, edges_of(topology)
        self._closed &= self._edges

    async def close(self, edge: Edge) -> None:
        """Fence a link at every end that can be reached; returns when the first has acknowledged it."""
        async with self._turn:
            if edge in self._closed or edge not in self._edges:
                return
            ends = [end for end in sorted(edge) if end in self._reachable]
            if not ends:
                link = " - ".join(sorted(edge))
                raise SwitchError(f"neither end of the link {link} can be reached to fence it")
            for first in asyncio.as_completed([self._tried(end, edge) for end in ends]):
                trouble = await first
                if trouble is None:
                    self._closed.add(edge)
                    return
            assert trouble is not None
            raise trouble

    async def open(self, edge: Edge) -> None:
        """Take the fence of a link down, at both ends."""
        async with self._turn:
            for end in sorted(edge) if edge in self._edges else ():
                await self._set(end, edge, False)
            self._closed.discard(edge)

    async def renew(self, switch: str) -> None:
        """Set the fences of a switch right that has connected, or got a port: they may be lost, or be from before."""
        there = await self._switches.fences(switch)
        for other in self._topology.linked(switch):
            port, edge = self._topology.port(switch, other), frozenset((switch, other))
            if (edge in self._closed) != (port in there):
                async with self._turn:  # it may have been opened meanwhile
                    if edge in self._edges:
                        await self._set(switch, edge, edge in self._closed)

    async def _tried(self, end: str, edge: Edge) -> SwitchError | None:
        """Close one end; why that failed, if it did."""
        try:
            await self._set(end, edge, True)
        except SwitchError as error:
            return error
        return None

    async def _set(self, end: str, edge: Edge, closed: bool) -> None:
        (other,) = edge - {end}
        await self._switches.fence(end, self._topology.port(end, other), closed)
