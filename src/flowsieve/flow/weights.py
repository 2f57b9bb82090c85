"""Where events are expected to fall: cells of the space, each with a mass that is spread evenly over it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flowsieve.index.dzset import DzSet
from flowsieve.index.sample import EventSample

POINT = 128  # the length of a cell that is a single event
VOLUME = 0.02  # what the whole space weighs beside all else: cells that nothing hints at are not free
HINT = 0.3  # what interests weigh beside a sample: they tell of events that the sample missed
MOST_INTERESTS = 4096

Cells = tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.int64], NDArray[np.float64]]


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """Sorted cells (rows of hi, lo, length) and the mass of all cells before each, and in all."""

    cells: NDArray[np.uint64]
    mass: NDArray[np.float64]

    @classmethod
    def of(cls, interests: Sequence[DzSet] = (), sample: EventSample | None = None) -> Weights:
        """The traffic to expect: that of a sample, and some wherever somebody is interested.

        People subscribe to what happens: without a sample their interests are the best guess there is. Each
        weighs the same, spread over its dz by volume. Of very many, evenly chosen ones do.
        """
        parts = [_whole(VOLUME)]
        if interests:
            parts.append(
                _spread(
                    interests[:: max(1, len(interests) // MOST_INTERESTS)], 1.0 if sample is None else HINT
                )
            )
        if sample is not None and len(sample):
            n = len(sample)
            parts.append((sample.hi, sample.lo, np.full(n, POINT), np.full(n, 1 / n)))
        hi, lo, length, mass = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        rows = np.column_stack((hi, lo, length.astype(np.uint64)))
        order = np.lexsort((rows[:, 2], rows[:, 1], rows[:, 0]))
        return cls(np.ascontiguousarray(rows[order]), np.concatenate(([0.0], np.cumsum(mass[order]))))

    @property
    def total(self) -> float:
        return float(self.mass[-1])


def _whole(mass: float) -> Cells:
    nothing = np.zeros(1, np.uint64)
    return nothing, nothing, np.zeros(1, np.int64), np.full(1, mass)


def _spread(interests: Sequence[DzSet], mass: float) -> Cells:
    """The dz of interests of equal weight that add up to a mass."""
    volumes = [np.exp2(-dz.length.astype(float)) for dz in interests]
    shares = np.concatenate([volume / volume.sum() for volume in volumes]) * (mass / len(interests))
    hi, lo, length = (
        np.concatenate([getattr(dz, name) for dz in interests]) for name in ("hi", "lo", "length")
    )
    return hi, lo, length, shares


BY_VOLUME = Weights.of()
