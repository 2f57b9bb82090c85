"""What an embedded switch hands to its controller: service entries, each with a bucket that bounds its packets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flowsieve.errors import BadInput
from flowsieve.flow.punt import Punt


@dataclass(slots=True)
class Bucket:
    """So many packets may still pass; it fills with time, up to what comes in a second."""

    rate: int
    level: float
    at: float

    def take(self, now: float) -> bool:
        self.level = min(self.rate, self.level + (now - self.at) * self.rate)
        self.at = now
        if self.level < 1:
            return False
        self.level -= 1
        return True


class HandOver:
    """The service entries of one switch; `changed` counts how many were made or taken out, `dropped` packets."""

    def __init__(self) -> None:
        self.changed = 0
        self.dropped = 0
        self._buckets: dict[Punt, Bucket] = {}

    @property
    def punts(self) -> tuple[Punt, ...]:
        return tuple(self._buckets)

    def set(self, punts: Sequence[Punt], now: float) -> None:
        """Make the entries exactly these; those that are there already stay as they are."""
        if len({punt.key for punt in punts}) < len(punts):
            raise BadInput("the same packets are to be handed over twice; right is one limit for each kind")
        self.changed += len(self._buckets.keys() ^ set(punts))
        self._buckets = {
            punt: self._buckets.get(punt) or Bucket(punt.rate, punt.rate, now)
            for punt in sorted(punts, key=lambda punt: -punt.priority)
        }

    def lets(self, packet: bytes, port: int, now: float) -> bool:
        """Whether a packet that came in on a port goes to the controller."""
        for punt, bucket in self._buckets.items():
            if punt.takes(packet, port):
                passes = bucket.take(now)
                self.dropped += not passes
                return passes
        return False
