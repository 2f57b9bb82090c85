"""What a transition took, phase by phase."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from flowsieve.control.transition.crossing import CrossingPhase


@dataclass(slots=True)
class PhaseRecord:
    """What a phase took: seconds, flow operations, and how many entries tables held at its end."""

    phase: CrossingPhase
    seconds: float = 0.0
    operations: int = 0
    entries: int = 0
    began: float = 0.0
    before: int = 0  # operations until then

    def end(self, operations: int, entries: int) -> None:
        """The phase is over, with so many operations since ever, and so many entries."""
        self.seconds = time.perf_counter() - self.began
        self.operations, self.entries = operations - self.before, entries

    def to_json(self) -> dict[str, Any]:
        return {
            "phase": self.phase.value,
            "seconds": round(self.seconds, 3),
            "operations": self.operations,
            "entries": self.entries,
        }


@dataclass(slots=True)
class TransitionRecord:
    """A transition, under way or over: from which index to which, what each phase took, and how it ended."""

    old: int
    new: int
    carry: bool
    began: float
    phases: list[PhaseRecord] = field(default_factory=list)
    ended: str | None = None  # "arrived", or why it was given up
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        return {
            "from": self.old,
            "to": self.new,
            "method": "light-weight" if self.carry else "versioning",
            "seconds": round(self.seconds, 3),
            "phases": [record.to_json() for record in self.phases],
            "operations": sum(record.operations for record in self.phases),
            "ended": self.ended,
        }
