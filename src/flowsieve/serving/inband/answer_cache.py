"""Answers that are too long for one datagram, kept for a while until their parts are fetched."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from flowsieve.protocol.call import CallKey
from flowsieve.protocol.call_datagram import digest_of

SECONDS = 60.0
MOST = 256  # answers
MOST_BYTES = 32 << 20  # of all answers together

SwitchPort = tuple[str, int]  # a switch, and the number of one of its ports


@dataclass(frozen=True, slots=True)
class CachedAnswer:
    """An answer's bytes, and until when they are kept."""

    packed: bytes
    until: float


class AnswerCache:
    """The latest answers, keyed by the port that the call came from: no host can fetch another's."""

    def __init__(self, seconds: float = SECONDS, most: int = MOST, most_bytes: int = MOST_BYTES) -> None:
        self._seconds, self._most, self._most_bytes = seconds, most, most_bytes
        self._answers: OrderedDict[tuple[SwitchPort, CallKey, bytes], CachedAnswer] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._answers)

    def keep(self, place: SwitchPort, key: CallKey, packed: bytes, now: float) -> None:
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

    def find(self, place: SwitchPort, key: CallKey, digest: bytes, now: float) -> bytes | None:
        """An answer's bytes, if they are still there."""
        kept = self._answers.get((place, key, digest))
        return kept.packed if kept is not None and kept.until > now else None

    def _drop(self, name: tuple[SwitchPort, CallKey, bytes]) -> None:
        kept = self._answers.pop(name, None)
        if kept is not None:
            self._bytes -= len(kept.packed)
