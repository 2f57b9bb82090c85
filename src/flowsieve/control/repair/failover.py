"""Detours around the edges of trees, kept in the switches: they bridge a link that dies before we hear of it.

While packets get around a dead edge in both directions, the trees keep it, and nothing is lost by mending them. Once
that ends, because a link on the way has died as well, the edge is fenced and the trees are mended as ever. A fence
shuts out its link's detours too, at the end where it is: whoever sends around it then sends in vain.

Marked packets must never land anywhere but at the far end of their link. So whatever changes a detour first has the
switch that it begins at stop using it, and lets what is under way pass; then the others follow; then it is used. What
a switch that cannot be asked may still send around, the others pass on as they did.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import permutations

from flowsieve.control.core import Core
from flowsieve.control.switches.fleet import Fleet
from flowsieve.errors import DetoursRefused, SwitchError
from flowsieve.flow.detours import (
    NO_PROTECTION,
    Arrival,
    Path,
    Protection,
    Way,
    bridged,
    emulated,
    mark_of,
    protections,
    ways_around,
)
from flowsieve.network.mend import Edge, tree_edges
from flowsieve.network.tree import TreeMap

log = logging.getLogger(__name__)

DRAIN_SECONDS = 0.05  # for what is under way on a detour that is not used any more
RETRY_SECONDS = 0.2
GRACE_SECONDS = 10.0  # after a start, for switches to connect that may be bridging a link already


class Failover:
    """Keeps detours in the switches that take them; `bridged` says which dead links they stand in for."""

    def __init__(self, core: Core, fleet: Fleet) -> None:
        self.refused: set[str] = set()  # switches that take no detours
        self._core = core
        self._fleet = fleet
        self._changed: Callable[[], None] = lambda: None
        self._paths: dict[Edge, Path] = {}
        self._held: dict[str, Protection] = {}  # what each switch has acknowledged last
        self._known: set[str] = set()  # the switches of which that is certain
        self._unusable: frozenset[Edge] = frozenset()
        self._closed: frozenset[Edge] = frozenset()
        self._trees: TreeMap | None = None
        self._due = asyncio.Event()
        self._at_work = False
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        state = core.state
        # Dead links that were bridged when the last controller went, as far as the journal tells.
        self._awaited = (
            (state.down - state.fenced) & tree_edges(state.trees) if self.on else frozenset[Edge]()
        )

    @property
    def on(self) -> bool:
        """Whether detours are wanted."""
        return self._responsible and self._core.detour_room(self._core.state.topology) != 0

    @property
    def _responsible(self) -> bool:
        """Of several owners of parts of the space, the first sees to the detours of all."""
        return self._core.state.owner.number == 0

    def tell(self, changed: Callable[[], None]) -> None:
        """Have somebody called when `bridged` may be other than before."""
        self._changed = changed

    def see(self, down: frozenset[Edge], closed: frozenset[Edge]) -> None:
        """Take note of the links that are down, and of those that are closed."""
        topology = self._core.state.topology
        for edge in closed:
            for near, far in permutations(edge):
                if near in self._held and near in topology.switches and far in topology.linked(near):
                    self._held[near] = self._held[near].closed_at({topology.port(near, far)})
        now = (self._core.state.trees, down | closed, closed)
        if now != (self._trees, self._unusable, self._closed):
            self._trees, self._unusable, self._closed = now
            self._due.set()

    def bridged(self, down: frozenset[Edge]) -> frozenset[Edge]:
        """Of some dead links, those that packets get around in both directions."""
        return frozenset(self._ways(down))

    @property
    def awaited(self) -> frozenset[Edge]:
        """Links that may be bridged, and of which it is not known yet since the controller has just started."""
        return self._awaited

    @property
    def settled(self) -> bool:
        """Whether every switch that can be asked does about dead links what it should."""
        asked = self._fleet.reachable - self.refused if self._responsible else frozenset[str]()
        return not (self._at_work or self._due.is_set()) and self._known.issuperset(asked)

    @property
    def ways(self) -> dict[Edge, Path]:
        """The ways around links that are in force."""
        return self._ways(self._paths)

    @property
    def held(self) -> Mapping[str, Protection]:
        """What each switch has acknowledged last."""
        return self._held

    async def really_held(self, switches: Iterable[str]) -> dict[str, Protection]:
        """What some switches really do about dead links; of others, what they have acknowledged last."""
        if not self.on:
            return {}
        asked = list(switches)
        found = await asyncio.gather(
            *(self._core.switches.protection(switch, looking=True) for switch in asked)
        )
        return {**self._held, **dict(zip(asked, found, strict=True))}

    def grow(self) -> None:
        """The network has grown, and ports may count otherwise: all has to be read again."""
        self._held.clear()
        self._known.clear()
        self._paths.clear()
        for switch in self._fleet.reachable:
            self.doubt(switch)

    async def greet(self, switch: str) -> None:
        """See what a switch that has connected does about dead links, and have it send to the groups that it should."""
        if not self._responsible:
            return
        async with self._turns[switch]:
            switches, links = self._core.switches, self._links(switch)
            held = await switches.protection(switch)
            if not links:
                held = NO_PROTECTION
            try:
                await switches.protect(switch, replace(held, links=links, family=self._family))
            except DetoursRefused as error:
                self._refuse(error)
                return
            self._held[switch] = replace(held, links=links, family=self._family)
            self._known.add(switch)
        self._awaited = self._still_awaited()
        self._changed()
        self._due.set()

    def doubt(self, switch: str) -> None:
        """What a switch does about dead links has to be read again."""
        self._known.discard(switch)
        self._core.tasks.start(self._read_again(switch))

    def disconnected(self, switch: str) -> None:
        """A switch cannot be asked; it goes on with what it holds."""
        self._known.discard(switch)
        self.refused.discard(switch)

    async def run(self) -> None:
        """Keep the detours right until cancelled."""
        self._core.tasks.call_at(asyncio.get_running_loop().time() + GRACE_SECONDS, self._wait_no_longer)
        while True:
            await self._due.wait()
            self._due.clear()
            self._at_work = True
            await self._set_right()
            self._at_work = False
            self._changed()

    # Which detours.

    @property
    def _family(self) -> int:
        return self._core.encoding.family

    def _ways(self, edges: Iterable[Edge]) -> dict[Edge, Path]:
        return bridged(self._core.state.topology, self._held, edges, self._unusable)

    def _links(self, switch: str) -> frozenset[int]:
        """The ports of a switch that it is to watch."""
        topology = self._core.state.topology
        if not self.on or switch in self.refused:
            return frozenset()
        return frozenset(topology.port(switch, near) for near in topology.linked(switch))

    def _chosen(self) -> dict[Edge, Path]:
        """A way around each edge of a tree; around a dead one just the way that there was."""
        state = self._core.state
        edges = tree_edges(state.trees) - self._closed
        without = {
            frozenset((switch, near)) for switch in self.refused for near in state.topology.linked(switch)
        }
        room = self._core.detour_room(state.topology)
        if room == 0:
            return {}
        # What switches were found to do counts as well: a controller may have been here before.
        known = {**bridged(state.topology, self._held, edges - self._paths.keys()), **self._paths}
        return ways_around(state.topology, edges - without, self._unusable | without, room, known)

    # Having them in the switches.

    async def _set_right(self) -> None:
        topology = self._core.state.topology
        self._paths = self._chosen()
        aims = protections(topology, self._paths.values(), self._family)
        # What these may still send around is left as it is.
        theirs = {
            mark_of(near, far)
            for near in topology.switches
            if near not in self._known
            for far in topology.linked(near)
        }
        unused = {
            switch: replace(held, ways=_same(held.ways, aims[switch].ways))
            for switch, held in self._certain().items()
        }
        if await self._put(unused):
            await asyncio.sleep(DRAIN_SECONDS)
        await self._put(
            {
                switch: replace(
                    held,
                    relays=_passed(held.relays, aims[switch].relays, theirs),
                    landings=_passed(held.landings, aims[switch].landings, theirs),
                )
                for switch, held in self._certain().items()
            }
        )
        used = {}
        for switch, held in self._certain().items():
            with_all = {**self._held, switch: replace(held, ways={**aims[switch].ways, **held.ways})}
            ways = {
                port: way
                for port, way in aims[switch].ways.items()
                if port in held.ways or emulated(topology, with_all, switch, topology.neighbour(switch, port))
            }
            used[switch] = replace(held, ways=ways)
        await self._put(used)

    def _certain(self) -> dict[str, Protection]:
        there = self._core.state.topology.switches
        return {switch: self._held[switch] for switch in there if switch in self._known}

    async def _put(self, wanted: Mapping[str, Protection]) -> bool:
        """Have switches do what they do not yet; says whether there were any."""
        changed = [(switch, each) for switch, each in wanted.items() if self._held.get(switch) != each]
        await asyncio.gather(*(self._ask(switch, each) for switch, each in changed))
        return bool(changed)

    async def _ask(self, switch: str, wanted: Protection) -> None:
        async with self._turns[switch]:
            if switch not in self._known:
                return  # it is about to be read
            try:
                await self._core.switches.protect(switch, wanted)
            except DetoursRefused as error:
                self._refuse(error)
            except SwitchError:
                self.doubt(switch)
            else:
                self._held[switch] = wanted

    async def _read_again(self, switch: str) -> None:
        while (
            self._responsible
            and switch in self._fleet.reachable
            and switch not in self._known
            and switch not in self.refused
        ):
            try:
                await self.greet(switch)
            except SwitchError:
                await asyncio.sleep(RETRY_SECONDS)

    def _refuse(self, error: DetoursRefused) -> None:
        log.warning("%s; links at it are mended by the controller alone until it connects anew", error)
        self.refused.add(error.switch)
        self._known.discard(error.switch)
        self._held.pop(error.switch, None)
        self._due.set()

    # After a start.

    def _still_awaited(self) -> frozenset[Edge]:
        """The dead links of which not all switches that may bridge them were heard."""
        if not self._awaited:
            return self._awaited
        state = self._core.state
        ways = ways_around(state.topology, self._awaited, state.down | self._unusable)
        return frozenset(edge for edge, path in ways.items() if not self._known.issuperset(path))

    def _wait_no_longer(self) -> None:
        self._awaited = frozenset()
        self._changed()


def _same(ways: Mapping[int, Way], others: Mapping[int, Way]) -> dict[int, Way]:
    return {port: way for port, way in ways.items() if others.get(port) == way}


def _passed(
    held: Mapping[Arrival, int], wanted: Mapping[Arrival, int], theirs: set[int]
) -> dict[Arrival, int]:
    """What is to be passed on: as wanted, but with marks that are `theirs` as before."""
    kept = {arrival: port for arrival, port in held.items() if arrival.mark in theirs}
    return kept | {arrival: port for arrival, port in wanted.items() if arrival.mark not in theirs}
