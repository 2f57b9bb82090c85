"""Datagrams whose checksums are finished when they leave the host, whatever its interface promises.

An interface that offers to finish checksums (checksum offload) gets packets without them. A veth pair or a virtual
card passes these on as they are, and a switch that is no part of the kernel takes them for damaged, and so does the
receiver. A datagram that is put together of several pieces is never left to the interface: Linux sums it up itself.
"""

from __future__ import annotations

import array
import fcntl
import socket
import struct
from collections.abc import Sequence
from typing import Any, Protocol

SIOCETHTOOL = 0x8946
ETHTOOL_GTXCSUM = 0x16
_REQUEST = struct.Struct("16sP16x")  # an interface's name, and where the question and its answer are

Ancillary = Sequence[tuple[int, int, bytes]]


class SendTo(Protocol):
    """Sends bytes to an address; `ancillary` is what the kernel is told of it besides."""

    def __call__(self, payload: bytes, to: tuple[Any, ...], ancillary: Ancillary = ()) -> None: ...


def sends_whole(sender: socket.socket, index: int) -> SendTo:
    """What sends datagrams of a UDP socket by an interface; a second call of the kernel is made only if it has to."""
    if not leaves_checksums(index):

        def send(payload: bytes, to: tuple[Any, ...], ancillary: Ancillary = ()) -> None:
            if ancillary:
                sender.sendmsg([payload], ancillary, 0, to)
            else:
                sender.sendto(payload, to)

    else:

        def send(payload: bytes, to: tuple[Any, ...], ancillary: Ancillary = ()) -> None:
            if ancillary:
                sender.sendmsg([payload], ancillary, socket.MSG_MORE, to)
            else:
                sender.sendto(payload, socket.MSG_MORE, to)
            sender.send(b"")  # the last piece: it goes now

    return send


def leaves_checksums(index: int) -> bool:
    """Whether packets get to an interface without their checksums; if nobody says, they do not."""
    question = array.array("I", [ETHTOOL_GTXCSUM, 0])
    place, _ = question.buffer_info()
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
            fcntl.ioctl(control, SIOCETHTOOL, _REQUEST.pack(socket.if_indextoname(index).encode(), place))
    except OSError:
        return False
    return bool(question[1])
