"""A controller for switches that come, fail and come back, and for many requests at a time.

The state decides at once; every switch then follows at its own pace, and a request is acknowledged when the
switches that it depends on have. A switch that is away holds up only what depends on it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, Protocol

from flowsieve.control.cabling import Cabling
from flowsieve.control.damping import Damping, DampingSettings, dispensable
from flowsieve.control.fences import Fences
from flowsieve.control.journal import Asked, Bounded, Journal, NoJournal, Origin, Rewired, Undone
from flowsieve.control.ledger import Ledger
from flowsieve.control.picture import Picture
from flowsieve.control.request import Op, Request
from flowsieve.control.scribe import Scribe
from flowsieve.control.state import ControlState, Outcome
from flowsieve.control.switches import (
    Connected,
    Disconnected,
    LiveSwitches,
    PortChanged,
    SwitchEvent,
    TableChanged,
)
from flowsieve.control.upkeep import RETRY_SECONDS, Upkeep
from flowsieve.errors import BadTopology, FlowsieveError, Refused, SwitchError, TableFull, kind_of
from flowsieve.flow.compiler import Side
from flowsieve.flow.diff import Change, changes_between, joined
from flowsieve.flow.entry import Deliver, Flow
from flowsieve.flow.service import Punt
from flowsieve.flow.verify import Verdict, verify
from flowsieve.header.tag import Tag
from flowsieve.network.mend import Edge

log = logging.getLogger(__name__)

PATIENCE_SECONDS = 30.0  # with switches that do not acknowledge what a request needs
DRAIN_SECONDS = 0.25  # for what a publisher sent before it stopped
_REVERSE = {Op.ADVERTISE: Op.UNADVERTISE, Op.SUBSCRIBE: Op.UNSUBSCRIBE}


class Watcher(Protocol):
    """Whoever counts what had to be set right."""

    def repaired(self, switch: str, operations: int) -> None:
        """A table was not as it should be."""
        ...

    def mended(self, seconds: float) -> None:
        """Trees follow the cabling again, so many seconds after it was told."""
        ...


class Dispatcher:
    """One state over live switches, which it keeps at it for the time of an `async with` block."""

    def __init__(
        self,
        state: ControlState,
        switches: LiveSwitches,
        tag: Tag,
        deliveries: Mapping[str, Mapping[int, Deliver]] | None = None,
        *,
        patience: float = PATIENCE_SECONDS,
        drain: float = DRAIN_SECONDS,
        journal: Journal | None = None,
        ledger: Ledger | None = None,
        punts: Sequence[Punt] = (),
        damping: DampingSettings | None = None,
        watcher: Watcher | None = None,
    ) -> None:
        self.state = state
        self.tag = tag
        self.switches = switches
        self.ledger = ledger or Ledger()
        self.scribe = Scribe(journal or NoJournal())
        self.cabling = Cabling(state.topology, state.down)
        self.damping = Damping(damping) if damping is not None else None
        self.fences = Fences(
            state.topology, switches, lambda switch: switch in self._reachable, closed=state.down
        )
        self._punts = tuple(punts)
        self._watcher = watcher
        self._news: dict[str, dict[int, bool]] = {}  # of ports, since a switch connected
        self._calm: asyncio.TimerHandle | None = None
        self._troubled_at: float | None = None  # since when the trees do not follow the cabling
        self.patience = patience
        self._drain = drain
        self._reachable: set[str] = set()
        self._upkeep = {
            switch: Upkeep(
                switch,
                switches,
                Picture(tag, (deliveries or {}).get(switch)),
                aim=lambda switch=switch: self.state.table(switch),  # type: ignore[misc]
                capacity=lambda switch=switch: self.state.capacity(switch),  # type: ignore[misc]
                partitions=[dz for dz, _ in state.trees],
                full=self._full,
                repaired=watcher.repaired if watcher is not None else None,
            )
            for switch in state.topology.switches
        }
        self._recable = asyncio.Event()  # links came or went, or a fence may be opened
        self._whole = asyncio.Event()  # the trees follow the cabling, and no edge of them is fenced
        self._whole.set()
        self._opening: set[Edge] = set()
        self._ending = False
        self._group = asyncio.TaskGroup()
        self._tasks: set[asyncio.Task[None]] = set()

    # What hosts ask.

    async def submit(
        self, request: Request, origin: Origin | None = None, *, patience: float | None = None
    ) -> Outcome:
        """Serve a request; returns when the switches that it depends on have acknowledged what follows from it.

        It is written down before it is worked on. An advertisement that ends shrinks late: what its publisher sent
        before has to arrive first. What ends, ends: a switch that is away hears of it when it is back.
        """
        self.state.check(request)
        if request.op is Op.UNADVERTISE:
            await asyncio.sleep(self._drain)
        outcome = await self.scribe.write(Asked(request, origin), lambda: self._step(request, origin))
        if outcome.refused:
            ((_, reason),) = outcome.refused
            await self._undo(request, origin, reason)
            return outcome
        try:
            await self._acknowledged(request, outcome.changes, patience or self.patience)
        except Refused as reason:
            await self._undo(request, origin, reason)
            return Outcome({}, ((request, reason),))
        except SwitchError as error:
            if request.op.adding:
                await self._undo(request, origin, error)
                raise
        except asyncio.CancelledError:
            if (
                request.op.adding and not self._ending
            ):  # else it stays asked for, and is served when the controller is back
                self._background(self._undo(request, origin, SwitchError("its client did not wait for it")))
            raise
        return outcome

    async def acknowledged(
        self, request: Request, origin: Origin | None = None, *, patience: float | None = None
    ) -> None:
        """Wait until a request that was taken before is served; it is taken back where it is not."""
        try:
            await self._acknowledged(request, (), patience or self.patience)
        except (Refused, SwitchError) as error:
            await self._undo(request, origin, error)
            raise

    def replace(self, state: ControlState) -> int:
        """Go on with another state of the same network and interests; how many operations that asks for."""
        asked = 0
        for switch in state.topology.switches:
            changes = changes_between(self.state.table(switch), state.table(switch))
            if changes:
                self._upkeep[switch].ask(changes)
                asked += len(changes)
        self.state = state
        return asked

    @contextmanager
    def supposed(self, request: Request) -> Iterator[Outcome]:
        """The state as if a request had been made, for the time of a `with` block in which nothing may be awaited."""
        outcome = self.state.step([request])
        try:
            yield outcome
        finally:
            if not outcome.refused:
                back = self.state.step([Request(_REVERSE[request.op], request.id, request.host)])
                self._ask(joined(outcome.changes, back.changes))

    # What switches tell.

    def heard(self, event: SwitchEvent) -> None:
        """Take note of what a switch tells; on the loop."""
        match event:
            case Connected(switch):
                self._news[switch] = {}
                self._background(self._greet(switch))
            case Disconnected(switch, reason):
                self._reachable.discard(switch)
                self._upkeep[switch].disconnected(reason)
            case PortChanged(switch, port, up):
                self._news.setdefault(switch, {})[port] = up
                self._told({port: up}, switch)
            case TableChanged(switch):
                log.warning("somebody has changed the table of switch %s", switch)
                self._background(self._punt(switch))
                self._upkeep[switch].doubt("somebody has changed its table")
            case _:
                pass

    async def __aenter__(self) -> Dispatcher:
        await self._group.__aenter__()
        for upkeep in self._upkeep.values():
            self._background(upkeep.run())
        self._background(self._follow_cabling())
        self._background(self.scribe.run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending = True
        if self._calm is not None:
            self._calm.cancel()
        for task in self._tasks:
            task.cancel()
        await self._group.__aexit__(None, None, None)

    # What there is to know.

    async def settled(self) -> None:
        """Wait until every switch has acknowledged all that it should hold."""
        while not (self._whole.is_set() and all(each.settled for each in self._upkeep.values())):
            await self._whole.wait()
            await asyncio.gather(*(each.reached() for each in self._upkeep.values()))

    @property
    def reachable(self) -> frozenset[str]:
        """The switches that can be asked."""
        return frozenset(self._reachable)

    @property
    def mended(self) -> bool:
        """Whether the trees follow the cabling, and no edge of them is fenced."""
        return self._whole.is_set()

    @property
    def troubles(self) -> dict[str, str]:
        """The switches that are not where they should be, and why."""
        return {
            switch: each.trouble or "it is at work"
            for switch, each in self._upkeep.items()
            if not each.settled
        }

    @property
    def operations(self) -> int:
        """How many flow operations switches have acknowledged."""
        return sum(each.operations for each in self._upkeep.values())

    async def tables(self) -> dict[str, tuple[Flow, ...]]:
        """What the switches really hold; of one that cannot be asked, what it acknowledged last is not told."""
        reachable = sorted(self._reachable)
        flows = await asyncio.gather(*(self.switches.read(switch) for switch in reachable))
        return dict(zip(reachable, flows, strict=True))

    async def verify(self) -> Verdict:
        """Prove that what is really installed does what all interests ask for."""
        state = self.state
        return verify(
            state.topology,
            state.plan,
            self.tag,
            await self.tables(),
            list(state.advertisements.values()),
            list(state.subscriptions.values()),
            state.down,
        )

    async def repair(self) -> int:
        """Read all tables back and set right what differs from what they should be; how many operations it took."""
        before = self.operations
        for each in self._upkeep.values():
            each.doubt("its table is read again")
        await self.settled()
        return self.operations - before

    # Requests.

    def _step(self, request: Request, origin: Origin | None) -> Outcome:
        outcome = self.state.step([request])
        if not outcome.refused:
            self.ledger.asked(request, origin)
        self._ask(outcome.changes)
        return outcome

    def _ask(self, changes: Mapping[str, list[Change]]) -> None:
        for switch, some in changes.items():
            self._upkeep[switch].ask(some)

    async def _acknowledged(self, request: Request, changes: Collection[str], patience: float) -> None:
        try:
            async with asyncio.timeout(patience):
                await self._served(request, changes)
        except TimeoutError:
            raise SwitchError(self._excuse(patience)) from None

    async def _served(self, request: Request, changes: Collection[str]) -> None:
        """Wait for the switches that changed for a request, and for those that others before it still wait for."""
        while True:
            trees = self.state.trees
            await self._whole.wait()
            busy = [each for each in self._upkeep.values() if not each.settled]
            if busy and request.op.adding:
                on_its_way = self._on_its_way(request)
                busy = [each for each in busy if each.switch in changes or each.switch in on_its_way]
            else:
                busy = [each for each in busy if each.switch in changes]
            await asyncio.gather(*(each.reached() for each in busy))
            if self.state.trees is trees:
                return

    def _on_its_way(self, request: Request) -> set[str]:
        """The switches between a host and those that its new interest makes it talk to."""
        state, side = self.state, request.op.side
        mine = state.interests(side).get(request.id)
        if mine is None:  # it was ended meanwhile
            return set()
        other = Side.PUBLISHER if side is Side.SUBSCRIBER else Side.SUBSCRIBER
        home = {host: state.topology.hosts[host] for host in state.topology.hosts}
        ends = {home[each.host] for each in state.interests(other).values() if each.dz.overlaps(mine.dz)}
        found: set[str] = set()
        for tree in state.trees.trees:
            for end in ends:
                with suppress(BadTopology):  # cut off from each other: nothing is owed
                    found.update(tree.path(home[mine.host], end))
        return found

    async def _undo(self, request: Request, origin: Origin | None, reason: FlowsieveError) -> None:
        """Take a request back that was not served; its client will hear the reason, also if it asks again."""
        entry = Undone(request, origin, kind_of(reason), str(reason))
        await self.scribe.write(entry, lambda: self._take_back(entry), urgent=True)

    def _take_back(self, entry: Undone) -> None:
        request = entry.request
        there = request.id in self.state.interests(request.op.side)
        if there and self.ledger.brought(request, entry.origin):
            back = Request(_REVERSE[request.op], request.id, request.host)
            self._ask(self.state.step([back]).changes)
        self.ledger.undone(request, entry.origin, entry.kind, entry.why)

    def _excuse(self, patience: float) -> str:
        waiting = "; ".join(f"switch {switch}: {why}" for switch, why in list(self.troubles.items())[:3])
        return f"not acknowledged within {patience:g} s, so it was taken back ({waiting or 'cabling'})"

    def _full(self, error: TableFull) -> None:
        """A switch has less room than we thought: make do with it, or let those who wait hear that it cannot be."""
        known = self.state.capacity(error.switch)
        room = error.capacity if known is None or known > error.capacity else known - 1
        if room < 1:
            self._upkeep[error.switch].fail(error)
            return
        log.warning("switch %s has room for %d entries", error.switch, room)
        self._background(self._bound(error.switch, room))

    async def _bound(self, switch: str, room: int) -> None:
        try:
            outcome = await self.scribe.write(
                Bounded(switch, room), lambda: self.state.bound(switch, room), urgent=True
            )
            self._ask(outcome.changes)
        except Refused as reason:
            self._upkeep[switch].fail(reason)

    # Switches and links.

    def _background(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._group.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _greet(self, switch: str) -> None:
        """A switch has connected: see to its ports and fences before its table."""
        try:
            ports = await self.switches.ports(switch)
            await self.fences.renew(switch)
            await self._punt(switch)
        except SwitchError as error:
            log.warning("switch %s: %s", switch, error)
            return  # it will connect anew
        self._reachable.add(switch)
        self._upkeep[switch].connected()
        every = range(1, len(self.state.topology.linked(switch)) + 1)
        self._told(dict.fromkeys(every, False) | dict(ports) | self._news.get(switch, {}), switch)

    async def _punt(self, switch: str) -> None:
        """Have a switch hand over what it should; what somebody has removed is put back."""
        if self._punts:
            with suppress(SwitchError):  # it will connect anew
                await self.switches.punt(switch, self._punts)

    def _told(self, ports: Mapping[int, bool], switch: str) -> None:
        """A switch has said how some of its ports are."""
        before = self.cabling.down
        for port, up in ports.items():
            self.cabling.tell(switch, port, up)
        if self.damping is not None:
            for edge in before ^ self.cabling.down:
                self.damping.tell(edge, edge in before, self._now)
        self._check_cabling()

    @property
    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    @property
    def suppressed(self) -> frozenset[Edge]:
        """The links that are left out because they come and go, down or not."""
        restless = self.damping.suppressed(self._now) if self.damping is not None else None
        return dispensable(self.state.topology, self.cabling.down, restless) if restless else frozenset()

    def _check_cabling(self) -> None:
        """See whether the trees have to follow, and whether requests have to wait for it."""
        closed, down = self.fences.closed, self.cabling.down | self.suppressed
        self._look_again()
        if down != self.state.down:
            self._troubled_at = self._now if self._troubled_at is None else self._troubled_at
            self._recable.set()
            self._whole.clear()
        elif closed and any(
            frozenset(edge) in closed for tree in self.state.trees.trees for edge in tree.edges
        ):
            self._whole.clear()
        else:
            self._whole.set()
        for edge in closed - down - self._opening:
            self._opening.add(edge)
            self._background(self._open(edge))

    def _look_again(self) -> None:
        """Look at the cabling again when a link that was restless has been calm for long enough."""
        if self._calm is not None:
            self._calm.cancel()
        at = self.damping.next_change(self._now) if self.damping is not None else None
        loop = asyncio.get_running_loop()
        self._calm = loop.call_at(at, self._check_cabling) if at is not None else None

    async def _follow_cabling(self) -> None:
        while True:
            await self._recable.wait()
            self._recable.clear()
            try:
                await self._mend(self.cabling.down | self.suppressed)
            except SwitchError as error:
                log.warning("mending waits: %s", error)
                await asyncio.sleep(RETRY_SECONDS)
            self._check_cabling()

    async def _mend(self, down: frozenset[Edge]) -> None:
        """Fence the edges that have died, then have the trees do without them."""
        if down == self.state.down:
            return
        edges = {frozenset(edge) for tree in self.state.trees.trees for edge in tree.edges}
        await asyncio.gather(*(self.fences.close(edge) for edge in down & edges))
        try:
            await self.scribe.write(
                Rewired(down), lambda: self._ask(self.state.rewire(down).changes), urgent=True
            )
        except Refused as reason:
            log.error("tables stay as they are: on the links that are left they would not fit: %s", reason)
            return
        log.info("the trees are mended; links that are down: %d", len(down))
        if self._watcher is not None and self._troubled_at is not None:
            self._watcher.mended(self._now - self._troubled_at)
        self._troubled_at = None

    async def _open(self, edge: Edge) -> None:
        """Open the fence of a link that is up again, once both ends have followed."""
        try:
            await asyncio.gather(*(self._upkeep[end].reached() for end in edge))
            if edge not in self.cabling.down | self.suppressed:
                await self.fences.open(edge)
        except SwitchError as error:
            log.warning("the fence of %s stays: %s", " - ".join(sorted(edge)), error)
            await asyncio.sleep(RETRY_SECONDS)
        finally:
            self._opening.discard(edge)
        self._check_cabling()
