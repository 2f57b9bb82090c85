"""The hosts of a lab as senders and receivers of datagrams, in one process.

A socket stays in the namespace that it was made in. Datagrams are sent by plain UDP sockets; they are received from
the wire itself, since a host's UDP sockets would pass over packets to groups that it has not joined.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack

from flowsieve.client.event_sockets import (
    IPV6_FREEBIND,
    RECEIVE_BUFFER,
    SO_RCVBUFFORCE,
    leave_by,
    sent_from,
)
from flowsieve.errors import LabError, SwitchError
from flowsieve.flow.wiring import HOP_LIMIT
from flowsieve.header.address import WIDTH
from flowsieve.lab.blueprint import HOST_INTERFACE
from flowsieve.lab.lab import Lab

PORT = 9  # "discard": nobody listens there
RECEIVE_SECONDS = 5.0

# Constants of Linux that the socket module of Python 3.11 lacks.
ETH_P_ALL = 0x0003
SOL_PACKET = 263
PACKET_IGNORE_OUTGOING = 23

_FAMILIES = {4: socket.AF_INET, 6: socket.AF_INET6}
_HEADERS = {4: 20 + 8, 6: 40 + 8}  # bytes of IP, without options, and UDP


class Hosts:
    """Every host of a lab, by its number in the topology's order."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._names = tuple(lab.topology.hosts)
        self._wires: list[socket.socket] = []
        self._senders: dict[tuple[int, int], socket.socket] = {}
        try:
            for number in range(len(self._names)):
                self._wires.append(self._made(number, socket.AF_PACKET, _listen_on_wire))
        except LabError:
            self.close()
            raise

    def close(self) -> None:
        for each in (*self._wires, *self._senders.values()):
            each.close()

    def __enter__(self) -> Hosts:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def send(self, host: int, family: int, address: int, payload: bytes, source: int | None = None) -> None:
        """Have a host send a datagram, from its own address or, in IPv6, from any other."""
        if (host, family) not in self._senders:
            self._senders[host, family] = self._made(host, _FAMILIES[family], _send_to_groups)
        where = socket.inet_ntop(_FAMILIES[family], address.to_bytes(WIDTH[family] // 8, "big"))
        try:
            told = sent_from(b"" if source is None else source.to_bytes(16))
            self._senders[host, family].sendmsg([payload], told, 0, (where, PORT))
        except OSError as error:
            raise LabError(f"host {self._names[host]!r} cannot send to {where}: {error.strerror}") from None

    def receive(self, host: int, count: int) -> Iterator[bytes]:
        """The payloads of the next `count` packets that reach a host; an empty one for what is no datagram.

        Raises an error if they do not come.
        """
        wire = self._wires[host]
        for n in range(count):
            try:
                packet = wire.recv(0xFFFF)
            except TimeoutError:
                lost = f"host {self._names[host]!r} lost {count - n} of the last {count} packets sent to it"
                raise SwitchError(lost) from None
            yield packet[_HEADERS.get(packet[0] >> 4, len(packet)) :]

    def _made(self, host: int, family: int, set_up: Callable[[socket.socket], None]) -> socket.socket:
        """A socket for datagrams on a host."""
        try:
            with self._lab.inside(self._names[host]), ExitStack() as unless_set_up:
                made = unless_set_up.enter_context(socket.socket(family, socket.SOCK_DGRAM))
                set_up(made)
                unless_set_up.pop_all()
                return made
        except OSError as error:
            raise LabError(f"host {self._names[host]!r} has no socket: {error.strerror}") from None


def _listen_on_wire(wire: socket.socket) -> None:
    """Packets from their IP header on, as they come in; of no protocol, so that none comes before it is bound."""
    wire.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    wire.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER)
    wire.bind((HOST_INTERFACE, ETH_P_ALL))
    wire.settimeout(RECEIVE_SECONDS)


def _send_to_groups(sender: socket.socket) -> None:
    """Packets leave by the host's interface, and are not heard by the host itself."""
    leave_by(sender, socket.if_nametoindex(HOST_INTERFACE), hops=HOP_LIMIT, loop=False)
    if sender.family == socket.AF_INET6:
        sender.setsockopt(socket.IPPROTO_IPV6, IPV6_FREEBIND, 1)  # labels may stand in the source
