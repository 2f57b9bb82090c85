"""The host's side of the wire: datagrams to the groups of events, and from the group that is the host's own.

The last switch readdresses events to the host's own group, which all applications of the host join; the kernel hands
each of them a copy. A switch does not send back where a packet came from, so a publisher sends one more copy to its
own host's group, with no hop to go: it reaches the other applications and never the wire.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterable, Iterator

from flowsieve.client.outbox import Datagram
from flowsieve.errors import BadInput, HostError, nearest
from flowsieve.flow.wiring import HOP_LIMIT

PORT = 9559
RECEIVE_BUFFER = 8 << 20  # bytes
SEND_SECONDS = 1.0  # how long a full send buffer may hold us up
BATCH = 64  # datagrams read in one go, before others get their turn
LARGEST = 0xFFFF
KNOWN = 1 << 14  # addresses kept in the form that the kernel wants

# Constants of Linux that the socket module of Python 3.11 lacks.
SO_RCVBUFFORCE = 33
SO_MEMINFO = 55
MEMINFO = struct.Struct("=9I")  # the last one is how many datagrams were dropped

FAMILIES = {4: socket.AF_INET, 16: socket.AF_INET6}  # by the length of an address


class Sender:
    """Sends datagrams of one family by one interface; `own` is the group of the host itself."""

    def __init__(self, own: str, interface: str | None) -> None:
        packed, index = packed_address(own), interface_index(interface)
        self._family = FAMILIES[len(packed)]
        self._sockaddrs: dict[bytes, tuple[str, int]] = {}
        self._own = _sockaddr(own, self._family, index)
        self._wire = _opened(self._family)
        self._near = _opened(self._family)
        try:
            leave_by(self._wire, index, hops=HOP_LIMIT, loop=False)
            leave_by(self._near, index, hops=0, loop=True)
        except OSError as error:
            self.close()
            raise HostError(f"this host cannot send to groups: {error.strerror}") from None

    def send(self, datagrams: Iterable[Datagram]) -> None:
        """Send to the network, and to the other applications of this host."""
        for to, payload in datagrams:
            sockaddr = self._sockaddrs.get(to)
            if sockaddr is None:
                if len(self._sockaddrs) >= KNOWN:
                    self._sockaddrs.clear()
                sockaddr = self._sockaddrs[to] = (socket.inet_ntop(self._family, to), PORT)
            try:
                self._wire.sendto(payload, sockaddr)
                self._near.sendto(payload, self._own)
            except OSError as error:
                raise HostError(
                    f"this host cannot send to {sockaddr[0]}: {error.strerror or error}"
                ) from None

    def close(self) -> None:
        self._wire.close()
        self._near.close()


class Receiver:
    """Receives what comes to the host's own group, beside all others on the host that do."""

    def __init__(self, own: str, interface: str | None) -> None:
        packed, index = packed_address(own), interface_index(interface)
        family = FAMILIES[len(packed)]
        self.socket = socket.socket(family, socket.SOCK_DGRAM)
        try:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            _enlarge(self.socket)
            self.socket.bind(_sockaddr(own, family, index))
            if family == socket.AF_INET6:
                joined = packed + struct.pack("@I", index)
                self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, joined)
            else:
                joined = struct.pack("4s4si", packed, b"", index)
                self.socket.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, joined)
            self.socket.setblocking(False)
        except OSError as error:
            self.socket.close()
            raise HostError(f"this host cannot listen to {own} port {PORT}: {error.strerror}") from None

    def waiting(self, most: int = BATCH) -> Iterator[bytes]:
        """The datagrams that are there already, not more than so many."""
        for _ in range(most):
            try:
                yield self.socket.recv(LARGEST)
            except BlockingIOError:
                return
            except OSError as error:
                raise HostError(f"this host receives no more: {error.strerror}") from None

    @property
    def dropped(self) -> int:
        """How many datagrams came while the buffer was full."""
        return int(MEMINFO.unpack(self.socket.getsockopt(socket.SOL_SOCKET, SO_MEMINFO, MEMINFO.size))[-1])

    def close(self) -> None:
        self.socket.close()


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
    whole, part = divmod(SEND_SECONDS, 1)
    opened.setsockopt(
        socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("@ll", int(whole), int(part * 1_000_000))
    )
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


def _enlarge(receiver: socket.socket) -> None:
    try:
        receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER)
    except PermissionError:
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)


def _sockaddr(address: str, family: int, index: int) -> tuple[str, int] | tuple[str, int, int, int]:
    return (address, PORT, 0, index) if family == socket.AF_INET6 else (address, PORT)
