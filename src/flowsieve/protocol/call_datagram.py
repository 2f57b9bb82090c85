"""What calls to the controller and its answers are inside the network. Bytes in, values out.

A call is a mapping that says whose it is, which one (`session` and `n`), and what is asked. It fits one datagram.
An answer may be longer: it comes in parts, of which the first says how many there are, and the others are asked for
by their numbers. All parts bear a digest of the whole answer, so that parts of two answers to one call never mix.

A datagram is one MessagePack array: format, kind, and then for a call the mapping itself; for all others the session,
the call's number and the answer's digest, and what the kind needs.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgpack

from flowsieve.errors import BadMessage
from flowsieve.header.control_address import MAX_CALL

FORMAT = 1
CALL, PART, MORE, GONE = range(4)
SESSION_BYTES = 16
DIGEST_BYTES = 8
PART_BYTES = 1152  # of an answer; the rest of a datagram is enough for what stands around them
MOST_PARTS = 4096
MOST_ASKED = 16  # parts asked for at a time
MAX_NUMBER = (1 << 63) - 1
DEADLINE = 30.0  # seconds, where a call does not say
LONGEST_DEADLINE = 3600.0

Key = tuple[bytes, int]  # session and number of a call
_SESSION = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Call:
    """What a client asks."""

    key: Key
    message: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of an answer, of `count`."""

    key: Key
    digest: bytes
    count: int
    index: int
    chunk: bytes


@dataclass(frozen=True, slots=True)
class More:
    """A client asks for parts of an answer."""

    key: Key
    digest: bytes
    indices: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Gone:
    """The answer is not kept any more; the call has to be made again."""

    key: Key
    digest: bytes


Datagram = Call | Part | More | Gone


def encode(datagram: Datagram) -> bytes:
    """The bytes of a datagram; a call that does not fit one is a BadMessage."""
    items: tuple[Any, ...]
    match datagram:
        case Call(_, message):
            return _pack_call(message)
        case Part(key, digest, count, index, chunk):
            items = (PART, *key, digest, count, index, chunk)
        case More(key, digest, indices):
            items = (MORE, *key, digest, indices)
        case Gone(key, digest):
            items = (GONE, *key, digest)
    packed: bytes = msgpack.packb((FORMAT, *items))
    return packed


def decode(data: bytes) -> Datagram:
    """The datagram that some bytes mean; BadMessage if they mean none, whatever they are."""
    if len(data) > MAX_CALL:
        raise BadMessage(f"{len(data):,} bytes; calls and parts of answers have at most {MAX_CALL:,}")
    items = _unpack(data)
    if not isinstance(items, list) or len(items) < 2 or items[0] != FORMAT or type(items[1]) is not int:
        raise BadMessage(f"no datagram that begins with the format's number, {FORMAT}, and its kind")
    kind, fields = items[1], items[2:]
    if kind == CALL and len(fields) == 1:
        return Call(call_key(fields[0]), fields[0])
    if kind not in (PART, MORE, GONE) or len(fields) != {PART: 6, MORE: 4, GONE: 3}[kind]:
        raise BadMessage(f"{len(items)} items are no datagram of kind {kind}")
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


def call_key(message: object) -> Key:
    """Which call a message is; BadMessage if it is none.

    Whether it may be made is not looked at here: one without a token gets an answer that says so.
    """
    if not isinstance(message, Mapping) or not all(isinstance(name, str) for name in message):
        raise BadMessage("a call is a mapping from names")
    for name in ("session", "host", "op"):
        if not isinstance(message.get(name), str):
            raise BadMessage(f"a call has a text for {name!r}; here it is {message.get(name)!r:.40}")
    if not _SESSION.fullmatch(message["session"]):
        raise BadMessage(f"a session is 32 hexadecimal digits, not {message['session'][:40]!r}")
    if not _is_number(message.get("n"), 1, MAX_NUMBER):
        raise BadMessage(f"calls are counted from 1, not {message.get('n')!r:.40}")
    deadline_of(message)
    return bytes.fromhex(message["session"]), message["n"]


def deadline_of(message: Mapping[str, Any]) -> float:
    """Within how many seconds a call is to be answered."""
    given = message.get("deadline", DEADLINE)
    if type(given) not in (int, float) or not math.isfinite(given) or not 0 < given <= LONGEST_DEADLINE:
        raise BadMessage(f"a deadline is up to {LONGEST_DEADLINE:.0f} seconds from now, not {given!r:.40}")
    return float(given)


# Answers.


def pack_answer(answer: Mapping[str, Any]) -> bytes:
    """An answer as bytes, before it is cut into parts; BadMessage if there is no way to say it, or it is too long."""
    packed = _pack(answer, "an answer")
    if len(packed) > MOST_PARTS * PART_BYTES:
        raise BadMessage(
            f"the answer takes {len(packed):,} bytes, and inside the network there is room for "
            f"{MOST_PARTS * PART_BYTES:,}; ask the controller over HTTP"
        )
    return packed


def unpack_answer(packed: bytes) -> Mapping[str, Any]:
    """The answer that its bytes mean."""
    answer = _unpack(packed)
    if not isinstance(answer, dict) or not isinstance(answer.get("ok", answer.get("error")), dict):
        raise BadMessage("an answer says `ok` or `error`, and what")
    return answer


def digest_of(packed: bytes) -> bytes:
    """What tells an answer from another."""
    return hashlib.blake2b(packed, digest_size=DIGEST_BYTES).digest()


def cut(key: Key, packed: bytes, digest: bytes, indices: Sequence[int]) -> list[Part]:
    """Some parts of an answer; numbers beyond the last are passed over."""
    count = max(1, -(-len(packed) // PART_BYTES))
    return [
        Part(key, digest, count, index, packed[index * PART_BYTES : (index + 1) * PART_BYTES])
        for index in indices
        if index < count
    ]


def _pack_call(message: Mapping[str, Any]) -> bytes:
    call_key(message)
    packed = _pack((FORMAT, CALL, dict(message)), "a call")
    if len(packed) > MAX_CALL:
        raise BadMessage(
            f"the call takes {len(packed):,} bytes, and a datagram has room for {MAX_CALL:,}; "
            "shorten its filter, or ask the controller over HTTP"
        )
    return packed


def _pack(value: object, what: str) -> bytes:
    try:
        packed: bytes = msgpack.packb(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise BadMessage(f"{what} holds what no datagram can say: {error}") from None
    return packed


def _unpack(data: bytes) -> Any:
    try:
        return msgpack.unpackb(data)
    except (ValueError, TypeError, RecursionError) as error:
        # A map whose key cannot be one is a TypeError; text that is no UTF-8 is a ValueError.
        raise BadMessage(f"{len(data):,} bytes that are no MessagePack: {error}") from None


def _is_bytes(value: object, length: int) -> bool:
    return isinstance(value, bytes) and len(value) == length


def _is_number(value: object, least: int, most: int) -> bool:
    return type(value) is int and least <= value <= most
