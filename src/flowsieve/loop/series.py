"""What was seen in the course of a story: a row each second, moments that matter, and what they come to."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Counted:
    """What all applications had counted at a time: events published, copies that came to hosts, those unwanted."""

    at: float
    published: int
    received: int
    unwanted: int


@dataclass(frozen=True, slots=True)
class SeriesRow:
    """A second of the story."""

    at: float  # seconds since it began
    events_per_s: float
    received_per_s: float
    unwanted: float | None  # the share of what hosts received
    index: int
    phase: str | None  # of a transition that is under way
    story: str
    stream: str

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(slots=True)
class Course:
    """All that was seen: counts as they came, rows, and when what happened, in seconds since the beginning."""

    counts: list[Counted] = field(default_factory=list)
    rows: list[SeriesRow] = field(default_factory=list)
    moments: dict[str, float] = field(default_factory=dict)
    phases: list[tuple[float, str | None]] = field(default_factory=list)  # when each was first seen

    def count(self, counted: Counted) -> None:
        self.counts.append(counted)

    def saw_phase(self, at: float, phase: str | None) -> None:
        if (self.phases[-1][1] if self.phases else None) != phase:
            self.phases.append((at, phase))

    def mark(self, name: str, at: float) -> None:
        """Something happens, for the first time."""
        self.moments.setdefault(name, at)

    def between(self, begin: float, end: float) -> tuple[int, int, int, float]:
        """Published, received, unwanted between two times, and how many seconds that was, as far as was counted."""
        first, last = self._at(begin), self._at(end)
        return (
            last.published - first.published,
            last.received - first.received,
            last.unwanted - first.unwanted,
            last.at - first.at,
        )

    def share(self, begin: float, end: float) -> float | None:
        """The unwanted share of what hosts received between two times; None where nothing came."""
        _, received, unwanted, _ = self.between(begin, end)
        return unwanted / received if received else None

    def rate(self, begin: float, end: float) -> float:
        """Events published a second between two times."""
        published, _, _, seconds = self.between(begin, end)
        return published / seconds if seconds > 0 else 0.0

    def _at(self, at: float) -> Counted:
        place = bisect_right(self.counts, at, key=lambda each: each.at)
        return self.counts[max(0, place - 1)] if self.counts else Counted(at, 0, 0, 0)


def total(at: float, lines: Iterable[Any]) -> Counted:
    """The sum over what applications said last."""
    known = [line for line in lines if line is not None]
    names = ("published", "received", "unwanted")
    return Counted(at, *(sum(line[name] for line in known) for name in names))
