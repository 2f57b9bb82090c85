"""Calls and answers inside the network, as datagrams. Bytes in, values out.

A call is a mapping that fits one datagram. An answer may be longer: it comes in parts, of which the first says how
many there are, and the others are asked for by their numbers. All parts bear a digest of the whole answer, so that
parts of two answers to one call never mix.

A datagram is one MessagePack array: the protocol's version, its kind, and then for a call the mapping itself; for all
others the session, the call's number and the answer's digest, and what the kind needs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgpack

from flowsieve.errors import BadMessage
from flowsieve.protocol.answer import Answer, is_answer
from flowsieve.protocol.call import CallKey, call_key
from flowsieve.protocol.limits import (
    DIGEST_BYTES,
    MAX_DATAGRAM,
    MAX_NUMBER,
    MOST_ASKED,
    MOST_PARTS,
    PART_BYTES,
    SESSION_BYTES,
)
from flowsieve.protocol.version import VERSION

CALL, PART, MORE, GONE = range(4)
FIELDS = {CALL: 1, PART: 6, MORE: 4, GONE: 3}  # after the version and the kind


@dataclass(frozen=True, slots=True)
class CallDatagram:
    """What a client asks; whether it may, and whether the message is right, is not looked at here."""

    key: CallKey
    message: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of an answer, of `count`."""

    key: CallKey
    digest: bytes
    count: int
    index: int
    chunk: bytes


@dataclass(frozen=True, slots=True)
class More:
    """A client asks for parts of an answer."""

    key: CallKey
    digest: bytes
    indices: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Gone:
    """The answer is not kept any more; the call has to be made again."""

    key: CallKey
    digest: bytes


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A datagram of another version; `key` is that of the call in it, if it looks like one."""

    version: int
    key: CallKey | None


def encode(datagram: CallDatagram | Part | More | Gone) -> bytes:
    """The bytes of a datagram; a call that does not fit one is a BadMessage."""
    items: tuple[Any, ...]
    match datagram:
        case CallDatagram(_, message):
            return _pack_call(message)
        case Part(key, digest, count, index, chunk):
            items = (PART, *key, digest, count, index, chunk)
        case More(key, digest, indices):
            items = (MORE, *key, digest, indices)
        case Gone(key, digest):
            items = (GONE, *key, digest)
    packed: bytes = msgpack.packb((VERSION, *items))
    return packed


def decode(data: bytes) -> CallDatagram | Part | More | Gone | Unreadable:
    """The datagram that some bytes mean; BadMessage if they mean none, whatever they are."""
    if len(data) > MAX_DATAGRAM:
        raise BadMessage(f"{len(data):,} bytes; calls and parts of answers have at most {MAX_DATAGRAM:,}")
    items = _unpack(data, "surrogatepass")  # a call with half of a pair is told so by what reads the call
    if not isinstance(items, list) or len(items) < 2 or not all(type(item) is int for item in items[:2]):
        raise BadMessage(f"no datagram that begins with the protocol's version, {VERSION}, and its kind")
    version, kind, *fields = items
    if version != VERSION:
        return Unreadable(version, _key_in(kind, fields))
    if kind not in FIELDS or len(fields) != FIELDS[kind]:
        raise BadMessage(f"{len(items)} items are no datagram of kind {kind}")
    if kind == CALL:
        return CallDatagram(call_key(fields[0]), fields[0])
    session, number, digest, *rest = fields
    if not _is_bytes(session, SESSION_BYTES) or not _is_bytes(digest, DIGEST_BYTES):
        raise BadMessage(f"a session is {SESSION_BYTES} bytes, a digest {DIGEST_BYTES}")
    if not _is_number(number, 1, MAX_NUMBER):
        raise BadMessage("calls are counted from 1")
    key = session, number
    if kind == GONE:
        return Gone(key, digest)
    if kind == MORE:
        indices = rest[0]
        if not isinstance(indices, list) or not 1 <= len(indices) <= MOST_ASKED:
            raise BadMessage(f"1 to {MOST_ASKED} parts are asked for at a time")
        if not all(_is_number(index, 0, MOST_PARTS - 1) for index in indices):
            raise BadMessage(f"parts have numbers from 0 to {MOST_PARTS - 1}")
        return More(key, digest, tuple(indices))
    count, index, chunk = rest
    if not _is_number(count, 1, MOST_PARTS) or not _is_number(index, 0, count - 1):
        raise BadMessage(f"an answer has 1 to {MOST_PARTS} parts, counted from 0")
    if not isinstance(chunk, bytes):
        raise BadMessage("a part of an answer is bytes")
    return Part(key, digest, count, index, chunk)


def _key_in(kind: int, fields: list[Any]) -> CallKey | None:
    """Which call a datagram of another version makes, if it does so as ours do: then it can be answered."""
    try:
        return call_key(fields[0]) if kind == CALL and fields else None
    except BadMessage:
        return None


# Answers.


def pack_answer(answer: Answer) -> bytes:
    """An answer as bytes, before it is cut into parts; BadMessage if there is no way to say it, or it is too long."""
    packed = _pack(answer, "an answer")
    if len(packed) > MOST_PARTS * PART_BYTES:
        raise BadMessage(
            f"the answer takes {len(packed):,} bytes, and inside the network there is room for "
            f"{MOST_PARTS * PART_BYTES:,}; ask the controller over HTTP"
        )
    return packed


def unpack_answer(packed: bytes) -> Answer:
    """The answer that its bytes mean."""
    answer = _unpack(packed)
    if not is_answer(answer):
        raise BadMessage("an answer says `ok` or `error`, and what")
    return answer


def digest_of(packed: bytes) -> bytes:
    """What tells an answer from another."""
    return hashlib.blake2b(packed, digest_size=DIGEST_BYTES).digest()


def cut(key: CallKey, packed: bytes, digest: bytes, indices: Sequence[int]) -> list[Part]:
    """Some parts of an answer; numbers beyond the last are passed over."""
    count = max(1, -(-len(packed) // PART_BYTES))
    return [
        Part(key, digest, count, index, packed[index * PART_BYTES : (index + 1) * PART_BYTES])
        for index in indices
        if index < count
    ]


def _pack_call(message: Mapping[str, Any]) -> bytes:
    packed = _pack((VERSION, CALL, dict(message)), "a call")
    if len(packed) > MAX_DATAGRAM:
        raise BadMessage(
            f"the call takes {len(packed):,} bytes, and a datagram has room for {MAX_DATAGRAM:,}; "
            "shorten its filter, or ask the controller over HTTP"
        )
    return packed


def _pack(value: object, what: str) -> bytes:
    try:
        packed: bytes = msgpack.packb(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise BadMessage(f"{what} holds what no datagram can say: {error}") from None
    return packed


def _unpack(data: bytes, unicode_errors: str = "strict") -> Any:
    try:
        return msgpack.unpackb(data, unicode_errors=unicode_errors)
    except (ValueError, TypeError, RecursionError) as error:
        # A map whose key cannot be one is a TypeError; text that is no UTF-8 is a ValueError.
        raise BadMessage(f"{len(data):,} bytes that are no MessagePack: {error}") from None


def _is_bytes(value: object, length: int) -> bool:
    return isinstance(value, bytes) and len(value) == length


def _is_number(value: object, least: int, most: int) -> bool:
    return type(value) is int and least <= value <= most
