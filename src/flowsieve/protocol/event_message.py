"""What a datagram says: an event, or a digest of what was sent so far. Bytes in, values out.

A datagram is one MessagePack array: the protocol's version, the address that it was published to (the last switch
rewrites the packet's own), how many bits of it are the dz, the epoch of the MAC's key, the MAC (see `event_mac`), and
then all that the MAC covers: kind, publisher, sequence number, the stamps (see `client/loss.py`); an event goes on with
its values by attribute name and, if there are any, the bytes that the application added. Where events are not signed,
the MAC is empty.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import msgpack

from flowsieve.content.schema import is_unicode
from flowsieve.errors import BadMessage
from flowsieve.header.encoding import Encoding
from flowsieve.index.dz import MAX_LENGTH, Dz
from flowsieve.protocol.event_mac import EPOCHS
from flowsieve.protocol.limits import (
    ADDRESS_BYTES,
    MAC_BYTES,
    MAX_CONTENT,
    MAX_DATAGRAM,
    MAX_NUMBER,
    PUBLISHER_BYTES,
)
from flowsieve.protocol.version import VERSION

Stamps = tuple[int, ...]
Value = bool | int | float | str


class MessageKind(IntEnum):
    """What a datagram is for."""

    EVENT = 0
    DIGEST = 1


_MACS = (0, MAC_BYTES)  # bytes of a MAC
KIND_AT = 5  # where an item says what a message is for
DIGEST_ITEMS, EVENT_ITEMS, LONG_ITEMS = (
    9,
    10,
    11,
)  # in a message; the long one has the bytes of the application
LENGTHS = {MessageKind.EVENT: (EVENT_ITEMS, LONG_ITEMS), MessageKind.DIGEST: (DIGEST_ITEMS,)}
# How a message begins: an array of so many items, the version, an address of so many bytes.
_STARTS = {
    (items, length): bytes((0x90 + items, VERSION, 0xC4, length))
    for items in (DIGEST_ITEMS, EVENT_ITEMS, LONG_ITEMS)
    for length in ADDRESS_BYTES
}


@dataclass(frozen=True, slots=True)
class Message:
    """A datagram's content. `seq` counts the publisher's events from 1; a digest has that of the last one.

    `epoch` is the last digits of the epoch whose key the MAC was made with. Whether the MAC is right is not looked at.
    """

    kind: MessageKind
    publisher: bytes
    seq: int
    destination: bytes
    bits: int
    stamps: Stamps
    values: Mapping[str, Value] = field(default_factory=dict)
    data: bytes = b""
    epoch: int = 0
    mac: bytes = b""

    def dz(self, encoding: Encoding) -> Dz | None:
        """The cell that it was published to; None if that was under another tag."""
        return encoding.dz_at(self.destination, self.bits)


def encode(message: Message) -> bytes:
    """The bytes of a message; an event that does not fit a datagram is a BadMessage."""
    covered = pack_covered(start_covered(message.kind, message.publisher), message.seq, message.stamps)
    items = DIGEST_ITEMS
    if message.kind is MessageKind.EVENT:
        covered += pack_content(message.values, message.data)
        items = LONG_ITEMS if message.data else EVENT_ITEMS
    return pack(items, message.destination, message.bits, message.epoch, message.mac, covered)


def pack(items: int, destination: bytes, bits: int, epoch: int, mac: bytes, covered: bytes) -> bytes:
    """A datagram of so many items: what the MAC covers, behind all that it does not cover."""
    start = _STARTS[items, len(destination)]
    return b"".join((start, destination, bytes((bits, epoch, 0xC4, len(mac))), mac, covered))


def start_covered(kind: MessageKind, publisher: bytes) -> bytes:
    """How the part that the MAC covers begins."""
    packed: bytes = msgpack.packb((kind, publisher))
    return packed[1:]  # the items alone


def pack_covered(start: bytes, seq: int, stamps: Iterable[int]) -> bytes:
    """The part that the MAC covers, of a digest all of it; behind it stands what an event adds."""
    packed: bytes = msgpack.packb((seq, tuple(stamps)))
    return start + packed[1:]


def pack_content(values: Mapping[str, Any], data: bytes) -> bytes:
    """What the application says, which is all that can be too long."""
    packed: bytes = msgpack.packb(values)
    if data:
        packed += msgpack.packb(data)
    if len(packed) > MAX_CONTENT:
        raise BadMessage(
            f"the event takes {len(packed):,} bytes, and a datagram has room for {MAX_CONTENT:,}; "
            "shorten its strings or its data"
        )
    return packed


def decode(datagram: bytes) -> Message:
    """The message that some bytes mean; BadMessage if they mean none, whatever they are."""
    if len(datagram) > MAX_DATAGRAM:
        raise BadMessage(f"a datagram of {len(datagram):,} bytes; a message has at most {MAX_DATAGRAM:,}")
    try:
        items = msgpack.unpackb(datagram, use_list=False)
    except (ValueError, TypeError, RecursionError) as error:
        # A map whose key cannot be one is a TypeError; text that is no UTF-8 is a ValueError.
        raise BadMessage(f"a datagram that is no MessagePack: {error}") from None
    if not isinstance(items, tuple) or not items or items[0] != VERSION:
        raise BadMessage(f"a datagram that does not begin with the protocol's version, {VERSION}")
    kind = _kind(items)
    _, destination, bits, epoch, mac, _, publisher, seq, stamps, *rest = items
    if not isinstance(publisher, bytes) or len(publisher) != PUBLISHER_BYTES:
        raise BadMessage(f"the publisher is {PUBLISHER_BYTES} bytes")
    if not isinstance(destination, bytes) or len(destination) not in ADDRESS_BYTES:
        raise BadMessage("the destination is an address of 4 or 16 bytes")
    if not _is_number(bits, MAX_LENGTH):
        raise BadMessage(f"the dz has 0 to {MAX_LENGTH} bits")
    if type(epoch) is not int or not 0 <= epoch < EPOCHS or type(mac) is not bytes or len(mac) not in _MACS:
        raise BadMessage(f"a MAC is {MAC_BYTES} bytes or none, and its epoch is told as 0 to {EPOCHS - 1}")
    if not _is_number(seq) or not isinstance(stamps, tuple) or not all(map(_is_number, stamps)):
        raise BadMessage("the sequence number and the stamps are whole numbers from 0 on")
    values = _values(rest[0]) if rest else {}
    data = rest[1] if len(rest) > 1 else b""
    if not isinstance(data, bytes):
        raise BadMessage("what the application added is bytes")
    return Message(kind, publisher, seq, destination, bits, stamps, values, data, epoch, mac)


def _kind(items: tuple[Any, ...]) -> MessageKind:
    if len(items) <= KIND_AT or not _is_number(items[KIND_AT], max(MessageKind)):
        raise BadMessage("the kind of a message is 0 for an event or 1 for a digest")
    kind = MessageKind(items[KIND_AT])
    if len(items) not in LENGTHS[kind]:
        raise BadMessage(f"{len(items)} items are no message of kind {kind.name.lower()}")
    return kind


def _is_number(value: object, most: int = MAX_NUMBER) -> bool:
    return type(value) is int and 0 <= value <= most


def _values(values: object) -> dict[str, Value]:
    if not isinstance(values, dict):
        raise BadMessage("the values of an event are a map from names")
    for name, value in values.items():
        if not isinstance(name, str) or not is_unicode(name) or not isinstance(value, Value):
            raise BadMessage("an event gives names to truth values, numbers and strings")
        if isinstance(value, float) and not math.isfinite(value):
            raise BadMessage("the numbers of an event are finite")
    return values
