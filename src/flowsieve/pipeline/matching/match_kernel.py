"""Which subscriptions an event matches, by bitsets, compiled; the plain twin is `boxes.BoxTable.matches`.

Along each dimension the boxes' ends cut the line into segments. A segment has a row of bits: a bit per box (or
subscription) that holds the whole segment. An event's match is the AND of one row per dimension.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from flowsieve.content.words_kernel import ONE, popcount, segment_of

SCALE = 1 << 26  # places on a line of which variances are made; a square has 53 bits at most
LOW = np.int64((1 << 32) - 1)
BUCKETS = 1 << 12  # equal parts of a dimension, of which is known where their segments begin


class Segments(NamedTuple):
    """The segments of all dimensions: those of dimension d are the rows from `start[d]` on."""

    edges: NDArray[np.float64]  # where segments after the first begin; of dimension d from start[d] - d on
    start: NDArray[np.int64]  # one more than there are dimensions
    bits: NDArray[np.uint64]  # a row per segment
    base: NDArray[np.float64]  # of each dimension, where its buckets begin
    scale: NDArray[np.float64]  # and how many there are to a unit
    hints: NDArray[np.int32]  # how many edges are in buckets before each one


class Sums(NamedTuple):
    """What is added up over events; all of it whole numbers, so that no order of adding changes it."""

    moments: NDArray[np.int64]  # per dimension: sum of places; of their squares, the high and the low 32 bits
    along: NDArray[np.int64]  # [i, j]: subscriptions that an event matches along both dimensions
    traffic: NDArray[np.int64]  # events that each subscription matches
    events: NDArray[np.int64]  # all, and those that nobody wants


@njit(cache=True, nogil=True)
def fill_rows(first, last, by_first, by_last, bit, bits):
    """The rows of one dimension: box b holds the segments first[b] to last[b], and several boxes may share a bit.

    `by_first` and `by_last` list the boxes in these orders, for one sweep over the segments.
    """
    held = np.zeros(bits.shape[1] * 64, np.int64)
    begun, ended = 0, 0
    for row in range(len(bits)):
        if row > 0:
            for word in range(bits.shape[1]):
                bits[row, word] = bits[row - 1, word]
        while ended < len(last) and last[by_last[ended]] < row:
            b = bit[by_last[ended]]
            held[b] -= 1
            if held[b] == 0:
                bits[row, b >> 6] &= ~(ONE << np.uint64(b & 63))
            ended += 1
        while begun < len(first) and first[by_first[begun]] == row:
            b = bit[by_first[begun]]
            held[b] += 1
            bits[row, b >> 6] |= ONE << np.uint64(b & 63)
            begun += 1


@njit(cache=True, nogil=True)
def bucket_of(base, scale, value):
    """The bucket of a value. A greater value is in the same or a later one, however the arithmetic rounds."""
    place = (value - base) * scale
    if not place > 0.0:  # NaN too
        return 0
    return BUCKETS - 1 if place >= BUCKETS else np.int64(place)


@njit(cache=True, nogil=True)
def fill_hints(edges, base, scale, hints):
    """Count the edges before each bucket."""
    for edge in edges:
        hints[bucket_of(base, scale, edge) + 1] += 1
    for bucket in range(BUCKETS):
        hints[bucket + 1] += hints[bucket]


@njit(cache=True, nogil=True)
def find_rows(segments, points, rows):
    """The row of bits of every event along every dimension."""
    for d in range(points.shape[0]):
        begin, base, scale = segments.start[d] - d, segments.base[d], segments.scale[d]
        for event in range(points.shape[1]):
            value = points[d, event]
            bucket = bucket_of(base, scale, value)
            first, last = begin + segments.hints[d, bucket], begin + segments.hints[d, bucket + 1]
            rows[event, d] = (
                segments.start[d] + first - begin + segment_of(segments.edges, first, last, value)
            )


@njit(cache=True, nogil=True)
def add_moments(places, sums):
    for d in range(places.shape[0]):
        for event in range(places.shape[1]):
            place = places[d, event]
            square = place * place
            sums.moments[d, 0] += place
            sums.moments[d, 1] += square >> 32
            sums.moments[d, 2] += square & LOW


@njit(cache=True, nogil=True)
def count_rows(bits, counts):
    """How many bits each row has."""
    for row in range(len(bits)):
        found = np.uint64(0)
        for word in range(bits.shape[1]):
            found += popcount(bits[row, word])
        counts[row] = np.int64(found)


@njit(cache=True, nogil=True)
def add_along(bits, counts, rows, pairs, sums):
    """Count the subscriptions matched along each dimension, and along each pair of them if `pairs`."""
    words, dimensions = bits.shape[1], rows.shape[1]
    for event in range(len(rows)):
        for i in range(dimensions):
            one = rows[event, i]
            sums.along[i, i] += counts[one]
            for j in range(i + 1, dimensions if pairs else 0):
                other, found = rows[event, j], np.uint64(0)
                for word in range(words):
                    found += popcount(bits[one, word] & bits[other, word])
                sums.along[i, j] += np.int64(found)


@njit(cache=True, nogil=True)
def add_traffic(bits, rows, owner, sums):
    """Count, per subscription, the events that some box of it holds."""
    dimensions = rows.shape[1]
    for event in range(len(rows)):
        last = -1
        for word in range(bits.shape[1]):
            both = bits[rows[event, 0], word]
            for d in range(1, dimensions):
                both &= bits[rows[event, d], word]
            while both:
                box = word * 64 + np.int64(popcount((both & (~both + ONE)) - ONE))
                both &= both - ONE
                if owner[box] != last:
                    last = owner[box]
                    sums.traffic[last] += 1
        sums.events[0] += 1
        if last < 0:
            sums.events[1] += 1


@njit(cache=True, nogil=True)
def overlapping_pairs(low, high, owner):
    """How many pairs of boxes of different subscriptions there are, and overlap along each dimension, and along all."""
    dimensions = low.shape[1]
    out = np.zeros(dimensions + 2, np.int64)
    for one in range(len(low)):
        for other in range(one + 1, len(low)):
            if owner[one] == owner[other]:
                continue
            out[0] += 1
            all_along = True
            for d in range(dimensions):
                if low[one, d] <= high[other, d] and low[other, d] <= high[one, d]:
                    out[d + 1] += 1
                else:
                    all_along = False
            if all_along:
                out[dimensions + 1] += 1
    return out
