"""The frames by which links are found: LLDP that says which port of which switch sent it, and proves that we made it.

A frame has a chassis id (the switch's identity, as text), a port id, a time to live, then a TLV of our own with a
counter and a keyed digest over all that stands before it. Whoever lacks the key can neither change a frame nor make
one; the counter lets `control.discovery` refuse one that is played back later, or at a second place.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from dataclasses import dataclass

from flowsieve.errors import BadInput, BadMessage
from flowsieve.network.names import SwitchId

ETHERTYPE = 0x88CC
DESTINATION = bytes.fromhex("0180c200000e")  # to the nearest bridge: ordinary ones do not pass it on
LONGEST_KEY = 64  # bytes, by BLAKE2b
SHORTEST_KEY = 16
LONGEST_IDENTITY = 255  # bytes, by LLDP
MAX_PORT = 0xFFFFFF00
MAX_COUNT = (1 << 64) - 1
MAX_TTL = 0xFFFF  # seconds

_LOCAL = 7  # the subtype of a chassis or port id that the sender chose itself
_OWN = bytes.fromhex("02f10e")  # locally administered, so it is nobody else's
_OWN_KIND = 1
_DIGEST_BYTES = 16
_HEAD = struct.Struct("!6s6sH HB")  # up to the switch's identity
_TAIL = struct.Struct("!HBI HH H3sBQ")  # from there to the digest
_FIXED_BYTES = _HEAD.size + _TAIL.size + _DIGEST_BYTES + 2


def _head(kind: int, length: int) -> int:
    """How a TLV begins: seven bits of type, nine of length."""
    return kind << 9 | length


_PORT, _TTL = _head(2, 5), _head(3, 2)
_OURS = _head(127, 4 + 8 + _DIGEST_BYTES)
_END = _head(0, 0).to_bytes(2, "big")


@dataclass(frozen=True, slots=True)
class Beacon:
    """What a frame says: the `count`-th one of ours left this port of this switch.

    >>> key = bytes(16)
    >>> Beacon.parse(Beacon(SwitchId("00a1"), port=2, count=3).frame(key), key)
    Beacon(switch='00a1', port=2, count=3, ttl_seconds=3)
    """

    switch: SwitchId
    port: int
    count: int
    ttl_seconds: int = 3

    def __post_init__(self) -> None:
        if not 1 <= len(self.switch.encode()) <= LONGEST_IDENTITY:
            raise BadInput(f"the switch {self.switch!r} of a beacon; right are 1 to {LONGEST_IDENTITY} bytes")
        _check("port", self.port, 1, MAX_PORT)
        _check("count", self.count, 0, MAX_COUNT)
        _check("time to live", self.ttl_seconds, 0, MAX_TTL)

    def frame(self, key: bytes) -> bytes:
        """The Ethernet frame that says it; `key` is what only the controller knows."""
        switch = self.switch.encode()
        source = b"\x02" + hashlib.blake2b(switch + b" %d" % self.port, digest_size=5).digest()
        head = _HEAD.pack(DESTINATION, source, ETHERTYPE, _head(1, 1 + len(switch)), _LOCAL)
        tail = _TAIL.pack(
            *(_PORT, _LOCAL, self.port),
            *(_TTL, self.ttl_seconds),
            *(_OURS, _OWN, _OWN_KIND, self.count),
        )
        body = head + switch + tail
        return body + _digest(body, key) + _END

    @classmethod
    def parse(cls, data: bytes, key: bytes) -> Beacon:
        """What a frame of ours says; everything else is a BadMessage."""
        if not 1 <= len(data) - _FIXED_BYTES <= LONGEST_IDENTITY:
            raise BadMessage(f"a frame of {len(data)} bytes is no beacon of ours")
        body, digest = data[: -_DIGEST_BYTES - 2], data[-_DIGEST_BYTES - 2 : -2]
        if not hmac.compare_digest(digest, _digest(body, key)):
            raise BadMessage("an LLDP frame without our signature: forged, damaged, or of somebody else")
        _, _, port, _, ttl, _, _, _, count = _TAIL.unpack(body[-_TAIL.size :])
        try:
            beacon = cls(SwitchId(body[_HEAD.size : -_TAIL.size].decode()), port, count, ttl)
        except (BadInput, UnicodeDecodeError) as error:
            raise BadMessage(f"a signed frame that makes no sense: {error}") from None
        if beacon.frame(key) != data:
            raise BadMessage("a signed frame in a form that we do not send; do two versions share a key?")
        return beacon


def is_lldp(data: bytes) -> bool:
    """Whether an Ethernet frame is LLDP, ours or not."""
    return data[12:14] == ETHERTYPE.to_bytes(2, "big")


def check_key(key: bytes) -> bytes:
    """The key, if its length is right."""
    if not SHORTEST_KEY <= len(key) <= LONGEST_KEY:
        raise BadInput(f"a key of {len(key)} bytes; right are {SHORTEST_KEY} to {LONGEST_KEY} random ones")
    return key


def _digest(body: bytes, key: bytes) -> bytes:
    return hashlib.blake2b(
        body, digest_size=_DIGEST_BYTES, key=check_key(key), person=b"flowsieve-lldp"
    ).digest()


def _check(what: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise BadInput(f"the {what} of a beacon is {value}; right is {low} to {high:,}")
