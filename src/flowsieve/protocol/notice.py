"""A notice: a tiny datagram by which a controller has the applications of a host ask at once what is new.

It is a hint and nothing else. Anybody could have sent it, so it is believed in nothing: whoever hears one makes a call
that it would have made later anyway. One that is lost is made good by the next renewal.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgpack

from flowsieve.errors import BadMessage
from flowsieve.protocol.limits import MAX_NUMBER
from flowsieve.protocol.version import VERSION

NOTICE_BYTES = 16  # at most
INDEX = 0  # the kind of a notice; those of other kinds are for others


@dataclass(frozen=True, slots=True)
class IndexNotice:
    """There is an index of this version."""

    version: int


def encode(notice: IndexNotice) -> bytes:
    """The bytes of a notice: an array of the protocol's version, the kind, and the version of the index."""
    packed: bytes = msgpack.packb((VERSION, INDEX, notice.version))
    return packed


def decode(datagram: bytes) -> IndexNotice:
    """The notice that some bytes are; BadMessage if they are none, whatever they are."""
    if len(datagram) > NOTICE_BYTES:
        raise BadMessage(f"{len(datagram):,} bytes; a notice has at most {NOTICE_BYTES}")
    try:
        items = msgpack.unpackb(datagram, use_list=False)
    except (ValueError, TypeError, RecursionError) as error:
        raise BadMessage(f"a notice that is no MessagePack: {error}") from None
    if not isinstance(items, tuple) or len(items) != 3 or not all(type(item) is int for item in items):
        raise BadMessage("a notice is an array of three whole numbers")
    version, kind, index = items
    if version != VERSION or kind != INDEX or not 0 <= index <= MAX_NUMBER:
        raise BadMessage(
            f"a notice {items}; right is the protocol's version, {VERSION}, the kind {INDEX}, and an index"
        )
    return IndexNotice(index)
