"""The frames by which links are found: LLDP that says which port of which switch sent it, and proves that we made it.

A frame is of fixed length: chassis id (the datapath id), port id, time to live, then a TLV of our own with a counter
and a keyed digest over all that stands before it. Whoever lacks the key can neither change a frame nor make one; the
counter lets `control.discovery` refuse one that is played back later, or at a second place.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from dataclasses import dataclass

from flowsieve.errors import BadInput, BadMessage

ETHERTYPE = 0x88CC
DESTINATION = bytes.fromhex("0180c200000e")  # to the nearest bridge: ordinary ones do not pass it on
LONGEST_KEY = 64  # bytes, by BLAKE2b
SHORTEST_KEY = 16
MAX_DATAPATH = (1 << 64) - 1
MAX_PORT = 0xFFFFFF00
MAX_COUNT = (1 << 64) - 1
MAX_TTL = 0xFFFF  # seconds

_LOCAL = 7  # the subtype of a chassis or port id that the sender chose itself
_OWN = bytes.fromhex("02f10e")  # an organisation that nobody was given: its local bit is set
_OWN_KIND = 1
_DIGEST_BYTES = 16
_BODY = struct.Struct("!6s6sH HBQ HBI HH H3sBQ")
_FRAME = struct.Struct(f"!{_BODY.size}s{_DIGEST_BYTES}sH")


def _head(kind: int, length: int) -> int:
    """How a TLV begins: seven bits of type, nine of length."""
    return kind << 9 | length


_CHASSIS, _PORT, _TTL = _head(1, 9), _head(2, 5), _head(3, 2)
_OURS = _head(127, 4 + 8 + _DIGEST_BYTES)
_END = _head(0, 0)


@dataclass(frozen=True, slots=True)
class Beacon:
    """What a frame says: the `count`-th one of ours left this port of this switch.

    >>> key = bytes(16)
    >>> Beacon.parse(Beacon(datapath=1, port=2, count=3).frame(key), key)
    Beacon(datapath=1, port=2, count=3, ttl_seconds=3)
    """

    datapath: int
    port: int
    count: int
    ttl_seconds: int = 3

    def __post_init__(self) -> None:
        _check("datapath id", self.datapath, 0, MAX_DATAPATH)
        _check("port", self.port, 1, MAX_PORT)
        _check("count", self.count, 0, MAX_COUNT)
        _check("time to live", self.ttl_seconds, 0, MAX_TTL)

    def frame(self, key: bytes) -> bytes:
        """The Ethernet frame that says it; `key` is what only the controller knows."""
        source = b"\x02" + (self.datapath ^ self.port).to_bytes(8, "big")[-5:]
        body = _BODY.pack(
            *(DESTINATION, source, ETHERTYPE),
            *(_CHASSIS, _LOCAL, self.datapath),
            *(_PORT, _LOCAL, self.port),
            *(_TTL, self.ttl_seconds),
            *(_OURS, _OWN, _OWN_KIND, self.count),
        )
        return _FRAME.pack(body, _digest(body, key), _END)

    @classmethod
    def parse(cls, data: bytes, key: bytes) -> Beacon:
        """What a frame of ours says; everything else is a BadMessage."""
        if len(data) != _FRAME.size:
            raise BadMessage(f"a frame of {len(data)} bytes is no beacon of ours; those have {_FRAME.size}")
        body, digest, _ = _FRAME.unpack(data)
        if not hmac.compare_digest(digest, _digest(body, key)):
            raise BadMessage("an LLDP frame without our signature: forged, damaged, or of somebody else")
        _, _, _, _, _, datapath, _, _, port, _, ttl, _, _, _, count = _BODY.unpack(body)
        try:
            beacon = cls(datapath, port, count, ttl)
        except BadInput as error:
            raise BadMessage(f"a signed frame that makes no sense: {error}") from None
        if beacon.frame(key) != data:
            raise BadMessage("a signed frame in a form that we do not send; do two versions share a key?")
        return beacon


def is_lldp(data: bytes) -> bool:
    """Whether an Ethernet frame is LLDP, ours or not."""
    return data[12:14] == ETHERTYPE.to_bytes(2, "big")


def check_key(key: bytes) -> bytes:
    """The key, if it is one."""
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
