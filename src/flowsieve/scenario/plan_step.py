"""A step that goes over to another plan, with events published while it happens.

Events are published whenever a switch has followed and others have not, and whenever a publisher has gone over and
others have not: so they meet all mixtures of tables that there are on the way.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from flowsieve.content.event import EventBatch
from flowsieve.control.transition.crossing import CrossingPhase
from flowsieve.errors import Refused
from flowsieve.scenario.plane import Plane
from flowsieve.scenario.prefix_plane import PrefixPlane
from flowsieve.scenario.read import PlanStep

PHASES = len(CrossingPhase)


@dataclass(slots=True)
class Trickle:
    """Events that are published little by little, at a rate, as often as somebody has a moment for it."""

    events: EventBatch | None
    moments: int  # that there will be, about
    rate: float
    publish: Callable[[EventBatch], None]
    done: int = 0
    began: float = field(default_factory=time.perf_counter)

    def some(self) -> None:
        """Publish the share of one moment."""
        if self.events is not None:
            self.until(self.done + max(1, len(self.events) // max(1, self.moments)))

    def rest(self) -> None:
        """Publish all that is left."""
        if self.events is not None:
            self.until(len(self.events))

    def until(self, end: int) -> None:
        """Publish up to so many, no faster than the rate."""
        assert self.events is not None
        end = min(end, len(self.events))
        if end > self.done:
            self.publish(self.events.take(np.arange(self.done, end)))
            self.done = end
            ahead = self.done / self.rate - (time.perf_counter() - self.began)
            if ahead > 0:
                time.sleep(ahead)


@dataclass(frozen=True, slots=True)
class PlanStepOutcome:
    """What became of a step: how it went, or why it was refused."""

    told: dict[str, Any] | None
    refused: str | None = None


def go_over(
    plane: Plane, step: PlanStep, publish: Callable[[EventBatch], None], unwanted: Callable[[], int]
) -> PlanStepOutcome:
    """Go over to a step's plan, and publish its events meanwhile; `unwanted` counts copies that nobody wanted."""
    assert isinstance(plane, PrefixPlane), "only where packets say what is in them; the step was read so"
    switches, events = len(plane.state.topology.switches), step.events.events if step.events else None
    publishers = len({each.endpoint for each in plane.state.advertisements.values()})
    trickle = Trickle(events, PHASES * switches + publishers, step.rate, publish)
    before, start = unwanted(), time.perf_counter()
    try:
        transition = plane.go_over(step.plan, trickle.some)
    except Refused as reason:
        trickle.rest()
        return PlanStepOutcome(None, f"plan {step.source.name}: {reason}")
    seconds, extra = time.perf_counter() - start, unwanted() - before
    trickle.rest()
    return PlanStepOutcome(
        {
            "seconds": round(seconds, 3),
            "phases": [record.to_json() for record in transition.records],
            "operations": sum(record.operations for record in transition.records),
            "extra_deliveries": extra,
        }
    )
