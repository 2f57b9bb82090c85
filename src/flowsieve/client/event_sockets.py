"""The host's side of the wire: datagrams to the groups of events, and from the group that is the host's own.

The last switch readdresses events to the host's own group, which all applications of the host join; the kernel hands
each of them a copy. A switch does not send back where a packet came from, so a publisher sends one more copy to its
own host's group, with no hop to go: it reaches the other applications and never the wire.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Callable, Iterable, Iterator

from flowsieve.client.outbox import EventDatagram
from flowsieve.client.whole_checksums import sends_whole
from flowsieve.errors import BadInput, HostError, nearest
from flowsieve.flow.wiring import HOP_LIMIT
from flowsieve.protocol.addresses import EVENT_PORT, NOTICE_PORT

RECEIVE_BUFFER = 8 << 20  # bytes
SEND_SECONDS = 1  # how long a full send buffer may hold us up
BATCH = 64  # datagrams read in one go, before others get their turn
LARGEST = 0xFFFF
KNOWN = 1 << 14  # addresses kept in the form that the kernel wants

# Constants of Linux that the socket module of Python 3.11 lacks.
SO_RCVBUFFORCE = 33
SO_MEMINFO = 55
IPV6_FREEBIND = 78
MEMINFO = struct.Struct("=9I")  # the last one is how many datagrams were dropped

FAMILIES = {4: socket.AF_INET, 16: socket.AF_INET6}  # by the length of an address


class EventSockets:
    """An EventWire of UDP sockets, by one interface; `own` is the group of the host itself."""

    def __init__(self, own: str, interface: str | None) -> None:
        self._group, self._index = own, interface_index(interface)
        self._packed = packed_address(own)
        self._family = FAMILIES[len(self._packed)]
        self._sockaddrs: dict[bytes, tuple[str, int]] = {}
        self._own = _sockaddr(own, self._family, self._index)
        self._far = _opened(self._family)
        self._near = _opened(self._family)
        self._send_far = sends_whole(self._far, self._index)
        self._receiver: socket.socket | None = None
        self._notices: socket.socket | None = None
        self._dropped = 0  # before it was closed
        try:
            leave_by(self._far, self._index, hops=HOP_LIMIT, loop=False)
            if self._family == socket.AF_INET6:  # a label may stand in the source; that takes no privilege
                self._far.setsockopt(socket.IPPROTO_IPV6, IPV6_FREEBIND, 1)
            leave_by(self._near, self._index, hops=0, loop=True)
        except OSError as error:
            self.close()
            raise HostError(f"this host cannot send to groups: {error.strerror}") from None

    def send(self, datagrams: Iterable[EventDatagram]) -> None:
        for to, payload, near, source in datagrams:
            try:
                if to:
                    self._send_far(payload, self._sockaddr(to), sent_from(source))
                if near:
                    self._near.sendto(payload, self._own)
            except OSError as error:
                where = socket.inet_ntop(self._family, to) if to else "itself"
                raise HostError(f"this host cannot send to {where}: {error.strerror or error}") from None

    def _sockaddr(self, to: bytes) -> tuple[str, int]:
        known = self._sockaddrs.get(to)
        if known is None:
            if len(self._sockaddrs) >= KNOWN:
                self._sockaddrs.clear()
            known = self._sockaddrs[to] = (socket.inet_ntop(self._family, to), EVENT_PORT)
        return known

    def listen(self, ready: Callable[[], object]) -> None:
        self._receiver = self._joined(EVENT_PORT, RECEIVE_BUFFER)
        asyncio.get_running_loop().add_reader(self._receiver, ready)

    def hear_notices(self, hear: Callable[[bytes], None]) -> None:
        self._notices = notices = self._joined(NOTICE_PORT)
        asyncio.get_running_loop().add_reader(notices, _hear_waiting, notices, hear)

    def _joined(self, port: int, buffer: int = 0) -> socket.socket:
        """A socket that gets what comes to a port of the host's own group, beside those of other applications."""
        receiver = socket.socket(self._family, socket.SOCK_DGRAM)
        try:
            receiver.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if buffer:
                _enlarge(receiver, buffer)
            receiver.bind(_sockaddr(self._group, self._family, self._index, port))
            if self._family == socket.AF_INET6:
                joined = self._packed + struct.pack("@I", self._index)
                receiver.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, joined)
            else:
                joined = struct.pack("4s4si", self._packed, b"", self._index)
                receiver.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, joined)
            receiver.setblocking(False)
        except OSError as error:
            receiver.close()
            raise HostError(
                f"this host cannot listen to {self._group} port {port}: {error.strerror}"
            ) from None
        return receiver

    def waiting(self) -> Iterator[bytes]:
        assert self._receiver is not None, "listen first"
        for _ in range(BATCH):
            try:
                yield self._receiver.recv(LARGEST)
            except BlockingIOError:
                return
            except OSError as error:
                asyncio.get_running_loop().remove_reader(self._receiver)
                raise HostError(f"this host receives no more: {error.strerror}") from None

    @property
    def dropped(self) -> int:
        if self._receiver is None:
            return self._dropped
        return int(MEMINFO.unpack(self._receiver.getsockopt(socket.SOL_SOCKET, SO_MEMINFO, MEMINFO.size))[-1])

    def close(self) -> None:
        self._far.close()
        self._near.close()
        if self._receiver is not None:
            asyncio.get_running_loop().remove_reader(self._receiver)
            self._dropped, receiver, self._receiver = self.dropped, self._receiver, None
            receiver.close()
        if self._notices is not None:
            asyncio.get_running_loop().remove_reader(self._notices)
            self._notices.close()
            self._notices = None


def packed_address(text: str) -> bytes:
    """An IPv4 or IPv6 address as its bytes."""
    for family in FAMILIES.values():
        with contextlib.suppress(OSError):
            return socket.inet_pton(family, text)
    raise BadInput(f"{text!r} is no IP address")


def interface_index(name: str | None) -> int:
    """The number of an interface; without a name that of the only one besides the loopback."""
    there = {known: index for index, known in socket.if_nameindex() if known != "lo"}
    if name is None:
        if len(there) != 1:
            raise HostError(
                f"events may go by one of {', '.join(there) or 'no interface at all'}; name the right one"
            )
        return next(iter(there.values()))
    if name not in there:
        raise HostError(
            f"there is no interface {name!r} here{nearest(name, there)}; "
            "clients run on the hosts themselves, as with `flowsieve lab exec HOST`"
        )
    return there[name]


def _opened(family: int) -> socket.socket:
    opened = socket.socket(family, socket.SOCK_DGRAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("@ll", SEND_SECONDS, 0))
    return opened


def leave_by(sender: socket.socket, index: int, *, hops: int, loop: bool) -> None:
    if sender.family == socket.AF_INET6:
        sender.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)
        sender.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, hops)
        sender.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_LOOP, loop)
    else:
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, struct.pack("4s4si", b"", b"", index))
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, hops)
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, loop)


def sent_from(source: bytes) -> list[tuple[int, int, bytes]]:
    """What tells the kernel to send from an address that is not the host's own, by the interface of the socket."""
    return [(socket.IPPROTO_IPV6, socket.IPV6_PKTINFO, source + bytes(4))] if source else []


def _enlarge(receiver: socket.socket, buffer: int) -> None:
    try:
        receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, buffer)
    except PermissionError:
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)


def _hear_waiting(receiver: socket.socket, hear: Callable[[bytes], None]) -> None:
    """Hand on the notices that are there; what stands in their way is no harm, since they are hints."""
    with contextlib.suppress(OSError):
        for _ in range(BATCH):
            hear(receiver.recv(LARGEST))


def _sockaddr(
    address: str, family: int, index: int, port: int = EVENT_PORT
) -> tuple[str, int] | tuple[str, int, int, int]:
    return (address, port, 0, index) if family == socket.AF_INET6 else (address, port)
