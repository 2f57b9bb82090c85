"""Which events are reported: a hash of publisher and sequence number decides, so that all who see an event agree.

What a smaller share takes is a part of what a larger one takes.
"""

from __future__ import annotations

ALL = 1 << 32  # the threshold below which every hash lies
_STEP = 0x9E3779B97F4A7C15  # 2^64 over the golden ratio: numbers that follow each other end up far apart


def threshold_of(share: float) -> int:
    """Below which number the hash of an event lies that belongs to a share of them."""
    return round(share * ALL)


def event_hash(publisher: bytes, seq: int) -> int:
    """32 bits that say whether an event belongs to a share: the id and the number, through MurmurHash3's last steps.

    >>> f"{event_hash(bytes(range(1, 9)), 1):08x}"
    '05bf85f5'
    """
    mixed = int.from_bytes(publisher) + seq * _STEP
    bits = (mixed ^ mixed >> 32) & 0xFFFFFFFF
    bits = (bits ^ bits >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    bits = (bits ^ bits >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    return bits ^ bits >> 16


def is_sampled(publisher: bytes, seq: int, threshold: int) -> bool:
    """Whether an event belongs to the share that a threshold stands for."""
    return threshold >= ALL or event_hash(publisher, seq) < threshold
