"""A controller for switches that come, fail and come back, and for many requests at a time.

The state decides at once; every switch then follows at its own pace, and a request is acknowledged when the
switches that it depends on have. A switch that is away holds up only what depends on it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Coroutine, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any

from flowsieve.control.cabling import Cabling
from flowsieve.control.fences import Fences
from flowsieve.control.picture import Picture
from flowsieve.control.request import Op, Request
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
from flowsieve.errors import BadTopology, Refused, SwitchError, TableFull
from flowsieve.flow.compiler import Side
from flowsieve.flow.diff import Change
from flowsieve.flow.entry import Deliver, Flow
from flowsieve.flow.verify import Verdict, verify
from flowsieve.header.tag import Tag
from flowsieve.network.mend import Edge

log = logging.getLogger(__name__)

PATIENCE_SECONDS = 30.0  # with switches that do not acknowledge what a request needs
DRAIN_SECONDS = 0.25  # for what a publisher sent before it stopped
_REVERSE = {Op.ADVERTISE: Op.UNADVERTISE, Op.SUBSCRIBE: Op.UNSUBSCRIBE}


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
    ) -> None:
        self.state = state
        self.tag = tag
        self.switches = switches
        self.cabling = Cabling(state.topology)
        self.fences = Fences(state.topology, switches, lambda switch: switch in self._reachable)
        self._patience = patience
        self._drain = drain
        self._reachable: set[str] = set()
        self._upkeep = {
            switch: Upkeep(
                switch,
                switches,
                Picture(tag, (deliveries or {}).get(switch)),
                aim=lambda switch=switch: state.table(switch),  # type: ignore[misc]
                capacity=lambda switch=switch: state.capacity(switch),  # type: ignore[misc]
                partitions=[dz for dz, _ in state.trees],
                full=self._full,
            )
            for switch in state.topology.switches
        }
        self._recable = asyncio.Event()  # links came or went, or a fence may be opened
        self._whole = asyncio.Event()  # the trees follow the cabling, and no edge of them is fenced
        self._whole.set()
        self._opening: set[Edge] = set()
        self._group = asyncio.TaskGroup()
        self._tasks: set[asyncio.Task[None]] = set()

    # What hosts ask.

    async def submit(self, request: Request) -> Outcome:
        """Serve a request; returns when the switches that it depends on have acknowledged what follows from it.

        An advertisement that ends shrinks late: what its publisher sent before has to arrive first.
        """
        if request.op is Op.UNADVERTISE:
            await asyncio.sleep(self._drain)
        outcome = self.state.step([request])
        self._ask(outcome.changes)
        if outcome.refused:
            return outcome
        try:
            async with asyncio.timeout(self._patience):
                await self._served(request, outcome.changes)
        except TimeoutError:
            self._take_back(request)
            raise SwitchError(self._excuse()) from None
        except Refused as reason:
            self._take_back(request)
            return Outcome({}, ((request, reason),))
        except asyncio.CancelledError:
            self._take_back(request)
            raise
        return outcome

    # What switches tell.

    def heard(self, event: SwitchEvent) -> None:
        """Take note of what a switch tells; on the loop."""
        match event:
            case Connected(switch):
                self._background(self._greet(switch))
            case Disconnected(switch, reason):
                self._reachable.discard(switch)
                self._upkeep[switch].disconnected(reason)
            case PortChanged(switch, port, up):
                self.cabling.tell(switch, port, up)
                self._check_cabling()
            case TableChanged(switch):
                log.warning("somebody has changed the table of switch %s", switch)
                self._upkeep[switch].doubt("somebody has changed its table")
            case _:
                pass

    async def __aenter__(self) -> Dispatcher:
        await self._group.__aenter__()
        for upkeep in self._upkeep.values():
            self._background(upkeep.run())
        self._background(self._follow_cabling())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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

    def _ask(self, changes: Mapping[str, list[Change]]) -> None:
        for switch, some in changes.items():
            self._upkeep[switch].ask(some)

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
        mine = state.interests(side)[request.id]
        other = Side.PUBLISHER if side is Side.SUBSCRIBER else Side.SUBSCRIBER
        home = {host: state.topology.hosts[host] for host in state.topology.hosts}
        ends = {home[each.host] for each in state.interests(other).values() if each.dz.overlaps(mine.dz)}
        found: set[str] = set()
        for tree in state.trees.trees:
            for end in ends:
                with suppress(BadTopology):  # cut off from each other: nothing is owed
                    found.update(tree.path(home[mine.host], end))
        return found

    def _take_back(self, request: Request) -> None:
        """Undo a request that could not be acknowledged."""
        if request.op.adding and request.id in self.state.interests(request.op.side):
            self._ask(self.state.step([Request(_REVERSE[request.op], request.id, request.host)]).changes)

    def _excuse(self) -> str:
        waiting = "; ".join(f"switch {switch}: {why}" for switch, why in list(self.troubles.items())[:3])
        return f"not acknowledged within {self._patience:g} s, so it was taken back ({waiting or 'cabling'})"

    def _full(self, error: TableFull) -> None:
        """A switch has less room than we thought: make do with it, or let those who wait hear that it cannot be."""
        known = self.state.capacity(error.switch)
        room = error.capacity if known is None or known > error.capacity else known - 1
        log.warning("switch %s has room for %d entries", error.switch, room)
        try:
            self._ask(self.state.bound(error.switch, room).changes)
        except Refused as reason:
            self._upkeep[error.switch].fail(reason)

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
        except SwitchError as error:
            log.warning("switch %s: %s", switch, error)
            return  # it will connect anew
        self._reachable.add(switch)
        self.cabling.tell_all(switch, ports)
        self._upkeep[switch].connected()
        self._check_cabling()

    def _check_cabling(self) -> None:
        """See whether the trees have to follow, and whether requests have to wait for it."""
        closed = self.fences.closed
        if self.cabling.down != self.state.down:
            self._recable.set()
            self._whole.clear()
        elif closed and any(
            frozenset(edge) in closed for tree in self.state.trees.trees for edge in tree.edges
        ):
            self._whole.clear()
        else:
            self._whole.set()
        for edge in closed - self.cabling.down - self._opening:
            self._opening.add(edge)
            self._background(self._open(edge))

    async def _follow_cabling(self) -> None:
        while True:
            await self._recable.wait()
            self._recable.clear()
            try:
                await self._mend(self.cabling.down)
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
        self._ask(self.state.rewire(down).changes)
        log.info("the trees are mended; links that are down: %d", len(down))

    async def _open(self, edge: Edge) -> None:
        """Open the fence of a link that is up again, once both ends have followed."""
        try:
            await asyncio.gather(*(self._upkeep[end].reached() for end in edge))
            if edge not in self.cabling.down:
                await self.fences.open(edge)
        except SwitchError as error:
            log.warning("the fence of %s stays: %s", " - ".join(sorted(edge)), error)
            await asyncio.sleep(RETRY_SECONDS)
        finally:
            self._opening.discard(edge)
        self._check_cabling()
