"""Datagrams to content addresses, built beforehand as whole Ethernet frames."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from flowsieve.flow.wiring import HOP_LIMIT

ETHERNET, IPV6, UDP = 14, 40, 8  # bytes of each header
HEADERS = ETHERNET + IPV6 + UDP
NUMBER = HEADERS  # where a frame has its number, as four bytes
SMALLEST = HEADERS + 4
PORT = 9  # "discard": no application hears it
Frames = NDArray[np.uint8]


def frames_to(addresses: Sequence[int], sources: Sequence[int], mac: str, size: int) -> Frames:
    """A row per IPv6 address: a UDP datagram with its own number and a right checksum, `size` bytes in all.

    They are from the `sources` in turn.
    """
    n = len(addresses)
    assert size >= SMALLEST, f"a frame has at least {SMALLEST} bytes, so that it can tell its number"
    frames = np.zeros((n, size), np.uint8)
    to = _rows(addresses)
    frames[:, 0:2] = 0x33  # a group's address in Ethernet, from the last four bytes of that in IPv6
    frames[:, 2:6] = to[:, 12:]
    frames[:, 6:12] = list(bytes.fromhex(mac.replace(":", "")))
    frames[:, 12:14] = 0x86, 0xDD
    length = size - ETHERNET - IPV6
    frames[:, 14] = 0x60
    frames[:, 18:20] = length >> 8, length & 0xFF
    frames[:, 20:22] = 17, HOP_LIMIT
    frames[:, 22:38] = np.resize(_rows(sources), (n, 16))
    frames[:, 38:54] = to
    frames[:, 54:58] = PORT >> 8, PORT & 0xFF, PORT >> 8, PORT & 0xFF
    frames[:, 58:60] = length >> 8, length & 0xFF
    frames[:, NUMBER : NUMBER + 4] = np.arange(n, dtype=">u4").view(np.uint8).reshape(n, 4)
    sums = _checksums(frames, length)
    frames[:, 60:62] = sums.astype(">u2").view(np.uint8).reshape(n, 2)
    return frames


def _rows(addresses: Sequence[int]) -> Frames:
    rows = np.frombuffer(b"".join(address.to_bytes(16, "big") for address in addresses), np.uint8)
    return rows.reshape(len(addresses), 16)


def numbers_of(frames: Frames) -> NDArray[np.int64]:
    """The numbers that frames tell."""
    told = np.ascontiguousarray(frames[:, NUMBER : NUMBER + 4])
    return told.view(">u4").reshape(len(frames)).astype(np.int64)


def _checksums(frames: Frames, length: int) -> NDArray[np.int64]:
    """UDP's checksum, over both addresses, the length, the protocol and the datagram."""
    covered = frames[:, 22:]
    if covered.shape[1] % 2:
        covered = np.pad(covered, ((0, 0), (0, 1)))
    sums = np.ascontiguousarray(covered).view(">u2").astype(np.int64).sum(axis=1) + length + 17
    for _ in range(2):
        sums = (sums & 0xFFFF) + (sums >> 16)
    return np.where(sums == 0xFFFF, 0xFFFF, 0xFFFF - sums)
