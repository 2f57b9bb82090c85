"""Where events are expected to fall: cells of the space, each with a mass that is spread evenly over it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flowsieve.index.dzset import DzSet

POINT = 128  # the length of a cell that is a single event
SAMPLE_PRIOR = 0.02  # what the whole space weighs beside a sample: cells that it never hit are not free
INTEREST_PRIOR = 0.1  # and beside the subscribers' own interests, which are no more than a guess
MOST_INTERESTS = 4096


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """Sorted cells (rows of hi, lo, length) and the mass of all cells before each, and in all."""

    cells: NDArray[np.uint64]
    mass: NDArray[np.float64]

    @classmethod
    def _of(
        cls, hi: NDArray[np.uint64], lo: NDArray[np.uint64], length: NDArray[np.int64], mass: NDArray[np.float64], prior: float
    ) -> Weights:
        """Cells with their masses, and the whole space with the prior's share beside them."""
        total = float(mass.sum()) or 1.0
        rows = np.column_stack((np.append(hi, np.uint64(0)), np.append(lo, np.uint64(0)), np.append(length, 0).astype(np.uint64)))
        masses = np.append(mass, prior * total)
        order = np.lexsort((rows[:, 2], rows[:, 1], rows[:, 0]))
        return cls(np.ascontiguousarray(rows[order]), np.concatenate(([0.0], np.cumsum(masses[order]))))

    @classmethod
    def of_sample(cls, hi: NDArray[np.uint64], lo: NDArray[np.uint64]) -> Weights:
        """The traffic of a sample of events, given by their dz."""
        return cls._of(hi, lo, np.full(len(hi), POINT), np.ones(len(hi)), SAMPLE_PRIOR)

    @classmethod
    def of_interests(cls, interests: Sequence[DzSet]) -> Weights:
        """The traffic as it is likely to be where nothing else is known: people subscribe to what happens.

        Each subscription weighs the same, spread over its dz by volume. Of very many, evenly chosen ones do.
        """
        some = interests[:: max(1, len(interests) // MOST_INTERESTS)]
        if not some:
            return BY_VOLUME
        shares = [np.exp2(-dz.length.astype(float)) for dz in some]
        mass = np.concatenate([share / share.sum() for share in shares])
        hi, lo, length = (np.concatenate([getattr(dz, name) for dz in some]) for name in ("hi", "lo", "length"))
        return cls._of(hi, lo, length, mass, INTEREST_PRIOR)

    @property
    def total(self) -> float:
        return float(self.mass[-1])


_NONE = np.zeros(0, np.uint64)
BY_VOLUME = Weights._of(_NONE, _NONE, np.zeros(0, np.int64), np.zeros(0), 1.0)
