"""One live connection to a switch: a `OpenFlowConnection`, which says what goes over it, and its socket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from flowsieve.errors import SwitchError
from flowsieve.southbound.openflow.connection import OpenFlowConnection
from flowsieve.southbound.openflow.events import (
    BatchApplied,
    BatchRefused,
    ConnectionEvent,
    EntriesListed,
    GroupsListed,
    MetersCounted,
    MetersListed,
    Notice,
    PortsListed,
    Ready,
    RoleTold,
)
from flowsieve.southbound.openflow.wire import Failed
from flowsieve.southbound.socket_address import Streams

READ_SIZE = 1 << 16
MOST_UNSENT = 1 << 16  # bytes that wait for a peer to read, before we make more of them
CLOSED = "the peer closed the connection"
T = TypeVar(
    "T", BatchApplied, EntriesListed, PortsListed, MetersListed, MetersCounted, GroupsListed, RoleTold
)


@dataclass(frozen=True, slots=True)
class Timing:
    """How long to wait for what, in seconds."""

    answer: float = 5.0  # for the answer to what we asked
    connect: float = 3.0  # for a connection and its handshake; also how long a request waits for a connection
    echo: float = 1.0  # of silence, before we ask for a sign of life
    silence: float = 4.0  # of silence, before we take the peer for dead
    first_retry: float = 0.05  # before we dial again; doubled from one failure to the next
    last_retry: float = 2.0
    lag: float = 0.02  # after an acknowledgement, for a datapath that cannot be asked to follow the tables


class Lost(SwitchError):
    """The connection is gone, and with it the answer to what was asked."""


class Rejected(SwitchError):
    """The switch refused what was asked, because of one operation (or of all together: None)."""

    def __init__(self, op_index: int | None, failure: Failed) -> None:
        super().__init__(failure.reason)
        self.op_index = op_index
        self.failure = failure


class SwitchSession:
    """A connection that first greets the peer and then works for as long as `run` does.

    `connection` makes the requests, `ask` waits for the answer: `await s.ask(s.connection.list_ports(), PortsListed)`.
    """

    def __init__(self, streams: Streams, timing: Timing, decrement: bool) -> None:
        self._reader, self._writer = streams
        self._writer.transport.set_write_buffer_limits(high=MOST_UNSENT)  # beyond which `drain` waits
        self._timing = timing
        self.connection = OpenFlowConnection(decrement)
        self._loop = asyncio.get_running_loop()
        self._heard = self._loop.time()
        self._to_send = asyncio.Event()
        self._given_up = asyncio.Event()
        self._reason: str | None = None  # why it ends or has ended
        self._waiting: dict[int, asyncio.Future[ConnectionEvent]] = {}
        self._early: list[Notice] = []
        self._notify: Callable[[Notice], None] = self._early.append

    @property
    def reason(self) -> str:
        """Why it has ended, or will."""
        return self._reason or "it goes on"

    async def greet(self) -> int:
        """Shake hands; returns the switch's datapath id."""
        try:
            async with asyncio.timeout(self._timing.connect):
                while True:
                    await self._send()
                    events = list(self.connection.receive(await self._bytes()))
                    for event in events:
                        self._take(event)
                    for event in events:
                        if isinstance(event, Ready):
                            self._to_send.set()
                            return event.datapath
        except BaseException:
            self.abort()
            raise

    async def run(self, notify: Callable[[Notice], None]) -> str:
        """Talk until something ends it; returns what did."""
        self._notify = notify
        for notice in self._early:
            notify(notice)
        work = (self._read(), self._write(), self._watch(), self._end_when_given_up())
        tasks = [asyncio.create_task(each) for each in work]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                error = task.exception()
                assert error is not None, "none of them ends by itself"
                if not isinstance(error, OSError | SwitchError):
                    raise error
                self._reason = self._reason or str(error) or type(error).__name__
        finally:
            self._reason = self._reason or "the connection was closed"
            self.abort()
            for task in tasks:
                task.cancel()
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(Lost(self._reason))
        await asyncio.gather(*tasks, return_exceptions=True)
        return self._reason

    async def ask(self, request: int, answer: type[T]) -> T:
        """The answer to the request of that number; raises Lost if none comes, and Rejected if the switch refuses."""
        if self._reason is not None:
            raise Lost(self._reason)
        future: asyncio.Future[ConnectionEvent] = self._loop.create_future()
        self._waiting[request] = future
        if self._push():
            self._to_send.set()
        try:
            async with asyncio.timeout(self._timing.answer):
                event = await future
        except TimeoutError:
            self.give_up(f"no answer within {self._timing.answer:g} s")
            raise Lost(self._reason) from None
        finally:
            self._waiting.pop(request, None)
        if isinstance(event, BatchRefused):
            raise Rejected(event.op_index, event.failure)
        assert isinstance(event, answer)
        return event

    def send_packet(self, port: int, data: bytes) -> None:
        """Have the switch send a packet out of a port."""
        self.connection.send_packet(port, data)
        self._to_send.set()

    def inject_packet(self, port: int, data: bytes) -> None:
        """Have the switch take in a packet as if it had come in on a port."""
        self.connection.inject_packet(port, data)
        self._to_send.set()

    def give_up(self, reason: str) -> None:
        """Close the connection for a reason of our own."""
        self._reason = self._reason or reason
        self._given_up.set()

    def abort(self) -> None:
        """Close the socket and forget what was not sent."""
        self._writer.transport.abort()

    def _take(self, event: ConnectionEvent) -> None:
        if isinstance(event, Notice):
            self._notify(event)
        elif not isinstance(event, Ready):
            future = self._waiting.get(event.request)
            if future is not None and not future.done():
                future.set_result(event)

    async def _bytes(self) -> bytes:
        try:
            data = await self._reader.read(READ_SIZE)
        except ConnectionError:
            data = b""
        if not data:
            raise Lost(CLOSED)
        self._heard = self._loop.time()
        return data

    async def _send(self) -> None:
        try:
            while self._push():
                await self._writer.drain()
        except ConnectionError:
            raise Lost(CLOSED) from None

    def _push(self) -> bool:
        """Send what is to be sent, as much as the peer keeps up with; whether there is more.

        What is asked is sent at once: the switch is at it while we make the next batch, for another one.
        """
        unsent = self._writer.transport.get_write_buffer_size
        while unsent() <= MOST_UNSENT:
            piece = next(self.connection.outgoing(), None)
            if piece is None:
                return False
            self._writer.write(piece)
        return True

    # What `run` does at the same time.

    async def _read(self) -> None:
        while True:
            for event in self.connection.receive(await self._bytes()):
                self._take(event)
            if self._push():
                self._to_send.set()

    async def _write(self) -> None:
        while True:
            await self._to_send.wait()
            self._to_send.clear()
            await self._send()

    async def _watch(self) -> None:
        """Look for signs of life: a stopped switch keeps its connection for long.

        Time in which we ourselves were held up does not count: nobody listened then.
        """
        while True:
            silent = self._loop.time() - self._heard
            if silent >= self._timing.silence:
                raise Lost(f"no sign of life within {self._timing.silence:g} s")
            if silent >= self._timing.echo:
                self.connection.ping()
                self._to_send.set()
            due = self._loop.time() + self._timing.echo
            await asyncio.sleep(self._timing.echo)
            self._heard += max(0.0, self._loop.time() - due)

    async def _end_when_given_up(self) -> None:
        await self._given_up.wait()
        raise Lost(self._reason)
