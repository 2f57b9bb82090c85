"""One switch, over whichever connection to it there is: dialled again when lost, or taken from a listener."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager

from os_ken.ofproto import ofproto_v1_4 as ofp

from flowsieve.errors import GuardRefused, SwitchError, TableFull, Unacknowledged
from flowsieve.flow.diff import FlowOp, OpKind
from flowsieve.flow.entry import Flow
from flowsieve.flow.guard import Guard, Refusals
from flowsieve.flow.punt import Punt
from flowsieve.header.address import Prefix
from flowsieve.network.names import SwitchId
from flowsieve.southbound.fabric import (
    Connected,
    Disconnected,
    PortChanged,
    PuntedPacket,
    Report,
    TableChanged,
)
from flowsieve.southbound.openflow.datapath_id import switch_id
from flowsieve.southbound.openflow.events import (
    BatchApplied,
    EntriesListed,
    MetersCounted,
    MetersListed,
    PortsListed,
)
from flowsieve.southbound.openflow.guards import (
    GROUPS,
    GuardChanges,
    guard_changes,
    guard_entries,
    refusals_in,
)
from flowsieve.southbound.openflow.packed import match_bytes
from flowsieve.southbound.openflow.ports import MAX_PORT, Port
from flowsieve.southbound.openflow.punts import changes
from flowsieve.southbound.openflow.switch_session import Lost, Notice, Rejected, SwitchSession, Timing
from flowsieve.southbound.openflow.tables import sorted_out
from flowsieve.southbound.openflow.wire import CONTENT_TABLE, GUARD_COOKIE, Monitored, PacketIn
from flowsieve.southbound.socket_address import SocketAddress

MOST_WAITING = 1024  # requests to one switch
OPEN = tuple(entry for group in GROUPS for entry in guard_entries(Guard(group)))  # takes in everything


class Channel:
    """Requests to one switch, one after the other.

    Once a connection was lost, what the switch holds is unknown: no batch is taken before its entries were
    read anew. Should the switch come to a commit on the lost connection only after that, it tells of a change
    by somebody else.
    """

    def __init__(self, switch: str, timing: Timing, decrement: bool, report: Report) -> None:
        self.switch = switch
        self.unknown: str | None = None  # why what the switch holds is unknown, if it is
        self.why_not = "nobody has connected yet"  # why there is no connection, if there is none
        self._timing = timing
        self._decrement = decrement
        self._report = report
        self._session: SwitchSession | None = None
        self._connected = asyncio.Event()
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._opens = True  # until somebody says what the switch is to take in, it takes in everything
        self._opened: SwitchSession | None = None  # the one on which it was made to

    # Connections.

    async def keep_dialling(self, address: SocketAddress, check: Callable[[SwitchId], None]) -> None:
        """Connect, and again whenever the connection is lost; `check` raises where another switch answers."""
        retry = self._timing.first_retry
        while True:
            try:
                async with asyncio.timeout(self._timing.connect):
                    streams = await address.dial()
                session = SwitchSession(streams, self._timing, self._decrement)
                identity = switch_id(await session.greet())
                try:
                    check(identity)
                except SwitchError:
                    session.abort()
                    raise
            except (OSError, SwitchError, UnicodeError) as error:  # or a name that no host can have
                self._missed(f"{address}: {str(error) or type(error).__name__}")
            else:
                retry = self._timing.first_retry
                await self.serve(session)
            await asyncio.sleep(retry)
            retry = min(2 * retry, self._timing.last_retry)

    async def serve(self, session: SwitchSession) -> None:
        """Use a connection until it ends; it takes the place of an older one."""
        if self._session is not None:
            self._lose(self._session, "the switch has connected anew")
        self._session = session
        self._connected.set()
        self._report(Connected(self.switch))
        try:
            reason = await session.run(self._notice)
        finally:
            self._lose(session, "the connection was closed")
        self.why_not = reason

    def _notice(self, notice: Notice) -> None:
        if isinstance(notice, Monitored):
            self._opened = None
            self._report(TableChanged(self.switch, notice.owners))
        elif isinstance(notice, PacketIn):
            self._report(PuntedPacket(self.switch, notice.port, notice.data))
        elif 1 <= notice.port <= MAX_PORT:
            self._report(PortChanged(self.switch, notice.port, notice.up))

    def _missed(self, why: str) -> None:
        """There is no connection; reported where the reason is another than before."""
        known, self.why_not = self.why_not, why
        if why != known and self._session is None:
            self._report(Disconnected(self.switch, why))

    @property
    def connected(self) -> bool:
        return self._session is not None

    def _lose(self, session: SwitchSession, reason: str) -> None:
        session.give_up(reason)
        if self._session is session:
            self._session = None
            self._connected.clear()
            self.unknown = session.reason
            self._report(Disconnected(self.switch, session.reason))

    # Requests.

    async def apply(self, ops: Sequence[FlowOp]) -> None:
        """Have a batch carried out as a whole, or raise why nothing of it was, or why that is unknown."""
        try:
            async with self._in_turn(known=True) as session:
                also = OPEN if self._opens and self._opened is not session else ()
                try:
                    await session.ask(session.connection.apply(ops, also), BatchApplied)
                except Rejected as why:
                    raise await self._refusal(session, ops, why) from None
                self._opened = session
        except Lost as error:
            raise Unacknowledged(switch=self.switch, reason=str(error)) from error

    async def read(self, groups: Iterable[Prefix], *, remove: bool = True) -> tuple[tuple[Flow, ...], int]:
        """What the switch holds of ours and within our groups; with that it is known again.

        Entries that no `Flow` can describe, and those in the wrong table, are removed unless `remove` is false; their
        number comes second.
        """
        refused = f"switch {self.switch} does not remove entries"
        async with self._asking(f"switch {self.switch} cannot be read", refused) as session:
            listed = await session.ask(session.connection.list_entries(), EntriesListed)
            sorting = sorted_out(listed.entries, groups)
            admits = any(entry.admits for entry in listed.entries)
            if sorting.remove and remove:
                handed_on = OPEN if sorting.take_over and not admits else ()
                made = (*sorting.take_over, *handed_on)
                await session.ask(session.connection.rearrange(made, sorting.remove), BatchApplied)
            if self._session is session:
                self.unknown = None
            flows = [entry.flow for entry in (*sorting.keep, *sorting.take_over)]
            return tuple(sorted(filter(None, flows), key=_by_key)), len(sorting.remove)

    async def list_ports(self) -> tuple[Port, ...]:
        """The ports that the switch has."""
        async with self._asking(f"the ports of switch {self.switch} cannot be read") as session:
            return (await session.ask(session.connection.list_ports(), PortsListed)).ports

    async def fence(self, number: int, closed: bool) -> None:
        """Have a port closed or opened; one that is not there carries nothing, so there is nothing to be done."""
        port, what = f"port {number} of switch {self.switch}", "fenced" if closed else "opened"
        async with self._asking(f"whether {port} was {what} is unknown", f"{port} is not {what}") as session:
            listed = await session.ask(session.connection.list_ports(), PortsListed)
            for each in listed.ports:
                if each.number == number:
                    await session.ask(session.connection.fence(each, closed), BatchApplied)

    async def punt(self, punts: Sequence[Punt]) -> bool:
        """Make the service entries exactly these; says whether anything had to be changed."""
        lost = f"which packets switch {self.switch} hands over is unknown"
        refused = f"switch {self.switch} does not hand over packets as it is asked to"
        async with self._asking(lost, refused) as session:
            ask, connection = session.ask, session.connection
            entries = (await ask(connection.list_service(), EntriesListed)).entries
            todo = changes(entries, (await ask(connection.list_meters(), MetersListed)).meters, punts)
            for meters, how in ((todo.new_meters, ofp.OFPMC_ADD), (todo.changed_meters, ofp.OFPMC_MODIFY)):
                if meters:
                    await ask(connection.change_meters(meters, how), BatchApplied)
            if todo.install or todo.remove:
                await ask(connection.serve(todo.install, todo.remove), BatchApplied)
            if todo.old_meters:
                await ask(connection.change_meters(todo.old_meters, ofp.OFPMC_DELETE), BatchApplied)
            return bool(todo)

    async def guard(self, guard: Guard, *, change: bool = True) -> GuardChanges:
        """Make what the switch takes in exactly this; says what had to be changed, or would have without `change`."""
        lost = f"what switch {self.switch} takes in is unknown"
        self._opens = False
        async with self._asking(lost) as session:
            ask, connection = session.ask, session.connection
            entries = (await ask(connection.list_service(GUARD_COOKIE), EntriesListed)).entries
            meters = (await ask(connection.list_meters(), MetersListed)).meters
            todo = guard_changes(entries, meters, guard)
            try:
                for some, how in ((todo.new_meters, ofp.OFPMC_ADD), (todo.changed_meters, ofp.OFPMC_MODIFY)):
                    if some and change:
                        await ask(connection.change_meters(some, how), BatchApplied)
                if todo.entries and change:
                    await ask(connection.rearrange(todo.install, todo.remove), BatchApplied)
                if todo.old_meters and change:
                    await ask(connection.change_meters(todo.old_meters, ofp.OFPMC_DELETE), BatchApplied)
            except Rejected as why:
                raise GuardRefused(switch=self.switch, reason=str(why)) from None
            return todo

    async def refusals(self) -> dict[int, Refusals]:
        """What the guard has refused at each host's port."""
        async with self._asking(f"the guard of switch {self.switch} cannot be read") as session:
            ask, connection = session.ask, session.connection
            entries = (await ask(connection.list_service(GUARD_COOKIE), EntriesListed)).entries
            return refusals_in(entries, (await ask(connection.count_meters(), MetersCounted)).counts)

    async def send_packet(self, port: int, data: bytes) -> None:
        """Have the switch send a packet out of a port."""
        (await self._live_session(self._deadline())).send_packet(port, data)

    @asynccontextmanager
    async def _asking(self, lost: str, refused: str = "") -> AsyncIterator[SwitchSession]:
        """A connection, for requests in turn; `lost` and `refused` begin the errors where no answer came, or a no."""
        try:
            async with self._in_turn() as session:
                yield session
        except Lost as error:
            raise SwitchError(f"{lost}: {error}") from error
        except Rejected as error:
            raise SwitchError(f"{refused}: {error}") from None

    @asynccontextmanager
    async def _in_turn(self, known: bool = False) -> AsyncIterator[SwitchSession]:
        """A connection, once all requests before are done; with `known`, raises where the table is unknown.

        Where an answer is lost or nobody waited for it, the connection is given up.
        """
        deadline = self._deadline()
        if self._waiting >= MOST_WAITING:
            raise SwitchError(
                f"switch {self.switch} has {MOST_WAITING} requests waiting; let them settle first"
            )
        self._waiting += 1
        try:
            async with self._turn:
                session = None if known and self.unknown is not None else await self._live_session(deadline)
                if session is None or (known and self.unknown is not None):
                    raise Unacknowledged(switch=self.switch, reason=self.unknown or "")
                try:
                    yield session
                except Lost as error:
                    self._lose(session, str(error))
                    raise
                except asyncio.CancelledError:
                    self._lose(session, "a request was abandoned")
                    raise
        finally:
            self._waiting -= 1

    async def _live_session(self, deadline: float) -> SwitchSession:
        try:
            async with asyncio.timeout_at(deadline):
                while self._session is None:
                    await self._connected.wait()
        except TimeoutError:
            raise SwitchError(f"switch {self.switch} is not connected: {self.why_not}") from None
        return self._session

    async def _refusal(
        self, session: SwitchSession, ops: Sequence[FlowOp], why: Rejected
    ) -> SwitchError | TableFull:
        if why.op_index is None or why.op_index >= len(ops):
            return SwitchError(f"switch {self.switch} refused a batch: {why}")
        if not why.failure.table_full:
            flow = ops[why.op_index].flow
            return SwitchError(
                f"switch {self.switch} refused {ops[why.op_index].kind.value} of {flow.match} "
                f"at priority {flow.priority}: {why}"
            )
        # The switch does not say how much room it has: it had room for what the owner held when it came to that one.
        listed = await session.ask(session.connection.list_entries(), EntriesListed)
        owner = ops[why.op_index].flow.owner
        own = [
            entry
            for entry in listed.entries
            if entry.table == CONTENT_TABLE and entry.owner == owner and not entry.service
        ]
        held = {(entry.match, entry.priority) for entry in own}
        for op in ops[: why.op_index]:
            key = match_bytes(op.flow.match), op.flow.priority
            if op.kind is OpKind.INSTALL:
                held.add(key)
            elif op.kind is OpKind.REMOVE:
                held.discard(key)
        return TableFull(switch=self.switch, needed=len(held) + 1, capacity=len(held))

    def _deadline(self) -> float:
        """Until when a request that comes now waits for a connection."""
        return asyncio.get_running_loop().time() + self._timing.connect


def _by_key(flow: Flow) -> tuple[tuple[int, ...], int]:
    """The order of `Flow.key`, by plain numbers for speed: tables are large."""
    return flow.match.sort_key, flow.priority
