"""Trees of cuts: each cut is the one that avoids most deliveries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from flowsieve.pipeline.planning import tree_kernel as kernel

Places = NDArray[np.int64]


def avoided(points: Places, first: Places, last: Places, axis: int, place: int) -> int:
    """How many (event, box) pairs a cut keeps apart: the definition."""
    below = points[:, axis] < place
    pairs = below[:, None] & (first[:, axis] >= place) | ~below[:, None] & (last[:, axis] < place)
    return int(pairs.sum())


@pytest.mark.parametrize("seed", range(20))
def test_a_cell_is_cut_where_most_deliveries_are_avoided(seed: int) -> None:
    rng = np.random.default_rng(seed)
    points, first = rng.integers(0, 16, (30, 2)), rng.integers(0, 16, (20, 2))
    last = np.minimum(first + rng.integers(0, 6, first.shape), 15)
    corner = np.array([[2, 0], [13, 15]])
    events = np.flatnonzero(((points >= corner[0]) & (points <= corner[1])).all(axis=1))
    touching = ((first <= corner[1]) & (last >= corner[0])).all(axis=1)
    holding = ((first <= corner[0]) & (last >= corner[1])).all(axis=1)
    out = np.empty(len(first), np.int64)
    count = kernel.partial(first, last, np.arange(len(first)), corner, out)
    boxes = out[:count]
    assert boxes.tolist() == np.flatnonzero(touching & ~holding).tolist()
    room: Any = (np.empty(len(events), np.int64), np.empty(count, np.int64), np.empty(count, np.int64))
    allowed = np.ones(2, np.bool_)
    axis, place, gain = kernel.best_split(points, first, last, events, boxes, corner, allowed, room)
    gains = {
        (d, cut): avoided(points[events], first[boxes], last[boxes], d, cut)
        for d in range(2)
        for cut in range(corner[0, d] + 1, corner[1, d] + 1)
    }
    assert gain == gains[axis, place] == max(gains.values()) > 0
