"""The dz of many events under a plan that is a grid; the plain twin is `levels.GridPlan.encode`."""

from __future__ import annotations

import numpy as np
from numba import njit

ONE = np.uint64(1)


@njit(cache=True, nogil=True)
def interleave(levels, shifts, places, hi, lo):
    """Fill in left-aligned dz: bit i is bit `shifts[i]` of the place on axis `levels[i]` (a row per axis)."""
    for level in range(len(levels)):
        column, shift = places[levels[level]], shifts[level]
        if level < 64:
            to = np.uint64(63 - level)
            for row in range(len(hi)):
                hi[row] |= (column[row] >> shift & ONE) << to
        else:
            to = np.uint64(127 - level)
            for row in range(len(lo)):
                lo[row] |= (column[row] >> shift & ONE) << to
