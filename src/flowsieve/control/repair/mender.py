"""The trees follow the cabling: what ports report makes links that are down, and those are done without.

An edge that has died is fenced before another takes its place, a link that comes and goes is left out until it is
stable, and a fence is opened once the link is up and both of its ends have acknowledged tables that fit.

What keeps it right, also across restarts: whatever a table sends over, known or not, is an edge of its tree as it is
now, or fenced. So an edge leaves the trees only when its fence is sure, and a fence is opened only when both ends have
acknowledged tables for the trees as they are, to this controller. A dead edge that cannot be fenced stays in the trees
until it can; the others are mended meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from flowsieve.control.core import Core
from flowsieve.control.memory.journal import Rewired
from flowsieve.control.repair.cabling import Cabling
from flowsieve.control.repair.damping import Damping, DampingSettings, dispensable
from flowsieve.control.repair.failover import Failover
from flowsieve.control.repair.fences import Fences, link_name
from flowsieve.control.repair.link_log import LinkLog
from flowsieve.control.state import Outcome
from flowsieve.control.switches.fleet import Fleet
from flowsieve.errors import JournalError, Refused, SwitchError
from flowsieve.network.mend import Edge, tree_edges
from flowsieve.network.tree import TreeMap

log = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS = 0.05  # before what could not be done is tried again; it doubles
LONGEST_PAUSE_SECONDS = 3.2
FENCING_SECONDS = (
    0.25  # for which fences are waited for together, before the trees are mended with those there are
)


@dataclass(frozen=True, slots=True)
class _Todo:
    """The links to do without, of them the edges of trees, the fences that are sure, and those to be opened."""

    down: frozenset[Edge]
    dead: frozenset[Edge]
    sure: frozenset[Edge]
    fit: frozenset[Edge]


class Mender:
    """Hears of ports with `told`, and has the trees changed: that is written down, then done.

    `blocked` are the edges of trees that carry nothing, `whole` says that there is none and no link is left to follow.
    """

    def __init__(
        self, core: Core, fleet: Fleet, failover: Failover, damping: DampingSettings | None = None
    ) -> None:
        state = core.state
        self.fences = Fences(state.topology, core.switches, fleet.reachable, sure=state.fenced)
        self.blocked: frozenset[Edge] = frozenset()
        self.whole = True
        self._topology = state.topology
        self._cabling = Cabling(state.topology, state.down)
        self._damping = Damping(damping) if damping is not None else None
        self._core = core
        self._fleet = fleet
        self._failover = failover
        self._trees, self._of_trees = state.trees, tree_edges(state.trees)
        self._news: dict[str, dict[int, bool]] = {}  # of ports, since a switch connected
        self._recheck: asyncio.TimerHandle | None = None
        self._troubled_at: float | None = None  # since when the trees do not follow the cabling
        self._work = asyncio.Event()  # there is something to do
        self._left: _Todo | None = None  # what could not be done, until it is tried again
        self._again: asyncio.TimerHandle | None = None
        self._pause = FIRST_PAUSE_SECONDS
        self._writing = (
            False  # trees that are on their way into the journal come into force, whatever is told meanwhile
        )
        self._told: str | None = None  # why something could not be done
        self._unfitting = -2  # before which turn of the scribe tables on other trees did not fit
        self._eased = asyncio.Event()  # what is blocked, closed or a tree is not what it was; replaced then
        self._fencing: dict[Edge, str] = {}  # the edges that are being fenced, or could not be, and why
        self._fenced = asyncio.Event()  # of one of them there is news
        self._opening: set[Edge] = set()  # whose ends are waited for
        self._fit: dict[Edge, TreeMap] = {}  # fences whose ends have both followed, on these trees
        self._spare: set[Edge] = set()  # fences to be opened though the link is down
        self._log = LinkLog()
        failover.tell(self._check)

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
        self._left, self._pause = None, FIRST_PAUSE_SECONDS  # what waited for it need not wait any longer
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

    async def eased(self) -> None:
        """Wait until the trees, or the links that carry nothing, are others than now."""
        await self._eased.wait()

    async def release(self, edge: Edge) -> bool:
        """Have the fence of a link that no tree has opened, though the link may be down; False if a tree has it."""
        self._spare.add(edge)
        try:
            await self._followed(edge)
            self._check()
            while edge in self.fences.closed and edge not in self._edges:
                await self.eased()
        finally:
            self._spare.discard(edge)
        return edge not in self._edges

    async def run(self) -> None:
        """Follow the cabling until cancelled."""
        try:
            while True:
                await self._work.wait()
                self._work.clear()
                self._left = self._todo()  # whatever comes to it meanwhile is done at once
                why = await self._mend()
                if why is not None and why != self._told:
                    log.warning("%s", why)
                self._told = why
                self._left = self._todo()
                if self._left is not None:
                    self._try_again()
                else:
                    self._pause = FIRST_PAUSE_SECONDS
                self._check()
        finally:
            for timer in (self._recheck, self._again):
                if timer is not None:
                    timer.cancel()

    # What there is to do.

    @property
    def _down(self) -> frozenset[Edge]:
        return self._cabling.down | self.suppressed

    @property
    def _silent(self) -> frozenset[Edge]:
        """The links to do without that nothing bridges; one that comes and goes is not worth a bridge."""
        down = self._down
        return down - self._failover.bridged(down - self.suppressed - self.fences.closed)

    @property
    def _cut(self) -> frozenset[Edge]:
        """Those of them that are to be mended: not while it is yet to be heard whether they are bridged."""
        return self._silent - (self._failover.awaited - self.suppressed)

    @property
    def _edges(self) -> frozenset[Edge]:
        """The links that some tree has."""
        trees = self._core.state.trees
        if trees is not self._trees:
            self._trees, self._of_trees = trees, tree_edges(trees)
        return self._of_trees

    def _tell(self, switch: str, ports: Mapping[int, bool]) -> None:
        before = self._cabling.down
        for port, up in ports.items():
            self._cabling.tell(switch, port, up)
        if self._damping is not None:
            for edge in before ^ self._cabling.down:
                self._damping.tell(edge, edge in before, _now())
        self._check()

    def _check(self) -> None:
        """See whether the trees have to follow, what carries nothing until they do, and which fences may be opened."""
        self._log.tell(self._topology, self._cabling.down, self.suppressed)
        self._look_again()
        state, down, before = self._core.state, self._down, self._trees
        self._failover.see(down, self.fences.closed)
        blocked = (self._silent | self.fences.closed | self.fences.closing) & self._edges
        busy = (
            self._writing or "" in self._fencing.values()
        )  # what it is at comes about, whatever is told meanwhile
        whole = not blocked and down == state.down and not busy
        if down != state.down and self._troubled_at is None:
            self._troubled_at = _now()
        if (blocked, whole) != (self.blocked, self.whole) or state.trees is not before or self._spare:
            self.blocked, self.whole = blocked, whole
            self._eased.set()
            self._eased = asyncio.Event()
        for edge in self.fences.sure - (down - self._spare) - self._opening:
            self._opening.add(edge)
            self._core.tasks.start(self._wait_for_ends(edge))
        todo = self._todo()
        if todo is not None and todo != self._left:
            self._work.set()

    def _todo(self) -> _Todo | None:
        state, down, sure = self._core.state, self._down, self.fences.sure
        for edge, trees in list(self._fit.items()):
            if trees is not state.trees or edge not in sure or edge in down - self._spare:
                del self._fit[edge]
                self._opening.discard(edge)
        todo = _Todo(down, self._cut & self._edges, sure, frozenset(self._fit))
        return todo if todo.dead or todo.fit or (down, sure) != (state.down, state.fenced) else None

    def _look_again(self) -> None:
        """Look at the cabling again when a link that was flapping has been stable for long enough."""
        if self._recheck is not None:
            self._recheck.cancel()
        at = self._damping.next_change(_now()) if self._damping is not None else None
        self._recheck = self._core.tasks.call_at(at, self._check) if at is not None else None

    def _try_again(self) -> None:
        """Try again what could not be done, later and later."""

        def again() -> None:
            self._left = None
            self._check()

        if self._again is not None:
            self._again.cancel()
        self._again = self._core.tasks.call_at(_now() + self._pause, again)
        self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)

    # Mending.

    async def _mend(self) -> str | None:
        """Fence the edges that have died, then have the trees do without those that are; why not all, if so."""
        await self._fence()
        todo = self._todo()
        if todo is None:
            return None
        why = await self._follow(todo)
        stuck = (self._cut & self._edges) - self.fences.sure
        if why is not None or not stuck:
            return why
        reasons = sorted(reason for edge in stuck if (reason := self._fencing.get(edge)))  # or it is at it
        return (
            f"links that are down stay in the trees until they are fenced: {'; '.join(reasons)}"
            if reasons
            else None
        )

    async def _follow(self, todo: _Todo) -> str | None:
        """Have the trees follow, and fences opened that may be: it is written down, then done; why not, if so."""
        core, state, fenced = self._core, self._core.state, todo.sure - todo.fit
        before = state.trees, state.down
        another = (
            core.scribe.turns > self._unfitting + 1
        )  # something changed since, which may make tables fit
        if (todo.down, fenced) == (state.down, state.fenced) and not (todo.dead & fenced and another):
            self._release(todo.fit)
            return None
        self._writing = True
        self._check()
        try:
            outcome = await core.scribe.write(
                Rewired(todo.down, fenced), lambda: self._rewire(todo, fenced), urgent=True, sure=True
            )
        except JournalError as error:
            return f"the trees stay as they are, since that cannot be written down: {error}"
        finally:
            self._writing = False
        if outcome.unmended is not None:
            return f"the trees stay as they are: on others the tables would not fit: {outcome.unmended}"
        if before == (core.state.trees, todo.down):
            return None
        over = (todo.down & self._edges) - self._silent
        log.info(
            "the trees follow the cabling; links that are down: %d, bridged by detours: %d",
            len(todo.down),
            len(over),
        )
        if self._troubled_at is not None and (core.state.trees is not before[0] or not todo.dead):
            core.watcher.mended(_now() - self._troubled_at)
            self._troubled_at = None
        return None

    def _rewire(self, todo: _Todo, fenced: frozenset[Edge]) -> Outcome:
        self._release(todo.fit)
        outcome = self._core.state.rewire(todo.down, fenced)
        if outcome.unmended is not None:
            self._unfitting = self._core.scribe.turns
        # The longest batch first: the others are made while its switch is at it.
        self._fleet.ask(dict(sorted(outcome.changes.items(), key=lambda each: -len(each[1]))))
        return outcome

    def _release(self, edges: frozenset[Edge]) -> None:
        for edge in edges:
            self.fences.release(edge)
            self._core.tasks.start(self._open(edge))

    async def _fence(self) -> None:
        """Have the edges fenced that have died; returns when it is known of all, or of some and time is up."""
        dead = (self._cut & self._edges) - self.fences.sure
        for edge in dead:
            if self._fencing.get(edge) != "":
                self._fencing[edge] = ""
                self._core.tasks.start(self._close(edge))
        self._check()
        with suppress(TimeoutError):
            async with asyncio.timeout(FENCING_SECONDS):
                while any(self._fencing.get(edge) == "" for edge in dead - self.fences.sure):
                    self._fenced.clear()
                    await self._fenced.wait()

    async def _close(self, edge: Edge) -> None:
        try:
            await self.fences.close(edge, self._hear_of_fence)
            self._fencing.pop(edge, None)
        except SwitchError as error:
            self._fencing[edge] = str(error)
        self._hear_of_fence()

    def _hear_of_fence(self) -> None:
        self._fenced.set()
        self._check()

    # Opening.

    async def _wait_for_ends(self, edge: Edge) -> None:
        """A fence may be opened once both ends have followed; the journal hears of it first."""
        pauses = _Pauses(f"the fence of {link_name(edge)}")
        while edge in self.fences.sure and edge not in self._down - self._spare:
            try:
                self._fit[edge] = await self._followed(edge)
                break
            except (SwitchError, Refused) as error:
                await pauses.after(error)
        else:
            self._opening.discard(edge)
        self._check()

    async def _followed(self, edge: Edge) -> TreeMap:
        """Wait until both ends have acknowledged tables for the trees as they are; returns these."""
        while True:
            trees = self._core.state.trees
            await self._fleet.caught_up(sorted(edge))
            if trees is self._core.state.trees:
                return trees

    async def _open(self, edge: Edge) -> None:
        """Take a fence down that was released; as long as that fails, the link carries nothing."""
        pauses = _Pauses(f"the fence of {link_name(edge)}")
        while True:
            try:
                await self.fences.open(edge)
                break
            except SwitchError as error:
                await pauses.after(error)
        self._check()


class _Pauses:
    """Longer and longer ones before something is tried again; why it stays as it is, is logged once."""

    def __init__(self, what: str) -> None:
        self._what, self._told, self._seconds = what, "", FIRST_PAUSE_SECONDS

    async def after(self, error: Exception) -> None:
        if str(error) != self._told:
            self._told = str(error)
            log.warning("%s stays: %s", self._what, self._told)
        await asyncio.sleep(self._seconds)
        self._seconds = min(2 * self._seconds, LONGEST_PAUSE_SECONDS)


def _now() -> float:
    return asyncio.get_running_loop().time()
