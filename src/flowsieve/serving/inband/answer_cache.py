"""Answers that are too long for one datagram, kept for a while for those who come for their parts."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from flowsieve.protocol.call_datagram import Key, digest_of

SECONDS = 60.0
MOST = 256  # answers
MOST_BYTES = 32 << 20  # of all answers together

Place = tuple[str, int]  # a port of a switch


@dataclass(frozen=True, slots=True)
class CachedAnswer:
    """An answer's bytes, and until when they are kept."""

    packed: bytes
    until: float


class AnswerCache:
    """The latest answers, each for the port that its call came from: another's answer is none of anybody's business."""

    def __init__(self, seconds: float = SECONDS, most: int = MOST, most_bytes: int = MOST_BYTES) -> None:
        self._seconds, self._most, self._most_bytes = seconds, most, most_bytes
        self._answers: OrderedDict[tuple[Place, Key, bytes], CachedAnswer] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._answers)

    def keep(self, place: Place, key: Key, packed: bytes, now: float) -> None:
        """Keep an answer; the oldest go where there is no room."""
        name = place, key, digest_of(packed)
        self._drop(name)
        self._answers[name] = CachedAnswer(packed, now + self._seconds)
        self._bytes += len(packed)
        while self._answers:
            oldest = next(iter(self._answers))
            crowded = len(self._answers) > self._most or self._bytes > self._most_bytes
            if not crowded and self._answers[oldest].until > now:
                return
            self._drop(oldest)

    def find(self, place: Place, key: Key, digest: bytes, now: float) -> bytes | None:
        """An answer's bytes, if they are still there."""
        kept = self._answers.get((place, key, digest))
        return kept.packed if kept is not None and kept.until > now else None

    def _drop(self, name: tuple[Place, Key, bytes]) -> None:
        kept = self._answers.pop(name, None)
        if kept is not None:
            self._bytes -= len(kept.packed)
