"""Grids made better: the cuts of each dimension chosen anew, all at once, given what the other dimensions let pass.

The level-wise planner cuts each dimension by itself and never takes a cut back. Here every pair of an event and a box
that the other dimensions do not tell apart votes for the cuts between the two, and the set of cuts with most votes is
found by dynamic programming. One dimension after the other, until nothing changes much.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from flowsieve.pipeline.matching.matcher import bit_rows
from flowsieve.pipeline.planning import stab_kernel as kernel
from flowsieve.pipeline.planning.training_data import TrainingData

CANDIDATES = 1 << 10  # cuts of a dimension to choose from
PAIRED = 8_000  # events that vote
ROUNDS = 2

CutPlaces = NDArray[np.int64]  # cuts of a dimension, in order: the places that begin an upper part


def fewest_unstabbed(pairs: NDArray[np.int64], number: int) -> tuple[int, ...]:
    """The cuts that leave fewest pairs unstabbed, by trying all: the definition, for tests."""
    from itertools import combinations

    n = len(pairs) - 1

    def left(cuts: tuple[int, ...]) -> int:
        return sum(
            int(pairs[i, j])
            for i in range(n + 1)
            for j in range(i + 1, n + 1)
            if not any(i <= c < j for c in cuts)
        )

    return min(combinations(range(n), number), key=left)


def improved(training: TrainingData, cuts: dict[int, CutPlaces]) -> dict[int, CutPlaces]:
    """The cuts of each dimension, as many as they were; a string keeps its own."""
    points = training.points[:PAIRED]
    now = dict(cuts)
    for _ in range(ROUNDS):
        for d in sorted(now, key=lambda d: len(now[d])):
            if not training.lines[d].is_string and len(now[d]):
                now[d] = _recut(training, points, now, d)
    return now


def cut_candidates(training: TrainingData, d: int) -> CutPlaces:
    """Places where some box begins or ends; of many, those that most boxes share or that are spread evenly."""
    places = training.lines[d].places
    weight = np.bincount(training.first[:, d], minlength=places + 1)
    weight += np.bincount(training.last[:, d] + 1, minlength=places + 1)[: places + 1]
    weight[[0, -1]] = 0
    every = np.flatnonzero(weight)
    if len(every) <= CANDIDATES:
        return every
    share = np.cumsum(weight[every]) / weight.sum()
    return np.unique(every[np.searchsorted(share, np.linspace(0, 1, CANDIDATES, endpoint=False))])


def _recut(
    training: TrainingData, points: NDArray[np.int64], cuts: dict[int, CutPlaces], d: int
) -> CutPlaces:
    number, known = len(cuts[d]), cut_candidates(training, d)
    if len(known) <= number:
        return np.concatenate([known, np.full(number - len(known), training.lines[d].places)])
    others = [(other, places) for other, places in cuts.items() if other != d]
    tables, rows = _passing(training, points, others)
    after = np.searchsorted(known, np.arange(training.lines[d].places + 1), side="right")
    pairs = np.zeros((len(known) + 1, len(known) + 1), np.int64)
    first, last = training.first[:, d].copy(), training.last[:, d].copy()
    kernel.add_pairs(tables, rows, after, after, points[:, d], first, last, pairs)
    recut: CutPlaces = known[kernel.fewest_unstabbed(pairs, number)]
    return recut


def _passing(
    training: TrainingData, points: NDArray[np.int64], others: Sequence[tuple[int, CutPlaces]]
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """The bits of boxes that touch each cell of the other dimensions, and the rows of every event in them."""
    boxes = len(training.first)
    everything = bit_rows(np.zeros(boxes, np.int64), np.zeros(boxes, np.int64), 1)
    tables, rows, start = [everything], [np.zeros(len(points), np.int64)], 1
    for d, cuts in others:
        cells = np.searchsorted(cuts, np.arange(training.lines[d].places), side="right")
        tables.append(bit_rows(cells[training.first[:, d]], cells[training.last[:, d]], len(cuts) + 1))
        rows.append(cells[points[:, d]] + start)
        start += len(cuts) + 1
    return np.concatenate(tables), np.ascontiguousarray(np.stack(rows, axis=1))
