"""Which parts of a selective plan hold many events, and their ids.

The plain twin is `selective.SelectivePlan.encode`.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def holding(points, low, high, rest):
    """Rows of events and numbers of parts that hold them, row by row; an event that none holds is in the rest.

    A row of `points` is a dimension, a row of `low` and `high` is a part.
    """
    parts, dimensions, events = len(low), len(points), points.shape[1]
    rows, number = np.empty(events + 16, np.int64), np.empty(events + 16, np.int64)
    n = 0
    for row in range(events):
        if n + parts + 1 > len(rows):
            room = 2 * len(rows) + parts + 1
            more_rows, more_number = np.empty(room, np.int64), np.empty(room, np.int64)
            more_rows[:n], more_number[:n] = rows[:n], number[:n]
            rows, number = more_rows, more_number
        before = n
        for part in range(parts):
            inside = True
            for i in range(dimensions):
                if points[i, row] < low[part, i] or points[i, row] > high[part, i]:
                    inside = False
                    break
            if inside:
                rows[n], number[n] = row, part
                n += 1
        if n == before and rest:
            rows[n], number[n] = row, parts
            n += 1
    return rows[:n].copy(), number[:n].copy()


@njit(cache=True, nogil=True)
def put_behind(id_word, length, hi, lo):
    """Move left-aligned dz behind an id of so many bits, itself left-aligned."""
    if length == np.uint64(0):
        return
    for i in range(len(hi)):
        lo[i] = lo[i] >> length | hi[i] << (np.uint64(64) - length)
        hi[i] = hi[i] >> length | id_word
