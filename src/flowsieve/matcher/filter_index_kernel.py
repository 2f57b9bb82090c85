"""Boxes that come and go as bits in buckets, and the receivers whose boxes hold an event; compiled.

Each column's line is cut into a few buckets, with a row of bits each: a bit per slot whose box reaches into the bucket.
The AND of one row per column has all slots that may hold an event; these are looked at exactly. However many different
boxes there are, there are only so many rows. The plain twin is `content.filter.Filter.matches`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from flowsieve.content.words_kernel import ONE, lowest, popcount, segment_of

ZERO = np.uint64(0)
STEP = 16  # words of a row that are read together; the rest of the rows are not read where the first leave nothing


class BoxPart(NamedTuple):
    """Slots for boxes, the first of them in use. A slot's receivers are 64 neighbours at most: a block and its bits."""

    bounds: NDArray[np.float64]  # [slot, column]: low and high, both inside
    block: NDArray[np.uint8]
    receivers: NDArray[np.uint64]
    doubtful: NDArray[np.bool_]  # whether there is more to a box than its bounds
    edges: NDArray[
        np.float64
    ]  # [column]: where buckets after the first begin; infinity: there is no such bucket
    bits: NDArray[np.uint64]  # [column, bucket]: a bit per slot
    counts: NDArray[np.int64]  # [column, bucket]: how many bits are set

    @classmethod
    def of(cls, slots: int, columns: int, buckets: int) -> BoxPart:
        return cls(
            np.zeros((slots, columns, 2)),
            np.zeros(slots, np.uint8),
            np.zeros(slots, np.uint64),
            np.zeros(slots, np.bool_),
            np.full((columns, buckets - 1), np.inf),
            np.zeros((columns, buckets, -(-slots // (64 * STEP)) * STEP), np.uint64),
            np.zeros((columns, buckets), np.int64),
        )


@njit(cache=True, nogil=True)
def flip(part, slot, step):
    """Set the bits of a slot's box where none is set (step 1), or clear those that are (step -1)."""
    word, bit = slot >> 6, ONE << np.uint64(slot & 63)
    for column in range(len(part.edges)):
        edges = part.edges[column]
        first = segment_of(edges, 0, len(edges), part.bounds[slot, column, 0])
        last = segment_of(edges, 0, len(edges), part.bounds[slot, column, 1])
        for bucket in range(first, last + 1):
            part.bits[column, bucket, word] ^= bit
            part.counts[column, bucket] += step


@njit(cache=True, nogil=True)
def cut_anew(part, used, column, edges):
    """Give a column other buckets.

    Each box's bit is set where it begins and where it has ended; then every row is flipped by the row before it.
    """
    rows, words = part.bits[column], (used + 63) >> 6
    part.edges[column] = edges
    rows[:, :words] = ZERO
    for slot in range(used):
        word, bit = slot >> 6, ONE << np.uint64(slot & 63)
        rows[segment_of(edges, 0, len(edges), part.bounds[slot, column, 0]), word] ^= bit
        behind = segment_of(edges, 0, len(edges), part.bounds[slot, column, 1]) + 1
        if behind < len(rows):
            rows[behind, word] ^= bit
    for bucket in range(len(rows)):
        found = ZERO
        for word in range(words):
            if bucket > 0:
                rows[bucket, word] ^= rows[bucket - 1, word]
            found += popcount(rows[bucket, word])
        part.counts[column, bucket] = np.int64(found)


@njit(cache=True, nogil=True)
def choose_rows(part, used, point, columns, buckets):
    """The columns that rule some slot out at a point, the strictest first, and their buckets; how many they are."""
    many = 0
    for column in range(len(part.edges)):
        edges = part.edges[column]
        bucket = segment_of(edges, 0, len(edges), point[column])
        count = part.counts[column, bucket]
        if count == used:
            continue
        at = many
        while at > 0 and part.counts[columns[at - 1], buckets[at - 1]] > count:
            columns[at], buckets[at] = columns[at - 1], buckets[at - 1]
            at -= 1
        columns[at], buckets[at] = column, bucket
        many += 1
    return many


@njit(cache=True, nogil=True)
def holds(bounds, point):
    """Whether a point lies within the bounds of a box."""
    for column in range(len(point)):
        if not bounds[column, 0] <= point[column] <= bounds[column, 1]:
            return False
    return True


@njit(cache=True, nogil=True)
def match(part, used, points, everyone, found):
    """Add the receivers with a box that holds each point to those found; the doubtful ones, as (point, slot).

    A slot whose receivers are all found is passed over, and once `everyone` is found nothing is looked at any more.
    """
    words = (used + 63) >> 6
    columns, buckets = np.empty(len(part.edges), np.int64), np.empty(len(part.edges), np.int64)
    shared = np.empty(STEP, np.uint64)
    doubts, doubted = np.empty((16, 2), np.int64), 0
    for event in range(len(points)):
        missing = ZERO
        for block in range(len(everyone)):
            missing += popcount(everyone[block] & ~found[event, block])
        many = choose_rows(part, used, points[event], columns, buckets)
        for begin in range(0, words, STEP):
            if missing == ZERO:
                break
            some = ~ZERO
            for word in range(STEP):
                shared[word] = ~ZERO
            for k in range(many):
                row = part.bits[columns[k], buckets[k], begin : begin + STEP]
                some = ZERO
                for word in range(STEP):
                    shared[word] &= row[word]
                    some |= shared[word]
                if some == ZERO:
                    break
            if some == ZERO:
                continue
            for word in range(STEP):
                left = shared[word]
                while left:
                    slot = (begin + word) * 64 + lowest(left)
                    left &= left - ONE
                    if slot >= used:  # no row ruled anything out
                        break
                    block = part.block[slot]
                    new = part.receivers[slot] & ~found[event, block]
                    if new == ZERO or not holds(part.bounds[slot], points[event]):
                        continue
                    if part.doubtful[slot]:
                        if doubted == len(doubts):
                            more = np.empty((2 * doubted, 2), np.int64)
                            more[:doubted] = doubts
                            doubts = more
                        doubts[doubted, 0], doubts[doubted, 1] = event, slot
                        doubted += 1
                    else:
                        found[event, block] |= new
                        missing -= popcount(new)
    return doubts[:doubted]
