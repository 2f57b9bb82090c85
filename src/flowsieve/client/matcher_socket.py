"""Where the applications of a host find its matcher: a socket without a file, which the host's network alone has.

Whoever holds it is the host's matcher; when its process ends, however that is, the name is free at once. Messages go
both ways as whole packets (SOCK_SEQPACKET): a question is a list of events, each a map of values; its answer says with
which version they were matched, until when they may be sent (by the host's own clock), how many bits number the sets,
and for each event the receivers, as the bytes of a bit mask. Where labels are Bloom filters, there is instead for each
event a list of packets, each with its bits and its receivers. An answer may be about the first of the events alone, if
more would not fit. Questions of a connection are answered in their order.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

import msgpack

from flowsieve.errors import BadMessage, Denied, HostError

LARGEST = 128 << 10  # bytes of a packet
MOST_EVENTS = 64  # of a question
_HEAD = 64  # bytes of an answer beside what it says of events
_CREDENTIALS = struct.Struct("3i")


def name_of(network: str, host: str) -> str:
    """The name of the socket, for a host of a network; by whatever way its applications reach the controller."""
    return f"\0flowsieve-matcher-{blake2b(f'{network} {host}'.encode(), digest_size=8).hexdigest()}"


def taken(network: str, host: str) -> socket.socket | None:
    """The socket of a new matcher; None if the host has one."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        made.bind(name_of(network, host))
        made.listen(64)
        made.setblocking(False)
        return made
    except OSError:
        made.close()
        return None


def found(network: str, host: str) -> socket.socket | None:
    """A connection to the host's matcher; None if there is none."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        made.connect(name_of(network, host))
        made.setblocking(False)
    except OSError:
        made.close()
        return None
    if not trusted(made):
        made.close()
        raise Denied("somebody else's process says that it is this host's matcher; the operator can end it")
    return made


def process_of(peer: socket.socket) -> tuple[int, int]:
    """The process at the other end, and its user, by their numbers."""
    told = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    process, user, _ = _CREDENTIALS.unpack(told)
    return process, user


def trusted(peer: socket.socket) -> bool:
    """Whether the process at the other end is this user's, or root's."""
    _, user = process_of(peer)
    return user in (0, os.geteuid()) or os.geteuid() == 0


class LabelPacket(NamedTuple):
    """A packet of an event: its bits, and the receivers that want the event and are sent it with that packet."""

    bits: int
    receivers: int


@dataclass(frozen=True, slots=True)
class LabelMatch:
    """The receivers of an event, a bit for each; and its packets, where labels are Bloom filters."""

    receivers: int
    packets: tuple[LabelPacket, ...] | None = None


@dataclass(frozen=True, slots=True)
class LabelAnswer:
    """An answer: for whom each event is; it may be sent until that time of CLOCK_MONOTONIC."""

    version: int
    until: float
    set_bits: int
    matched: tuple[LabelMatch, ...]


def pack_question(events: Sequence[Mapping[str, object]]) -> bytes:
    packed: bytes = msgpack.packb(events)
    return packed


def read_question(packet: bytes) -> list[dict[str, Any]]:
    """The events that somebody asks about; BadMessage if it is no question."""
    try:
        told = msgpack.unpackb(packet)
    except (ValueError, TypeError, RecursionError) as error:
        raise BadMessage(f"a question that is no MessagePack: {error}") from None
    if not isinstance(told, list) or not all(isinstance(each, dict) for each in told):
        raise BadMessage("a question is a list of events")
    return told


def pack_answer(answer: LabelAnswer) -> bytes:
    """The bytes of an answer, about as many events as fit; one always does."""
    told, room = list[object](), LARGEST - _HEAD
    for each in answer.matched:
        one = _packed(each.receivers) if each.packets is None else [_pair(pair) for pair in each.packets]
        room -= len(msgpack.packb(one))
        if room < 0 and told:
            break
        told.append(one)
    packed: bytes = msgpack.packb((answer.version, answer.until, answer.set_bits, told))
    return packed


def read_answer(packet: bytes) -> LabelAnswer:
    """What the matcher says; HostError where it is no answer."""
    try:
        version, until, set_bits, told = msgpack.unpackb(packet)
        return LabelAnswer(int(version), float(until), int(set_bits), tuple(map(_matched, told)))
    except (ValueError, TypeError) as error:
        raise HostError(f"the host's matcher is of another version: {error}") from None


def _packed(mask: int) -> bytes:
    return mask.to_bytes((mask.bit_length() + 7) // 8)


def _pair(packet: LabelPacket) -> tuple[bytes, bytes]:
    return _packed(packet.bits), _packed(packet.receivers)


def _matched(told: Any) -> LabelMatch:
    if isinstance(told, bytes):
        return LabelMatch(int.from_bytes(told))
    packets = tuple(LabelPacket(int.from_bytes(bits), int.from_bytes(receivers)) for bits, receivers in told)
    everyone = 0
    for packet in packets:
        everyone |= packet.receivers
    return LabelMatch(everyone, packets)
