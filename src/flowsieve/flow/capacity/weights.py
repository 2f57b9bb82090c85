"""Where events are expected to fall: in cells with a mass that is spread evenly over each, and as a sample fell.

A node weighs a share of what the node above it does: the share of the sample's events there that fall into it,
as if PRIOR more had fallen as the mass lies. So a sample tells where it is thick, and where it is thin its
single events are not chased: tables are finer than samples. Without a sample the mass tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flowsieve.index.dzset import DzSet
from flowsieve.index.sample import PRIOR, EventSample

VOLUME = 0.02  # what the whole space weighs beside interests: cells that nothing hints at are not free
THIN = 1.0  # the same beside a sample: where that is thin, interests hint at no more than volume does
MOST_INTERESTS = 4096

Cells = tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.int64], NDArray[np.float64]]


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """Sorted cells (rows of hi, lo, length), the mass of all before each and in all; sorted events (rows of hi, lo).

    `interests` is how many there were when the mass was found.
    """

    cells: NDArray[np.uint64]
    mass: NDArray[np.float64]
    events: NDArray[np.uint64]
    interests: int = 0

    @classmethod
    def of(cls, interests: Sequence[DzSet] = (), sample: EventSample | None = None) -> Weights:
        """The traffic to expect: that of a sample, and some wherever somebody is interested.

        People subscribe to what happens: without a sample their interests are the best guess there is. Each
        weighs the same, spread over its dz by volume. Of very many, evenly chosen ones do.
        """
        return cls.of_events(interests, None if sample is None else events_of(sample))

    @classmethod
    def of_events(cls, interests: Sequence[DzSet], events: NDArray[np.uint64] | None) -> Weights:
        """The same, given where the events of a sample fell (rows of hi, lo, sorted)."""
        parts = [_whole(VOLUME if events is None else THIN)]
        if interests:
            parts.append(_spread(interests[:: max(1, len(interests) // MOST_INTERESTS)]))
        hi, lo, length, mass = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        rows = np.column_stack((hi, lo, length.astype(np.uint64)))
        order = np.lexsort((rows[:, 2], rows[:, 1], rows[:, 0]))
        sums = np.concatenate(([0.0], np.cumsum(mass[order])))
        fell = events_of(None) if events is None else events
        return cls(np.ascontiguousarray(rows[order]), sums, fell, len(interests))

    @property
    def traffic(self) -> tuple[NDArray[np.uint64], NDArray[np.float64], NDArray[np.uint64], float]:
        """As the kernel takes it."""
        return self.cells, self.mass, self.events, PRIOR


def events_of(sample: EventSample | None) -> NDArray[np.uint64]:
    """Where the events of a sample fell."""
    return np.empty((0, 2), np.uint64) if sample is None else np.column_stack((sample.hi, sample.lo))


def _whole(mass: float) -> Cells:
    nothing = np.zeros(1, np.uint64)
    return nothing, nothing, np.zeros(1, np.int64), np.full(1, mass)


def _spread(interests: Sequence[DzSet]) -> Cells:
    """The dz of interests of equal weight that add up to one."""
    volumes = [np.exp2(-dz.length.astype(float)) for dz in interests]
    shares = np.concatenate([volume / volume.sum() for volume in volumes]) / len(interests)
    hi, lo, length = (
        np.concatenate([getattr(dz, name) for dz in interests]) for name in ("hi", "lo", "length")
    )
    return hi, lo, length, shares


BY_VOLUME = Weights.of()
