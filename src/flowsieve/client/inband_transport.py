"""Calls to the controller through the network itself, to the address that every switch hands to it.

A call is sent again until it is answered or its deadline is over; the controller carries it out once, since it knows a
call by its session and number. Answers come to the socket that the call was sent from.
"""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any

from flowsieve.client.event_sockets import BATCH, LARGEST, interface_index, leave_by
from flowsieve.client.pending_call import PendingCall
from flowsieve.client.whole_checksums import sends_whole
from flowsieve.client.wire import CallWire, Inside
from flowsieve.errors import BadInput, BadMessage, ControlLost, HostError, OtherVersion
from flowsieve.flow.wiring import HOP_LIMIT
from flowsieve.header.address import address_text
from flowsieve.protocol.addresses import CONTROL_ADDRESSES, CONTROL_PORT
from flowsieve.protocol.answer import Answer
from flowsieve.protocol.call import CallKey
from flowsieve.protocol.call_datagram import Gone, Part, Unreadable, decode
from flowsieve.protocol.limits import MAX_DATAGRAM
from flowsieve.protocol.version import VERSION

_FAMILIES = {4: socket.AF_INET, 6: socket.AF_INET6}


class InbandTransport:
    """Calls to the controller over a wire, any number of them at a time."""

    room = MAX_DATAGRAM

    def __init__(self, wire: CallWire, draw: Callable[[], float] = random.random) -> None:
        self._wire = wire
        self._draw = draw
        self._calls: dict[CallKey, tuple[PendingCall, asyncio.Event]] = {}
        self._closed = False
        self._trouble = ""  # why the last datagram could not be sent, if it could not
        self._unread = ""  # why an answer could not be read, if one could not
        wire.listen(self._hear)

    @classmethod
    def open(
        cls, interface: str | None = None, *, family: int = 6, inside: Inside = nullcontext
    ) -> InbandTransport:
        """Calls by an interface of this host; the socket is made `inside` a context, on another host of a lab, say."""
        with inside():
            return cls(ControlSocket(interface, family))

    async def call(self, message: Mapping[str, Any]) -> Answer:
        """Make a call; returns its answer, or raises ControlLost when the deadline is over without one."""
        loop = asyncio.get_running_loop()
        asking, heard = PendingCall(message, loop.time(), self._draw), asyncio.Event()
        if asking.key in self._calls:
            raise BadInput(f"call {message['n']} of this session is under way already; right is a new number")
        self._calls[asking.key] = asking, heard
        try:
            while not asking.done and not self._closed and loop.time() < asking.deadline:
                self._send(asking.due(loop.time()))
                await _wait(heard, min(asking.next_at, asking.deadline))
        finally:
            del self._calls[asking.key]
        if asking.answer is not None:
            return asking.answer
        late = f"no answer in time{self._trouble}{self._unread}"
        why = "the connection was closed" if self._closed else late
        raise ControlLost(f"the controller did not answer {message['op']!r} through the network: {why}")

    async def close(self) -> None:
        """Make no more calls; those under way are lost."""
        self._closed = True
        self._wire.close()
        for _, heard in self._calls.values():
            heard.set()

    def _hear(self, datagram: bytes) -> None:
        try:
            message = decode(datagram)
        except BadMessage:
            return  # whoever sent it
        if isinstance(message, Unreadable):
            self._unread = f"; {OtherVersion(client=VERSION, controller=message.version)}"
        elif isinstance(message, Part | Gone) and message.key in self._calls:
            asking, heard = self._calls[message.key]
            self._send(asking.hear(message, asyncio.get_running_loop().time()))
            heard.set()

    def _send(self, datagrams: list[bytes]) -> None:
        try:
            for datagram in datagrams:
                self._wire.send(datagram)
                self._trouble = ""
        except HostError as error:
            self._trouble = f"; {error}"  # it may pass: a cable that is plugged in again


async def _wait(heard: asyncio.Event, until: float) -> None:
    try:
        async with asyncio.timeout_at(until):
            await heard.wait()
    except TimeoutError:
        pass
    heard.clear()


class ControlSocket:
    """A UDP socket of this host that sends to the controller's address and receives what comes to itself."""

    def __init__(self, interface: str | None, family: int = 6) -> None:
        if family not in _FAMILIES:
            raise BadInput(f"there is no IP of version {family}; right is 4 or 6")
        index = interface_index(interface)
        where = address_text(family, CONTROL_ADDRESSES[family].first)
        self._to = (where, CONTROL_PORT, 0, index) if family == 6 else (where, CONTROL_PORT)
        self._socket = socket.socket(_FAMILIES[family], socket.SOCK_DGRAM)
        self._send_whole = sends_whole(self._socket, index)
        self._loop: asyncio.AbstractEventLoop | None = None
        try:
            leave_by(self._socket, index, hops=HOP_LIMIT, loop=False)
            self._socket.bind(("", 0))
            self._socket.setblocking(False)
        except OSError as error:
            self._socket.close()
            raise HostError(f"this host cannot call the controller: {error.strerror}") from None

    def send(self, datagram: bytes) -> None:
        try:
            self._send_whole(datagram, self._to)
        except BlockingIOError:
            pass  # as good as lost on the way
        except OSError as error:
            raise HostError(f"this host cannot send to {self._to[0]}: {error.strerror}") from None

    def listen(self, hear: Callable[[bytes], None]) -> None:
        def take() -> None:
            for _ in range(BATCH):
                try:
                    datagram = self._socket.recv(LARGEST)
                except OSError:
                    return  # nothing more for now, or nothing at all: then no answer comes in time
                hear(datagram)

        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._socket, take)

    def close(self) -> None:
        if self._loop is not None:
            self._loop.remove_reader(self._socket)
        self._socket.close()
