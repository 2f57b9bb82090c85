"""Messages between a dispatcher and a configurator over a socket, after each has shown that it knows the secret.

Whoever knows the secret may decide on tables, so neither side reads a message before the other has proved that.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

from flowsieve.control.partitions.orders import LARGEST_MESSAGE
from flowsieve.errors import BadInput

SIZE = 4  # bytes that tell how long the message behind them is
NONCE = 16
PROOF = 32
NAME = 64  # bytes for a configurator's name, padded with zeros
HELLO = NONCE + NAME
_DISPATCHER, _CONFIGURATOR = b"dispatcher", b"configurator"


def nonce() -> bytes:
    return secrets.token_bytes(NONCE)


def dispatcher_proof(secret: bytes, theirs: bytes, own: bytes) -> bytes:
    """What shows a configurator that a dispatcher knows the secret, given its nonce and the dispatcher's."""
    return _proof(secret, _DISPATCHER, theirs, own)


def configurator_proof(secret: bytes, theirs: bytes, own: bytes) -> bytes:
    """The same the other way round."""
    return _proof(secret, _CONFIGURATOR, theirs, own)


def _proof(secret: bytes, who: bytes, theirs: bytes, own: bytes) -> bytes:
    return hmac.new(secret, who + theirs + own, hashlib.sha256).digest()


def same(one: bytes, other: bytes) -> bool:
    """Whether two proofs are the same, in a time that does not tell."""
    return hmac.compare_digest(one, other)


def hello(own: bytes, name: str) -> bytes:
    """What a configurator says first: its nonce and its name."""
    return own + name.encode()[:NAME].ljust(NAME, b"\0")


def name_in(data: bytes) -> str:
    return data[NONCE:HELLO].rstrip(b"\0").decode(errors="replace")


def length_of(head: bytes | bytearray) -> int:
    """How long the message behind these bytes is."""
    length = int.from_bytes(head, "big")
    if length > LARGEST_MESSAGE:
        raise BadInput(f"a message of {length:,} bytes is none between dispatcher and configurator")
    return length
