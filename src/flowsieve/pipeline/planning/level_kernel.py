"""Deliveries that are left after one more level of a grid, compiled.

The plain twin is in `tests/pipeline/planning/test_gridded.py`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from flowsieve.content.words_kernel import popcount


@njit(cache=True, nogil=True)
def left_with(current, bits, row):
    """How many deliveries are left if event e is kept from all boxes not in bits[row[e]]."""
    found = np.uint64(0)
    for event in range(len(row)):
        for word in range(current.shape[1]):
            found += popcount(current[event, word] & bits[row[event], word])
    return np.int64(found)


@njit(cache=True, nogil=True)
def keep_from(current, bits, row):
    """Keep events from boxes for good."""
    for event in range(len(row)):
        for word in range(current.shape[1]):
            current[event, word] &= bits[row[event], word]
