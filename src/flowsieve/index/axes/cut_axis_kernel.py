"""Places of whole columns between cuts; the plain twin of both kernels is `cut_axis.CutAxis.place`."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def listed_places(column, low, table, out):
    """Fill in each number's place, known for all integers from `low` on; the first row without one (-1: none)."""
    for i in range(len(column)):
        above = column[i] - low
        if not (0.0 <= above < len(table)):
            return i
        row = np.int64(above)
        if np.float64(row) != above:
            return i
        out[i] = table[row]
    return -1


@njit(cache=True, nogil=True)
def searched_places(column, low, high, whole, cuts, out):
    """Fill in each number's place; the first row outside `low` to `high`, or that is not `whole` (-1: none).

    The cuts are one less than a power of two. Whether one lies below a number is a coin toss that no processor
    can guess, so nothing branches on it.
    """
    top = (len(cuts) + 1) >> 1
    for i in range(len(column)):
        number = column[i]
        if not (low <= number <= high) or (whole and np.floor(number) != number):
            return i
        place, step = np.int64(0), top
        while step:
            place += step * np.int64(cuts[place + step - 1] <= number)
            step >>= 1
        out[i] = np.uint64(place)
    return -1
