"""One switch, over whichever connection to it there is: dialled again when lost, or taken from a listener."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from flowsieve.errors import SwitchError, TableFull, Unacknowledged
from flowsieve.flow.diff import FlowOp, Kind
from flowsieve.header.address import Prefix
from flowsieve.southbound.openflow.address import Address
from flowsieve.southbound.openflow.connection import Refused
from flowsieve.southbound.openflow.entries import Entry, within
from flowsieve.southbound.openflow.link import Link, Lost, Notice, Timing
from flowsieve.southbound.openflow.packed import match_bytes

MOST_WAITING = 1024  # requests to one switch


@dataclass(frozen=True, slots=True)
class Connected:
    """There is a connection to the switch; what it holds has to be read if there was one before."""

    switch: str


@dataclass(frozen=True, slots=True)
class Disconnected:
    """The connection is gone; what the switch holds is unknown."""

    switch: str
    reason: str


@dataclass(frozen=True, slots=True)
class Noticed:
    """The switch told of a port or handed over a packet."""

    switch: str
    what: Notice


SwitchEvent = Connected | Disconnected | Noticed


class Channel:
    """Requests to one switch, one after the other.

    Once a connection was lost, what the switch holds is unknown: no batch is taken before its entries were
    listed anew. That list is not overtaken by a commit on the lost connection: a commit is sent only after the
    switch has read all before it, so it is the next thing that the switch reads, before it greets us again.
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

    async def keep_dialling(self, address: Address) -> None:
        """Have a connection, again and again."""
        retry = self._timing.first_retry
        while True:
            try:
                async with asyncio.timeout(self._timing.connect):
                    streams = await address.dial()
                link = Link(streams, self._timing, self._decrement)
                await link.greet()
            except (OSError, SwitchError) as error:
                self.why_not = f"{address}: {str(error) or type(error).__name__}"
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
            reason = await link.run(lambda notice: self._report(Noticed(self.switch, notice)))
        finally:
            self._lose(link, "the connection was closed")
        self.why_not = reason

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
        with self._queued():
            async with self._turn:
                link = None if self.unknown is not None else await self._live_link(deadline)
                if link is None or self.unknown is not None:
                    raise Unacknowledged(switch=self.switch, reason=self.unknown or "")
                try:
                    answer = await link.apply(ops) if ops else None
                    if isinstance(answer, Refused):
                        raise await self._refusal(link, ops, answer)
                except Lost as error:
                    self._lose(link, str(error))
                    raise Unacknowledged(switch=self.switch, reason=str(error)) from error

    async def list_entries(self) -> tuple[Entry, ...]:
        """What the switch holds; with that it is known again."""
        deadline = self._deadline()
        with self._queued():
            async with self._turn:
                return await self._list(await self._live_link(deadline))

    async def expel(self, groups: Iterable[Prefix]) -> int:
        """Have the entries within our groups removed that are none of ours and cannot be told as flows."""
        deadline = self._deadline()
        with self._queued():
            async with self._turn:
                link = await self._live_link(deadline)
                strangers = [e for e in within(await self._list(link), groups) if e.flow is None]
                if not strangers:
                    return 0
                try:
                    answer = await link.remove(strangers)
                except Lost as error:
                    self._lose(link, str(error))
                    raise Unacknowledged(switch=self.switch, reason=str(error)) from error
                if isinstance(answer, Refused):
                    raise SwitchError(
                        f"switch {self.switch} does not remove entries: {answer.failure.reason}"
                    )
                return len(strangers)

    async def send_packet(self, port: int, data: bytes) -> None:
        """Have the switch send a packet out of a port."""
        (await self._live_link(self._deadline())).send_packet(port, data)

    async def _list(self, link: Link) -> tuple[Entry, ...]:
        try:
            entries = await link.list_entries()
        except Lost as error:
            self._lose(link, str(error))
            raise SwitchError(f"switch {self.switch} cannot be read: {error}") from error
        if self._link is link:
            self.unknown = None
        return entries

    async def _live_link(self, deadline: float) -> Link:
        try:
            async with asyncio.timeout_at(deadline):
                while self._link is None:
                    await self._connected.wait()
        except TimeoutError:
            raise SwitchError(f"switch {self.switch} is not connected: {self.why_not}") from None
        return self._link

    async def _refusal(self, link: Link, ops: Sequence[FlowOp], answer: Refused) -> SwitchError | TableFull:
        if answer.op_index is None:
            return SwitchError(f"switch {self.switch} refused a batch: {answer.failure.reason}")
        if not answer.failure.table_full:
            flow = ops[answer.op_index].flow
            return SwitchError(
                f"switch {self.switch} refused {ops[answer.op_index].kind.value} of {flow.match.destination} "
                f"at priority {flow.priority}: {answer.failure.reason}"
            )
        # The switch does not say how much room it has; it was full when it came to that operation.
        held = {(entry.match, entry.priority) for entry in await link.list_entries()}
        for op in ops[: answer.op_index]:
            key = match_bytes(op.flow.match.destination), op.flow.priority
            if op.kind is Kind.INSTALL:
                held.add(key)
            elif op.kind is Kind.REMOVE:
                held.discard(key)
        return TableFull(switch=self.switch, needed=len(held) + 1, capacity=len(held))

    def _deadline(self) -> float:
        """Until when a request that comes now waits for a connection."""
        return asyncio.get_running_loop().time() + self._timing.connect

    @contextmanager
    def _queued(self) -> Iterator[None]:
        if self._waiting >= MOST_WAITING:
            raise SwitchError(
                f"switch {self.switch} has {MOST_WAITING} requests waiting; let them settle first"
            )
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1
