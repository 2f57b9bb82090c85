"""When another plan is made, and whether it is worth going over to it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flowsieve.errors import BadInput
from flowsieve.pipeline.evaluation.evaluation import Score
from flowsieve.pipeline.stream.drift import Baseline
from flowsieve.pipeline.stream.window import WindowReading

SECOND = 1_000_000  # microseconds


@dataclass(frozen=True)
class Thresholds:
    """What has another plan made: drift, a rate that has risen by so much or is so high, or so many seconds gone by.

    After a plan that was of no use the next is made no sooner than `pause` seconds later, then twice as long, and so
    on up to `every`. Fewer than `least` events say nothing.
    """

    drift: float = 0.2
    rise: float = 0.05
    fpr: float | None = None
    every: float = 600.0
    pause: float = 30.0
    least: int = 1_000

    def __post_init__(self) -> None:
        for name in ("drift", "rise", "fpr"):
            value = getattr(self, name)
            if value is not None and not 0.0 < value <= 1.0:
                raise BadInput(f"--{name} is {value}; right is a share above 0 and up to 1")
        if self.every <= 0 or self.pause <= 0:
            raise BadInput("--every and --pause are seconds; right are numbers above 0")
        if self.least < 1:
            raise BadInput(f"--least is {self.least}; right is a number of events from 1 on")


@dataclass(frozen=True)
class Pacing:
    """When a plan was last made (None: never), under which index, and for how many seconds none is made after that."""

    last: int | None = None
    version: int | None = None
    pause: float = 0.0

    def followed(self, version: int, now: int, thresholds: Thresholds) -> Pacing:
        """Under a new index it begins anew."""
        if self.version == version:
            return self
        last = self.last if self.version is None else now
        return Pacing(last, version, thresholds.pause)

    def planned(self, now: int, thresholds: Thresholds) -> Pacing:
        longer = min(max(thresholds.every, thresholds.pause), 2 * max(self.pause, thresholds.pause / 2))
        return replace(self, last=now, pause=longer)


def why_plan(
    thresholds: Thresholds,
    pacing: Pacing,
    reading: WindowReading,
    baseline: Baseline,
    drifts: NDArray[np.float64],
) -> str | None:
    """Why a plan should be made now; None if there is no reason to."""
    now, names = reading.until, reading.schema.names
    if reading.total.events < thresholds.least or not baseline.complete or not reading.ids:
        return None
    if pacing.last is None:
        return "this is the first whole window"
    since = (now - pacing.last) / SECOND
    if since < pacing.pause:
        return None
    most = int(np.argmax(drifts)) if len(drifts) else 0
    if len(drifts) and drifts[most] >= thresholds.drift:
        return f"{names[most]} has drifted by {drifts[most]:.2f}, and {thresholds.drift:g} is enough"
    for what in ("measured", "computed"):
        rate, before = getattr(reading, what), getattr(baseline, what)
        if rate is None:
            continue
        if before is not None and rate - before >= thresholds.rise:
            return f"the {what} false-positive rate rose from {before:.3f} to {rate:.3f}"
        if thresholds.fpr is not None and rate >= thresholds.fpr:
            return f"the {what} false-positive rate is {rate:.3f}, and {thresholds.fpr:g} is enough"
    if since >= thresholds.every:
        return f"{since:.0f} s have gone by"
    return None


@dataclass(frozen=True)
class MovePrice:
    """What going over to another plan has to bring: a rate lower by a share (`margin`), and more than it costs.

    While a network goes over, for `seconds`, every event may go to every subscription under the old tag; what is
    saved is saved for a `horizon` of seconds.
    """

    margin: float = 0.1
    horizon: float = 3600.0
    seconds: float = 3.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.margin < 1.0:
            raise BadInput(f"--margin is {self.margin}; right is a share from 0 to below 1")
        if self.horizon <= 0 or self.seconds < 0:
            raise BadInput("--horizon and --move-seconds are seconds; right are 3600 and 3, say")

    def judge(self, old: Score, new: Score) -> tuple[bool, str]:
        """Whether to go over, and why or why not."""
        events = max(1, new.events)
        saved = (old.false_positives - new.false_positives) / events
        extra = max(0.0, len(old.covered) - old.deliveries / events)
        rates = f"{old.fpr:.3f} → {new.fpr:.3f}"
        if not new.events:
            return False, "there was no event to judge it on"
        if new.false_negatives:
            return False, f"it would miss {new.false_negatives} deliveries"  # a mistake of ours
        if new.fpr > (1 - self.margin) * old.fpr:
            return False, f"{rates} is not better by {self.margin:.0%}"
        if saved * self.horizon <= extra * self.seconds:
            return False, (
                f"{rates} saves {saved:.2f} deliveries an event, which does not pay in {self.horizon:g} s for "
                f"{extra:.0f} more an event during {self.seconds:g} s"
            )
        return True, f"{rates}, which saves {saved:.2f} deliveries an event"


def scores(old: Score, new: Score) -> dict[str, Any]:
    """What both plans came to on the same events, as an offer tells it."""
    return {"events": new.events, "old": old.to_json(), "new": new.to_json()}
