"""An event sample: where the traffic is, so that a cover spends its dz there."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from flowsieve.content.event import EventBatch
from flowsieve.index.covers.cover import Boxes
from flowsieve.index.covers.refine import Weigh, Weight, volume_weight
from flowsieve.index.covers.walk import Cell, Walk

if TYPE_CHECKING:
    from flowsieve.index.plan import IndexPlan

PRIOR = 8.0  # events; fewer chase single events of the sample, more forget where the traffic is


@dataclass(frozen=True, slots=True, eq=False)
class EventSample:
    """The dz of some events under a plan, sorted, and each event's place on every axis (a row per dz).

    Made once, used for any number of covers under the same plan. An event of several dz counts for each. In
    every cell `prior` more events are assumed, spread evenly: so cells without events are not free, and
    where there are few events the volume decides.
    """

    plan: IndexPlan
    hi: NDArray[np.uint64]
    lo: NDArray[np.uint64]
    places: NDArray[np.uint64]
    prior: float = PRIOR

    @classmethod
    def of(cls, plan: IndexPlan, events: EventBatch) -> EventSample:
        column = plan.encode_batch(events)
        order = np.lexsort((column.lo, column.hi))
        return cls(plan, column.hi[order], column.lo[order], plan.places(events)[order])

    def __len__(self) -> int:
        return len(self.hi)

    def weight(self, walk: Walk, boxes: Boxes) -> Weigh:
        """Weighs by the events that no box wants: a cell's waste is divided among its parts as these fall."""
        by_volume = volume_weight(walk)
        codes = [hi << 64 | lo for hi, lo in zip(self.hi.tolist(), self.lo.tolist(), strict=True)]
        unwanted = [0]  # before each code
        for row in self.places.tolist():
            wanted = any(
                all(span.first <= place <= span.last for place, span in zip(row, box, strict=True))
                for box in boxes
            )
            unwanted.append(unwanted[-1] + (not wanted))

        def weigh(cell: Cell, near: Boxes, above: Weight | None) -> Weight:
            volume = by_volume(cell, near, above).volume
            if volume == 0.0:
                return Weight(0.0, 0.0)
            start, end = cell.dz.aligned, cell.dz.aligned + (1 << 128 - cell.dz.length)
            hits = unwanted[bisect_left(codes, end)] - unwanted[bisect_left(codes, start)]
            if above is None:
                waste = (hits + self.prior * volume) / len(codes)
            else:
                waste = (
                    above.waste * (hits + self.prior * (volume / above.volume)) / (above.hits + self.prior)
                )
            return Weight(waste, volume, hits)

        return weigh


class Resampler:
    """The sample of some events under whatever plan is asked for; that of the last two plans is kept."""

    def __init__(self, events: EventBatch | None) -> None:
        self._events = events
        self._known: tuple[EventSample, ...] = ()

    def __call__(self, plan: IndexPlan) -> EventSample | None:
        if self._events is None:
            return None
        for known in self._known:
            if known.plan is plan:
                return known
        made = EventSample.of(plan, self._events)
        self._known = (made, *self._known[:1])
        return made
