"""Counts over events and boxes that choose dimensions, compiled.

The plain twins are in `tests/pipeline/planning/test_selection.py`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from flowsieve.content.words_kernel import popcount

BUCKETS = 1 << 12


@njit(cache=True, nogil=True, inline="always")
def before(line, value, low, high):
    """How many of a sorted line's numbers low..high are below a value, and all before these."""
    while low < high:
        middle = (low + high) >> 1
        if line[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def count_matches(points, low, after, least, values, out):
    """Per dimension the (event, box) pairs that match along it.

    A point lies in as many boxes as begin at or before it, less those that end before it. `low` has, sorted, where the
    boxes begin, `after` the first numbers beyond them. A dimension of few whole numbers (`values`, from `least` on; 0:
    not such a one) has a table of all; elsewhere both are searched for, in a bucket.
    """
    for d in range(points.shape[0]):
        total = 0
        if values[d]:
            table = np.zeros(values[d] + 1, np.int64)
            for number in low[d]:
                table[np.int64(number - least[d])] += 1
            for number in after[d]:
                table[np.int64(number - least[d])] -= 1
            for i in range(1, len(table)):
                table[i] += table[i - 1]
            for event in range(points.shape[1]):
                total += table[np.int64(points[d, event] - least[d])]
        else:
            lines = (low[d], after[d])
            for side in range(2):
                line = lines[side]
                begin, count = line[0], 0
                span = line[-1] - begin
                scale = (BUCKETS - 1) / span if span > 0.0 else 0.0
                start = np.zeros(BUCKETS + 1, np.int64)
                for number in line:
                    start[np.int64((number - begin) * scale) + 1] += 1
                for i in range(BUCKETS):
                    start[i + 1] += start[i]
                for event in range(points.shape[1]):
                    value = np.nextafter(points[d, event], np.inf)  # boxes that begin at the point hold it
                    if value > line[-1]:
                        count += len(line)
                    elif value > begin:
                        bucket = np.int64((value - begin) * scale)
                        count += before(line, value, start[bucket], start[bucket + 1])
                total += count if side == 0 else -count
        out[d] += total


@njit(cache=True, nogil=True)
def add_deliveries(bits, rows, grids, shared, out):
    """Per grid the deliveries of events: `grids[g]` names the columns of `rows` (-1: none) whose bits are joined.

    `shared` is room for the bits of one event. Bits are boxes; a subscription of several counts for each.
    """
    words = bits.shape[1]
    for event in range(rows.shape[0]):
        for g in range(grids.shape[0]):
            first = rows[event, grids[g, 0]]
            for word in range(words):
                shared[word] = bits[first, word]
            for k in range(1, grids.shape[1]):
                if grids[g, k] < 0:
                    break
                row = rows[event, grids[g, k]]
                for word in range(words):
                    shared[word] &= bits[row, word]
            found = np.uint64(0)
            for word in range(words):
                found += popcount(shared[word])
            out[g] += np.int64(found)
