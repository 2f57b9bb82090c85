"""One switch, over whichever connection to it there is: dialled again when lost, or taken from a listener."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from operator import attrgetter

from flowsieve.errors import DetoursRefused, GuardRefused, SwitchError, TableFull, Unacknowledged
from flowsieve.flow.detours import Protection
from flowsieve.flow.diff import FlowOp
from flowsieve.flow.entry import Flow
from flowsieve.flow.guard import Guard, Refusals
from flowsieve.flow.others import Foreign
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
from flowsieve.southbound.leisure import Leisure, in_slices
from flowsieve.southbound.openflow.datapath_id import switch_id
from flowsieve.southbound.openflow.detours import DetourChanges, NoGroup
from flowsieve.southbound.openflow.entries import SwitchEntry, within
from flowsieve.southbound.openflow.events import (
    BatchApplied,
    EntriesListed,
    MetersCounted,
    Notice,
    PortsListed,
)
from flowsieve.southbound.openflow.full_tables import full_table
from flowsieve.southbound.openflow.guards import (
    GROUPS,
    GuardChanges,
    NoMeter,
    guard_changes,
    guard_entries,
    guard_meters,
    refusals_in,
)
from flowsieve.southbound.openflow.mastership import HeldByAnother, Mastership
from flowsieve.southbound.openflow.ports import MAX_PORT, Port
from flowsieve.southbound.openflow.punts import Changes
from flowsieve.southbound.openflow.roles import RoleStatus
from flowsieve.southbound.openflow.service_work import (
    detours_held,
    detours_to_change,
    grouped_ports,
    guard_to_change,
    make_guard,
    make_punts,
    punts_to_change,
)
from flowsieve.southbound.openflow.strangers import foreign_in
from flowsieve.southbound.openflow.switch_session import Lost, Rejected, SwitchSession, Timing
from flowsieve.southbound.openflow.tables import sorted_out
from flowsieve.southbound.openflow.wire import GUARD_COOKIE, Monitored, PacketIn
from flowsieve.southbound.socket_address import SocketAddress

MOST_WAITING = 1024  # requests to one switch
SORT_KEY = attrgetter("sort_key")
OPEN = tuple(entry for group in GROUPS for entry in guard_entries(Guard(group)))  # takes in everything


class Channel:
    """Requests to one switch: those about its entries one after the other, those about its ports likewise, beside them.

    So a fence does not wait for a table. Nor does anything wait for whoever only looks: that is asked on the same
    connection while other answers are due, and nothing is built on it. The switch takes all in the order it is sent.

    Once a connection was lost, what the switch holds is unknown: no batch is taken before its entries were
    read anew. Should the switch come to a commit on the lost connection only after that, it tells of a change
    by somebody else.
    """

    def __init__(
        self,
        switch: str,
        timing: Timing,
        decrement: bool,
        report: Report,
        mastership: Mastership | None = None,
    ) -> None:
        self.switch = switch
        self.unknown: str | None = None  # why what the switch holds is unknown, if it is
        self.foreign: tuple[Foreign, ...] = ()  # the entries of others that were found last
        self.why_not = "nobody has connected yet"  # why there is no connection, if there is none
        self._timing = timing
        self._decrement = decrement
        self._report = report
        self._mastership = mastership  # who says whether the switch is ours to change; it is, if nobody does
        self._latest: SwitchSession | None = None  # the newest connection
        self._session: SwitchSession | None = None  # … if the switch is ours to change
        self._connected = asyncio.Event()
        self._tables, self._ports, self._looks = asyncio.Lock(), asyncio.Lock(), asyncio.Lock()
        self._waiting = 0
        self._links: frozenset[int] | None = (
            None  # the ports that are sent to by groups, as far as that is known
        )
        self._opens = True  # until somebody says what the switch is to take in, it takes in everything
        self._opened: SwitchSession | None = None  # the one on which it was made to
        self._guarded: tuple[SwitchSession, Guard] | None = (
            None  # what it takes in since, as long as that is known
        )

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
        """Use a connection until it ends, once the switch is ours to change; it takes the place of an older one."""
        if self._latest is not None:
            self._lose(self._latest, "the switch has connected anew")
        self._latest = session
        async with asyncio.TaskGroup() as group:
            if self._mastership is None:
                self._use(session)
            else:
                admission = group.create_task(self._admit(session, self._mastership))
            try:
                reason = await session.run(partial(self._notice, session))
            finally:
                if self._mastership is not None:
                    admission.cancel()
                self._lose(session, "the connection was closed")
                if self._latest is session:
                    self._latest = None
        if self._mastership is None or self._mastership.standing_by is None:
            self.why_not = reason

    async def _admit(self, session: SwitchSession, mastership: Mastership) -> None:
        """Use a connection once the switch is ours; while another controller holds it, nothing is said over it."""
        try:
            await mastership.admit(self.switch, session)
        except HeldByAnother as error:
            self.leave(str(error))
        except SwitchError as error:
            session.give_up(str(error))
            if session is self._latest:
                self._missed(str(error))
        else:
            self._use(session)

    def _use(self, session: SwitchSession) -> None:
        self._session, self._links = session, None
        self._connected.set()
        self._report(Connected(self.switch))

    def leave(self, reason: str) -> None:
        """Ask the switch for nothing any more: it is another controller's."""
        why = f"this controller stands by, since {reason}"
        if self._session is not None:
            self.why_not = why
            self._lose(self._session, why)
        else:
            self._missed(why)

    def _notice(self, session: SwitchSession, notice: Notice) -> None:
        if isinstance(notice, RoleStatus):
            if self._mastership is not None and not self._mastership.demoted(self.switch, notice):
                self._lose(session, "the switch does not take changes over this connection any more")
        elif session is not self._session:
            return  # it is not ours yet, and all of that is read when it is
        elif isinstance(notice, Monitored):
            self._opened = self._guarded = self._links = None
            self._report(TableChanged(self.switch, notice.owners))
        elif isinstance(notice, PacketIn):
            self._report(PuntedPacket(self.switch, notice.port, notice.data))
        elif 1 <= notice.port <= MAX_PORT:
            self._report(PortChanged(self.switch, notice.port, notice.up))

    def _missed(self, why: str) -> None:
        """There is no connection; reported where the reason is another than before."""
        known, self.why_not = self.why_not, why
        if self._mastership is not None:
            self._mastership.looked_at(self.switch)
        if why != known and self._session is None:
            self._report(Disconnected(self.switch, why))

    @property
    def connected(self) -> bool:
        return self._session is not None

    @property
    def at_work(self) -> bool:
        """Whether something is asked of the switch, other than to be looked at."""
        return self._tables.locked() or self._ports.locked()

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
            async with self._in_turn(self._tables, known=True) as session:
                also = OPEN if self._opens and self._opened is not session else ()
                try:
                    await session.ask(session.connection.apply(ops, also), BatchApplied)
                except Rejected as why:
                    raise await self._refusal(session, ops, why) from None
                self._opened = session
        except Lost as error:
            raise Unacknowledged(switch=self.switch, reason=str(error)) from error

    async def read(self, groups: Sequence[Prefix]) -> tuple[tuple[Flow, ...], int]:
        """What the switch holds of ours and within our groups; with that it is known again.

        Entries that no `Flow` can describe, and those in the wrong table, are removed; their number comes second.
        """
        refused = f"switch {self.switch} does not remove entries"
        async with self._asking(self._tables, f"switch {self.switch} cannot be read", refused) as session:
            self._guarded = None  # whoever reads has doubts
            listed = await session.ask(session.connection.list_entries(), EntriesListed)
            there = within(listed.entries, groups)
            sorting = sorted_out(there, await in_slices(_flow_of, there))
            admits = any(entry.admits for entry in listed.entries)
            if not admits:
                self._opened = None
            if sorting.remove:
                handed_on = OPEN if sorting.take_over and not admits else ()
                made = (*sorting.take_over, *handed_on)
                await session.ask(session.connection.rearrange(made, sorting.remove), BatchApplied)
            if self._session is session:
                self.unknown = None
            self.foreign = foreign_in(listed.entries, groups)
            return tuple(sorted(sorting.flows, key=SORT_KEY)), len(sorting.remove)

    async def look(self, groups: Sequence[Prefix], leisure: Leisure) -> tuple[tuple[Flow, ...], int]:
        """What `read` would give, and how many entries it would remove; what is unknown stays so."""
        async with self._asking(self._looks, f"switch {self.switch} cannot be looked at") as session:
            listed = await session.ask(session.connection.list_entries(), EntriesListed)
        self.foreign = foreign_in(listed.entries, groups)
        there = within(listed.entries, groups)
        sorting = sorted_out(there, await leisure.each(_flow_of, there))
        return tuple(sorted(sorting.flows, key=SORT_KEY)), len(sorting.remove)

    async def list_ports(self, *, looking: bool = False) -> tuple[Port, ...]:
        """The ports that the switch has; whoever is only looking holds nobody up."""
        turn = self._looks if looking else self._ports
        async with self._asking(turn, f"the ports of switch {self.switch} cannot be read") as session:
            return (await session.ask(session.connection.list_ports(), PortsListed)).ports

    async def fence(self, number: int, closed: bool) -> None:
        """Have a port closed or opened; one that is not there carries nothing, so there is nothing to be done."""
        port, what = f"port {number} of switch {self.switch}", "fenced" if closed else "opened"
        lost, refused = f"whether {port} was {what} is unknown", f"{port} is not {what}"
        async with self._asking(self._ports, lost, refused) as session:
            listed = await session.ask(session.connection.list_ports(), PortsListed)
            for each in listed.ports:
                if each.number == number:
                    known = self._links
                    groups = known if known is not None or not closed else await grouped_ports(session)
                    grouped = closed and number in (groups or ())
                    await session.ask(session.connection.fence(each, closed, grouped), BatchApplied)

    async def protect(self, protection: Protection) -> bool:
        """Make what leads around dead links exactly this, but for closed ports; says whether anything was changed."""
        lost = f"what switch {self.switch} does about dead links is unknown"
        async with self._asking(self._tables, lost) as session, self._ports:
            try:
                todo = await detours_to_change(session, protection)
                if messages := todo.messages:
                    await session.ask(session.connection.carry_out(messages), BatchApplied)
            except (Rejected, NoGroup) as why:
                raise DetoursRefused(switch=self.switch, reason=str(why)) from None
            session.connection.send_to_groups(protection.links)
            self._links = protection.links
            return bool(messages)

    async def look_at_detours(self, protection: Protection) -> DetourChanges:
        """What `protect` would change; nothing is changed."""
        lost = f"what switch {self.switch} does about dead links cannot be read"
        async with self._asking(self._looks, lost) as session:
            with suppress(NoGroup):
                return await detours_to_change(session, protection)
        return DetourChanges()  # it goes without

    async def protection(self, *, looking: bool = False) -> Protection:
        """What the switch does about dead links; whoever is only looking holds nobody up."""
        lost = f"what switch {self.switch} does about dead links cannot be read"
        async with self._asking(self._looks if looking else self._tables, lost) as session:
            return (await detours_held(session)).protection

    async def punt(self, punts: Sequence[Punt]) -> bool:
        """Make the service entries exactly these; says whether anything had to be changed."""
        lost = f"which packets switch {self.switch} hands over is unknown"
        refused = f"switch {self.switch} does not hand over packets as it is asked to"
        async with self._asking(self._tables, lost, refused) as session:
            todo = await punts_to_change(session, punts)
            await make_punts(session, todo)
            return bool(todo)

    async def look_at_punts(self, punts: Sequence[Punt]) -> Changes:
        """What `punt` would change; nothing is changed."""
        async with self._asking(
            self._looks, f"what switch {self.switch} hands over cannot be read"
        ) as session:
            return await punts_to_change(session, punts)

    async def guard(self, guard: Guard, counted: Callable[[], Awaitable[None]]) -> GuardChanges:
        """Make what the switch takes in exactly this; says what had to be changed.

        Before entries are removed, what packets have met is to be `counted`: Open vSwitch would otherwise charge what
        they have let in to the entry that refuses it from then on.
        """
        self._opens = False
        async with self._asking(self._tables, f"what switch {self.switch} takes in is unknown") as session:
            known, self._guarded = self._guarded, None
            try:
                if known is not None and known[0] is session and known[1].owner == guard.owner:
                    todo = guard_changes(guard_entries(known[1]), guard_meters(known[1]), guard)
                else:
                    todo = await guard_to_change(session, guard)
                if todo.remove:
                    await counted()
                await make_guard(session, todo)
            except (Rejected, NoMeter) as why:
                raise GuardRefused(switch=self.switch, reason=str(why)) from None
            self._guarded = session, guard
            return todo

    async def look_at_guard(self, guard: Guard) -> GuardChanges:
        """What `guard` would change; nothing is changed."""
        async with self._asking(self._looks, f"what switch {self.switch} takes in cannot be read") as session:
            return await guard_to_change(session, guard)

    async def refusals(self) -> dict[int, Refusals]:
        """What the guard has refused at each host's port."""
        async with self._asking(self._looks, f"the guard of switch {self.switch} cannot be read") as session:
            ask, connection = session.ask, session.connection
            entries = (await ask(connection.list_service(GUARD_COOKIE), EntriesListed)).entries
            return refusals_in(entries, (await ask(connection.count_meters(), MetersCounted)).counts)

    async def send_packet(self, port: int, data: bytes) -> None:
        """Have the switch send a packet out of a port."""
        (await self._live_session(self._deadline())).send_packet(port, data)

    async def inject_packet(self, port: int, data: bytes) -> None:
        """Have the switch take in a packet as if it had come in on a port."""
        (await self._live_session(self._deadline())).inject_packet(port, data)

    @asynccontextmanager
    async def _asking(self, turn: asyncio.Lock, lost: str, refused: str = "") -> AsyncIterator[SwitchSession]:
        """A connection, for requests in turn; `lost` and `refused` begin the errors where no answer came, or a no."""
        try:
            async with self._in_turn(turn) as session:
                yield session
        except Lost as error:
            raise SwitchError(f"{lost}: {error}") from error
        except Rejected as error:
            raise SwitchError(f"{refused}: {error}") from None

    @asynccontextmanager
    async def _in_turn(self, turn: asyncio.Lock, known: bool = False) -> AsyncIterator[SwitchSession]:
        """A connection, once all requests of the kind are done; with `known`, raises where the table is unknown.

        Where an answer is lost, the connection is given up; also where nobody waited for it, unless that was a look.
        """
        deadline = self._deadline()
        counted = turn is not self._looks  # those who look are shared, and keep nobody from work
        if counted and self._waiting >= MOST_WAITING:
            raise SwitchError(
                f"switch {self.switch} has {MOST_WAITING} requests waiting; let them settle first"
            )
        self._waiting += counted
        try:
            async with turn:
                session = None if known and self.unknown is not None else await self._live_session(deadline)
                if session is None or (known and self.unknown is not None):
                    raise Unacknowledged(switch=self.switch, reason=self.unknown or "")
                try:
                    yield session
                except Lost as error:
                    self._lose(session, str(error))
                    raise
                except asyncio.CancelledError:
                    if turn is not self._looks:
                        self._lose(session, "a request was abandoned")
                    raise
        finally:
            self._waiting -= counted

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
        listed = await session.ask(session.connection.list_entries(), EntriesListed)
        return full_table(self.switch, listed.entries, ops, why.op_index)

    def _deadline(self) -> float:
        """Until when a request that comes now waits for a connection."""
        return asyncio.get_running_loop().time() + self._timing.connect


def _flow_of(entry: SwitchEntry) -> Flow | None:
    return entry.flow
