"""What a story came to: how much was unwanted before, after the drift and under the new plan, how long it took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flowsieve.loop.judgement import Judgement
from flowsieve.loop.series import Course

SETTLE_SECONDS = 0.5  # from a moment on until counts say something of what is after it
FAULTS = ("duplicates", "overflow", "malformed", "forged", "unsent", "unreported", "lost")


@dataclass(frozen=True, slots=True)
class LoopVerdict:
    """Shares are of what hosts received; seconds are those from the drift on, None where it never came to it."""

    events_per_s: float
    before: float | None
    drifted: float | None
    after: float | None
    peak: float | None
    noticed_s: float | None
    offered_s: float | None
    used_s: float | None
    in_force_s: float | None
    index: int
    transitions: tuple[Mapping[str, Any], ...]
    judgement: Judgement
    clients: Mapping[str, int]

    @property
    def holds(self) -> bool:
        """Whether the plan followed the traffic, and nobody lost anything by it."""
        fell = self.after is not None and self.drifted is not None and self.after < self.drifted
        return self.judgement.holds and self.in_force_s is not None and fell

    def to_json(self) -> dict[str, Any]:
        plain = {
            name: getattr(self, name)
            for name in self.__slots__
            if name not in ("judgement", "transitions", "clients")
        }
        return {
            **{name: round(value, 4) if isinstance(value, float) else value for name, value in plain.items()},
            **self.judgement.to_json(),
            "clients": dict(self.clients),
            "transitions": list(self.transitions),
            "holds": self.holds,
        }

    @classmethod
    def of(
        cls,
        course: Course,
        judgement: Judgement,
        ended: Sequence[Mapping[str, int]],
        told: Mapping[str, Any],
        offers: Sequence[Mapping[str, Any]],
        began: float,
        before: int,
    ) -> LoopVerdict:
        """From what was seen: `told` is the last word on the index, `before` the version that the drift met."""
        at = course.moments
        drift, arrived, stop = at["drift"], at["arrived"], at["stop"]
        crossing = next(
            (seen for seen, phase in course.phases if phase is not None and seen > drift), arrived
        )
        offer = next((each["at"] - began for each in reversed(offers) if each["at"] - began > drift), None)
        used = next((at[f"index {number}"] for number in range(before + 1, told["version"] + 1)), None)
        calm = max(
            [
                at["go"] + SETTLE_SECONDS,
                *(seen for seen, phase in course.phases if not phase and seen < drift),
            ]
        )
        meanwhile = [row.unwanted for row in course.rows if row.phase and row.unwanted is not None]
        return cls(
            round(course.rate(at["go"] + SETTLE_SECONDS, stop), 1),
            course.share(calm, drift),
            course.share(drift + SETTLE_SECONDS, crossing),
            course.share(arrived + SETTLE_SECONDS, stop),
            max(meanwhile, default=None),
            _since(drift, at.get("noticed")),
            _since(drift, offer),
            _since(drift, used),
            _since(drift, arrived),
            told["version"],
            tuple(told["transitions"]),
            judgement,
            {name: sum(each[name] for each in ended) for name in FAULTS},
        )


def _since(begin: float, at: float | None) -> float | None:
    return None if at is None else at - begin
