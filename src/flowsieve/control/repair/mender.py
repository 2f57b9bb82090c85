"""The trees follow the cabling: what ports report makes links that are down, and those are done without.

An edge that has died is fenced before another takes its place, a link that comes and goes is left out until it is
stable, and a fence is opened once the link is up and both of its ends have acknowledged tables that fit.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from flowsieve.control.core import Core
from flowsieve.control.memory.journal import Rewired
from flowsieve.control.repair.cabling import Cabling
from flowsieve.control.repair.damping import Damping, DampingSettings, dispensable
from flowsieve.control.repair.fences import Fences
from flowsieve.control.repair.link_log import LinkLog
from flowsieve.control.state import ControlState
from flowsieve.control.switches.fleet import Fleet
from flowsieve.control.switches.reconciler import RETRY_SECONDS
from flowsieve.errors import Refused, SwitchError
from flowsieve.network.mend import Edge

log = logging.getLogger(__name__)


class Mender:
    """Hears of ports with `told`, and has the trees changed: that is written down, then done."""

    def __init__(self, core: Core, fleet: Fleet, damping: DampingSettings | None = None) -> None:
        topology, down = core.state.topology, core.state.down
        self.fences = Fences(topology, core.switches, fleet.reachable, closed=down)
        self.whole = asyncio.Event()  # the trees follow the cabling, and no edge of them is fenced
        self.whole.set()
        self._topology = topology
        self._cabling = Cabling(topology, down)
        self._damping = Damping(damping) if damping is not None else None
        self._core = core
        self._fleet = fleet
        self._news: dict[str, dict[int, bool]] = {}  # of ports, since a switch connected
        self._recheck: asyncio.TimerHandle | None = None
        self._troubled_at: float | None = None  # since when the trees do not follow the cabling
        self._recable = asyncio.Event()  # links came or went, or a fence may be opened
        self._opening: set[Edge] = set()
        self._log = LinkLog()

    def grow(self) -> None:
        """Go over to the topology that the state has now; links that were not down before are up."""
        self._topology = self._core.state.topology
        self.fences.grow(self._topology)
        self._cabling.grow(self._topology)
        self._news.clear()  # in ports that count otherwise now
        self._check()

    def connected(self, switch: str) -> None:
        """A switch has connected: only what its ports report from now on counts beside what is read of them."""
        self._news[switch] = {}

    async def read(self, switch: str) -> Mapping[int, bool]:
        """See to the ports and fences of a switch that has connected; how its ports are, to be `told` later."""
        ports = await self._core.switches.ports(switch)
        await self.fences.renew(switch)
        every = range(1, len(self._topology.linked(switch)) + 1)
        return dict.fromkeys(every, False) | dict(ports)

    def told(self, switch: str, ports: Mapping[int, bool]) -> None:
        """A switch whose ports were read is at work; what it reported meanwhile is newer."""
        self._tell(switch, {**ports, **self._news.get(switch, {})})

    def changed(self, switch: str, port: int, up: bool) -> None:
        """A switch reports that a port came up or went down."""
        self._news.setdefault(switch, {})[port] = up
        self._tell(switch, {port: up})

    @property
    def suppressed(self) -> frozenset[Edge]:
        """The links that are left out because they come and go, down or not."""
        flapping = self._damping.suppressed(_now()) if self._damping is not None else None
        return dispensable(self._topology, self._cabling.down, flapping) if flapping else frozenset()

    async def run(self) -> None:
        """Follow the cabling until cancelled."""
        try:
            while True:
                await self._recable.wait()
                self._recable.clear()
                try:
                    await self._mend(self._down)
                except SwitchError as error:
                    log.warning("mending waits: %s", error)
                    await asyncio.sleep(RETRY_SECONDS)
                self._check()
        finally:
            if self._recheck is not None:
                self._recheck.cancel()

    @property
    def _down(self) -> frozenset[Edge]:
        return self._cabling.down | self.suppressed

    def _tell(self, switch: str, ports: Mapping[int, bool]) -> None:
        before = self._cabling.down
        for port, up in ports.items():
            self._cabling.tell(switch, port, up)
        if self._damping is not None:
            for edge in before ^ self._cabling.down:
                self._damping.tell(edge, edge in before, _now())
        self._check()

    def _check(self) -> None:
        """See whether the trees have to follow, and whether requests have to wait for it."""
        closed, down, state = self.fences.closed, self._down, self._core.state
        self._log.tell(self._topology, self._cabling.down, self.suppressed)
        self._look_again()
        if down != state.down:
            self._troubled_at = _now() if self._troubled_at is None else self._troubled_at
            self._recable.set()
            self.whole.clear()
        elif closed and not closed.isdisjoint(_edges(state)):
            self.whole.clear()
        else:
            self.whole.set()
        for edge in closed - down - self._opening:
            self._opening.add(edge)
            self._core.tasks.start(self._open(edge))

    def _look_again(self) -> None:
        """Look at the cabling again when a link that was flapping has been stable for long enough."""
        if self._recheck is not None:
            self._recheck.cancel()
        at = self._damping.next_change(_now()) if self._damping is not None else None
        self._recheck = self._core.tasks.call_at(at, self._check) if at is not None else None

    async def _mend(self, down: frozenset[Edge]) -> None:
        """Fence the edges that have died, then have the trees do without them."""
        state = self._core.state
        if down == state.down:
            return
        await asyncio.gather(*(self.fences.close(edge) for edge in down & _edges(state)))
        try:
            await self._rewire(down)
        except Refused as reason:
            log.error("tables stay as they are: on the links that are left they would not fit: %s", reason)
            return
        log.info("the trees are mended; links that are down: %d", len(down))
        if self._troubled_at is not None:
            self._core.watcher.mended(_now() - self._troubled_at)
        self._troubled_at = None

    async def _rewire(self, down: frozenset[Edge]) -> None:
        core = self._core
        await core.scribe.write(
            Rewired(down), lambda: self._fleet.ask(core.state.rewire(down).changes), urgent=True
        )

    async def _open(self, edge: Edge) -> None:
        """Open the fence of a link that is up again, once both ends have followed."""
        try:
            await asyncio.gather(*(self._fleet[end].reached() for end in edge))
            if edge not in self._down:
                await self.fences.open(edge)
        except (SwitchError, Refused) as error:
            log.warning("the fence of %s stays: %s", " - ".join(sorted(edge)), error)
            await asyncio.sleep(RETRY_SECONDS)
        finally:
            self._opening.discard(edge)
        self._check()


def _edges(state: ControlState) -> frozenset[Edge]:
    return frozenset(frozenset(edge) for tree in state.trees.trees for edge in tree.edges)


def _now() -> float:
    return asyncio.get_running_loop().time()
