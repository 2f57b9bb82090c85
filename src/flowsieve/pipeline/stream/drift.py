"""How far traffic has moved: what it was like when the running plan was new, against what it is like now."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray


def drift(before: NDArray[np.float64], now: NDArray[np.float64]) -> NDArray[np.float64]:
    """Per dimension the greatest difference between two distributions' shares below any place (Kolmogorov-Smirnov).

    0 is no difference, 1 that they have nothing in common. A row of each is a dimension, a column a part of its line.

    >>> drift(np.array([[1.0, 1.0, 0.0, 0.0]]), np.array([[0.0, 0.0, 2.0, 2.0]]))
    array([1.])
    """
    totals = before.sum(axis=1), now.sum(axis=1)
    known = (totals[0] > 0) & (totals[1] > 0)
    shares = [
        np.cumsum(each, axis=1) / np.where(known, total, 1.0)[:, None]
        for each, total in zip((before, now), totals, strict=True)
    ]
    found: NDArray[np.float64] = np.where(known, np.abs(shares[0] - shares[1]).max(axis=1, initial=0.0), 0.0)
    return found


@dataclass(frozen=True, eq=False)
class Baseline:
    """What traffic was like under a plan when that was new: a window's worth of events, from `since` on.

    The rates are those of that window; None as long as nothing was delivered.
    """

    version: int
    schema: str  # its digest
    since: int
    until: int
    events: int
    histogram: NDArray[np.float64]
    computed: float | None = None
    measured: float | None = None
    complete: bool = False

    @classmethod
    def begin(cls, version: int, schema: str, since: int, histogram: NDArray[np.float64]) -> Baseline:
        return cls(version, schema, since, since, 0, np.zeros_like(histogram))

    def fits(self, version: int, schema: str) -> bool:
        return (self.version, self.schema) == (version, schema)

    def grown(
        self,
        until: int,
        events: int,
        histogram: NDArray[np.float64],
        rates: tuple[float | None, float | None],
        span: int,
        least: int,
    ) -> Baseline:
        """With further events, until it is complete: so many of them, over so many microseconds."""
        if self.complete:
            return self
        many = self.events + events
        return replace(
            self,
            until=max(self.until, until),
            events=many,
            histogram=self.histogram + histogram,
            computed=rates[0],
            measured=rates[1],
            complete=many >= least and max(self.until, until) - self.since >= span,
        )
