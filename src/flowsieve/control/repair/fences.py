"""Dead links are fenced before others take their place: a switch that lost its controller still forwards.

A fence is a port that neither receives nor forwards. One end of a link will do. It is opened again when the link is
up and both ends have acknowledged tables that send over it only what the tree wants there; who decides that is the
mender, and it writes it down first. So after a restart a link is fenced if the journal says so, and then it is fenced
again where the fence was lost; or if a switch says so that has connected, and then it is opened like any other.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Collection

from flowsieve.errors import SwitchError
from flowsieve.network.mend import Edge, edges_of
from flowsieve.network.topology import Topology
from flowsieve.southbound.fabric import LiveSwitches


class Fences:
    """The links that are closed, or may be; `reachable` are the switches that can be asked at this moment.

    Of those that are `closed`, the trees may do without the ones that are `sure`: an end has acknowledged that it is
    closed, and was not asked to open since. The others are to be opened, which not both ends have acknowledged yet.
    """

    def __init__(
        self,
        topology: Topology,
        switches: LiveSwitches,
        reachable: Collection[str],
        sure: Collection[Edge] = (),
    ) -> None:
        self._topology, self._edges = topology, edges_of(topology)
        self._switches = switches
        self._reachable = reachable
        self._sure = set(sure)
        self._ajar: dict[Edge, set[str]] = {}  # the ends that have not acknowledged to be open
        self._closing: set[Edge] = set()  # those that a switch was asked to close, and did not answer yet
        self._turns: defaultdict[Edge, asyncio.Lock] = defaultdict(asyncio.Lock)

    @property
    def closed(self) -> frozenset[Edge]:
        return frozenset(self._sure | self._ajar.keys())

    @property
    def closing(self) -> frozenset[Edge]:
        """The links that are being closed: a switch may have done it already."""
        return frozenset(self._closing)

    @property
    def sure(self) -> frozenset[Edge]:
        return frozenset(self._sure)

    def grow(self, topology: Topology) -> None:
        """Go over to another topology; of links that it does not have, nothing is known any more."""
        self._topology, self._edges = topology, edges_of(topology)
        self._sure &= self._edges
        self._ajar = {edge: ends for edge, ends in self._ajar.items() if edge in self._edges}

    async def close(self, edge: Edge, told: Callable[[], None]) -> None:
        """Fence a link at every end that can be reached; `told` hears as soon as it is sure."""
        async with self._turns[edge]:
            if edge in self._sure or edge not in self._edges:
                return
            ends = [end for end in sorted(edge) if end in self._reachable]
            if not ends:
                raise SwitchError(f"neither end of the link {link_name(edge)} can be reached to fence it")
            self._closing.add(edge)
            try:
                troubles = await asyncio.gather(*(self._shut(end, edge, told) for end in ends))
            finally:
                self._closing.discard(edge)
            for trouble in troubles:
                if trouble is not None and edge not in self._sure:
                    raise trouble

    def release(self, edge: Edge) -> None:
        """A link is to be opened: nothing may build on its fence from now on."""
        if edge in self._sure:
            self._sure.discard(edge)
            self._ajar[edge] = set(edge)

    async def open(self, edge: Edge) -> None:
        """Take the fence of a link down that was released, at both ends."""
        async with self._turns[edge]:
            left = sorted(self._ajar.get(edge, ()))
            troubles = await asyncio.gather(*(self._unshut(end, edge) for end in left))
            for trouble in troubles:
                if trouble is not None:
                    raise trouble

    async def renew(self, switch: str) -> None:
        """Set the fences of a switch right that has connected, or got a port; those that were not known are now."""
        there = await self._switches.fences(switch)
        for other in self._topology.linked(switch):
            port, edge = self._topology.port(switch, other), frozenset((switch, other))
            if edge in self._ajar or (edge in self._sure) != (port in there):
                async with self._turns[edge]:
                    if edge in self._edges:
                        await self._set_right(switch, edge)

    async def _set_right(self, switch: str, edge: Edge) -> None:
        shut = self._port(switch, edge) in await self._switches.fences(switch)  # it may be another by now
        if edge in self._sure:
            if not shut:
                await self._set(switch, edge, True)
        elif edge in self._ajar:
            if shut:
                await self._set(switch, edge, False)
            self._opened(switch, edge)
        elif shut:
            self._sure.add(edge)

    async def _shut(self, end: str, edge: Edge, told: Callable[[], None]) -> SwitchError | None:
        """Close one end; why that failed, if it did."""
        try:
            await self._set(end, edge, True)
        except SwitchError as error:
            return error
        self._ajar.pop(edge, None)
        if edge in self._edges and edge not in self._sure:
            self._sure.add(edge)
            told()
        return None

    async def _unshut(self, end: str, edge: Edge) -> SwitchError | None:
        """Open one end; why that failed, if it did."""
        try:
            if edge in self._edges:
                await self._set(end, edge, False)
        except SwitchError as error:
            return error
        self._opened(end, edge)
        return None

    def _opened(self, end: str, edge: Edge) -> None:
        left = self._ajar.get(edge)
        if left is not None:
            left.discard(end)
            if not left:
                del self._ajar[edge]

    async def _set(self, end: str, edge: Edge, closed: bool) -> None:
        await self._switches.fence(end, self._port(end, edge), closed)

    def _port(self, end: str, edge: Edge) -> int:
        (other,) = edge - {end}
        return self._topology.port(end, other)


def link_name(edge: Edge) -> str:
    """A link as people call it."""
    return " - ".join(sorted(edge))
