"""One switch, over whichever connection to it there is: dialled again when lost, or taken from a listener."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

from os_ken.ofproto import ofproto_v1_4 as ofp

from flowsieve.errors import SwitchError, TableFull, Unacknowledged
from flowsieve.flow.diff import FlowOp, OpKind
from flowsieve.flow.entry import Flow
from flowsieve.flow.punt import Punt
from flowsieve.header.address import Prefix
from flowsieve.southbound.fabric import (
    Connected,
    Disconnected,
    Packet,
    PortChanged,
    SwitchEvent,
    TableChanged,
)
from flowsieve.southbound.openflow.entries import within
from flowsieve.southbound.openflow.events import BatchApplied, BatchRefused
from flowsieve.southbound.openflow.packed import match_bytes
from flowsieve.southbound.openflow.ports import MAX_PORT, Port
from flowsieve.southbound.openflow.punts import Meter, changes
from flowsieve.southbound.openflow.switch_session import Link, Lost, Notice, Timing
from flowsieve.southbound.openflow.wire import Monitored, PacketIn
from flowsieve.southbound.socket_address import Address

MOST_WAITING = 1024  # requests to one switch
Answer = TypeVar("Answer")


class Channel:
    """Requests to one switch, one after the other.

    Once a connection was lost, what the switch holds is unknown: no batch is taken before its entries were
    read anew. Should the switch come to a commit on the lost connection only after that, it tells of a change
    by somebody else.
    """

    def __init__(
        self, switch: str, timing: Timing, decrement: bool, report: Callable[[SwitchEvent], None]
    ) -> None:
        self.switch = switch
        self.unknown: str | None = None  # why what the switch holds is unknown, if it is
        self.why_not = "nobody has connected yet"  # why there is no connection, if there is none
        self._timing = timing
        self._decrement = decrement
        self._report = report
        self._link: Link | None = None
        self._connected = asyncio.Event()
        self._turn = asyncio.Lock()
        self._waiting = 0

    # Connections.

    async def keep_dialling(self, address: Address, check: Callable[[int], None] = lambda id: None) -> None:
        """Have a connection, again and again; `check` raises where a datapath id is not that of the switch."""
        retry = self._timing.first_retry
        while True:
            try:
                async with asyncio.timeout(self._timing.connect):
                    streams = await address.dial()
                link = Link(streams, self._timing, self._decrement)
                datapath = await link.greet()
                try:
                    check(datapath)
                except SwitchError:
                    link.abort()
                    raise
            except (OSError, SwitchError, UnicodeError) as error:  # or a host's name that is none
                self._missed(f"{address}: {str(error) or type(error).__name__}")
            else:
                retry = self._timing.first_retry
                await self.serve(link)
            await asyncio.sleep(retry)
            retry = min(2 * retry, self._timing.last_retry)

    async def serve(self, link: Link) -> None:
        """Use a connection until it ends; it takes the place of an older one."""
        if self._link is not None:
            self._lose(self._link, "the switch has connected anew")
        self._link = link
        self._connected.set()
        self._report(Connected(self.switch))
        try:
            reason = await link.run(self._notice)
        finally:
            self._lose(link, "the connection was closed")
        self.why_not = reason

    def _notice(self, notice: Notice) -> None:
        if isinstance(notice, Monitored):
            self._report(TableChanged(self.switch))
        elif isinstance(notice, PacketIn):
            self._report(Packet(self.switch, notice.port, notice.data))
        elif 1 <= notice.port <= MAX_PORT:
            self._report(PortChanged(self.switch, notice.port, notice.up))

    def _missed(self, why: str) -> None:
        """There is no connection; whoever wants to know is told when the reason is another than before."""
        known, self.why_not = self.why_not, why
        if why != known and self._link is None:
            self._report(Disconnected(self.switch, why))

    @property
    def connected(self) -> bool:
        return self._link is not None

    def _lose(self, link: Link, reason: str) -> None:
        link.give_up(reason)
        if self._link is link:
            self._link = None
            self._connected.clear()
            self.unknown = link.reason
            self._report(Disconnected(self.switch, link.reason))

    # Requests.

    async def apply(self, ops: Sequence[FlowOp]) -> None:
        """Have a batch carried out as a whole, or raise why nothing of it was, or why that is unknown."""
        deadline = self._deadline()
        async with self._in_turn():
            link = None if self.unknown is not None else await self._live_link(deadline)
            if link is None or self.unknown is not None:
                raise Unacknowledged(switch=self.switch, reason=self.unknown or "")
            try:
                answer = await self._ask(link, link.apply(ops)) if ops else None
                if isinstance(answer, BatchRefused):
                    raise await self._refusal(link, ops, answer)
            except Lost as error:
                raise Unacknowledged(switch=self.switch, reason=str(error)) from error

    async def read(self, groups: Iterable[Prefix], *, remove: bool = True) -> tuple[tuple[Flow, ...], int]:
        """What the switch holds of ours and within our groups; with that it is known again.

        Those that no flow can say are removed, or not; how many there are, comes second.
        """
        deadline = self._deadline()
        async with self._in_turn():
            link = await self._live_link(deadline)
            try:
                entries = within(await self._ask(link, link.list_entries()), groups)
                said = [(entry, entry.flow) for entry in entries]
                strangers = [entry for entry, flow in said if flow is None]
                answer = await self._ask(link, link.remove(strangers)) if strangers and remove else None
            except Lost as error:
                raise SwitchError(f"switch {self.switch} cannot be read: {error}") from error
            if isinstance(answer, BatchRefused):
                raise SwitchError(f"switch {self.switch} does not remove entries: {answer.failure.reason}")
            if self._link is link:
                self.unknown = None
            flows = [flow for _, flow in said if flow is not None]
            return tuple(sorted(flows, key=_by_key)), len(strangers)

    async def list_ports(self) -> tuple[Port, ...]:
        """The ports that the switch has."""
        deadline = self._deadline()
        async with self._in_turn():
            link = await self._live_link(deadline)
            try:
                return await self._ask(link, link.list_ports())
            except Lost as error:
                raise SwitchError(f"the ports of switch {self.switch} cannot be read: {error}") from error

    async def fence(self, number: int, closed: bool) -> None:
        """Have a port fenced or opened; one that is not there carries nothing, so there is nothing to be done."""
        deadline, what = self._deadline(), "fenced" if closed else "opened"
        async with self._in_turn():
            link = await self._live_link(deadline)
            try:
                ports = {port.number: port for port in await self._ask(link, link.list_ports())}
                if number not in ports:
                    return
                answer = await self._ask(link, link.fence(ports[number], closed))
            except Lost as error:
                raise SwitchError(
                    f"whether port {number} of switch {self.switch} was {what} is unknown: {error}"
                ) from error
            if isinstance(answer, BatchRefused):
                reason = answer.failure.reason
                raise SwitchError(f"port {number} of switch {self.switch} is not {what}: {reason}")

    async def punt(self, punts: Sequence[Punt]) -> bool:
        """Make the service entries exactly these; says whether anything had to be changed."""
        deadline = self._deadline()
        async with self._in_turn():
            link = await self._live_link(deadline)
            try:
                entries = await self._ask(link, link.list_service())
                todo = changes(entries, await self._ask(link, link.list_meters()), punts)
                for meters, command in (
                    (todo.new_meters, ofp.OFPMC_ADD),
                    (todo.changed_meters, ofp.OFPMC_MODIFY),
                ):
                    await self._change_meters(link, meters, command)
                if todo.install or todo.remove:
                    self._check_service(await self._ask(link, link.serve(todo.install, todo.remove)))
                await self._change_meters(link, todo.old_meters, ofp.OFPMC_DELETE)
            except Lost as error:
                raise SwitchError(
                    f"which packets switch {self.switch} hands over is unknown: {error}"
                ) from error
            return bool(todo)

    async def _change_meters(self, link: Link, meters: Sequence[Meter], command: int) -> None:
        if meters:
            self._check_service(await self._ask(link, link.change_meters(meters, command)))

    def _check_service(self, answer: BatchApplied | BatchRefused) -> None:
        if isinstance(answer, BatchRefused):
            raise SwitchError(
                f"switch {self.switch} does not hand over packets as it is asked to: {answer.failure.reason}"
            )

    async def send_packet(self, port: int, data: bytes) -> None:
        """Have the switch send a packet out of a port."""
        (await self._live_link(self._deadline())).send_packet(port, data)

    async def _ask(self, link: Link, question: Awaitable[Answer]) -> Answer:
        """The answer; where none was waited for, the connection is of no more use."""
        try:
            return await question
        except Lost as error:
            self._lose(link, str(error))
            raise
        except asyncio.CancelledError:
            self._lose(link, "a request was abandoned")
            raise

    async def _live_link(self, deadline: float) -> Link:
        try:
            async with asyncio.timeout_at(deadline):
                while self._link is None:
                    await self._connected.wait()
        except TimeoutError:
            raise SwitchError(f"switch {self.switch} is not connected: {self.why_not}") from None
        return self._link

    async def _refusal(
        self, link: Link, ops: Sequence[FlowOp], answer: BatchRefused
    ) -> SwitchError | TableFull:
        if answer.op_index is None:
            return SwitchError(f"switch {self.switch} refused a batch: {answer.failure.reason}")
        if not answer.failure.table_full:
            flow = ops[answer.op_index].flow
            return SwitchError(
                f"switch {self.switch} refused {ops[answer.op_index].kind.value} of {flow.match} "
                f"at priority {flow.priority}: {answer.failure.reason}"
            )
        # The switch does not say how much room it has; it was full when it came to that operation.
        entries = await self._ask(link, link.list_entries())
        held = {(entry.match, entry.priority) for entry in entries}
        for op in ops[: answer.op_index]:
            key = match_bytes(op.flow.match), op.flow.priority
            if op.kind is OpKind.INSTALL:
                held.add(key)
            elif op.kind is OpKind.REMOVE:
                held.discard(key)
        return TableFull(switch=self.switch, needed=len(held) + 1, capacity=len(held))

    def _deadline(self) -> float:
        """Until when a request that comes now waits for a connection."""
        return asyncio.get_running_loop().time() + self._timing.connect

    @asynccontextmanager
    async def _in_turn(self) -> AsyncIterator[None]:
        if self._waiting >= MOST_WAITING:
            raise SwitchError(
                f"switch {self.switch} has {MOST_WAITING} requests waiting; let them settle first"
            )
        self._waiting += 1
        try:
            async with self._turn:
                yield
        finally:
            self._waiting -= 1


def _by_key(flow: Flow) -> tuple[tuple[int, ...], int]:
    """The order of flows, of plain numbers: tables are large."""
    return flow.match.sort_key, flow.priority
