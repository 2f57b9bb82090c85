"""The tree of cells that a table may be cut from, and its best cut, compiled.

The plain twins are in `tests/pipeline/evaluation/test_table_cut.py`.

Nodes are numbered in preorder: the lower half of node i is i + 1, its upper half `high[i]`, which is 0 if i is a leaf.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from flowsieve.index.covers.box_kernel import bit_at, upper
from flowsieve.index.plans.split_kernel import cut_of, next_of
from flowsieve.pipeline.evaluation.coverage_kernel import holds

ONE = np.uint64(1)
ROOT = -1  # in place of the axis that the cell above was cut on


class BoxColumns(NamedTuple):
    """All boxes on a plan's axes, as `Span` has them, a row per box; those of a subscription stand together."""

    owner: NDArray[np.int64]
    first: NDArray[np.uint64]
    last: NDArray[np.uint64]
    below: NDArray[np.uint64]
    above: NDArray[np.uint64]


class Nodes(NamedTuple):
    """What is known of each cell: its dz, its upper half, who touches it, and the events of both kinds in it."""

    hi: NDArray[np.uint64]
    lo: NDArray[np.uint64]
    length: NDArray[np.int64]
    high: NDArray[np.int64]
    touching: NDArray[np.int64]
    seen: NDArray[np.int64]
    made: NDArray[np.int64]


@njit(cache=True, nogil=True)
def longer(array):
    out = np.zeros(2 * len(array), array.dtype)
    out[: len(array)] = array
    return out


@njit(cache=True, nogil=True)
def encloses(boxes, box, corner):
    for axis in range(corner.shape[1]):
        if boxes.below[box, axis] > corner[0, axis] or boxes.above[box, axis] < corner[1, axis]:
            return False
    return True


@njit(cache=True, nogil=True)
def narrow(boxes, near, count, axis, corner, out):
    """Of boxes that touch the cell above: those that touch this one; how many boxes are left, whose, and who is out.

    A subscription with a box that encloses the cell wants all of it: its boxes are left out from here on.
    """
    kept, partial, whole, i = 0, 0, 0, 0
    while i < count:
        owner, before, full = boxes.owner[near[i]], kept, False
        while i < count and boxes.owner[near[i]] == owner:
            box = near[i]
            i += 1
            if full or (
                axis != ROOT
                and (boxes.first[box, axis] > corner[1, axis] or boxes.last[box, axis] < corner[0, axis])
            ):
                continue
            if encloses(boxes, box, corner):
                full = True
            else:
                out[kept] = box
                kept += 1
        if full:
            kept = before
            whole += 1
        elif kept > before:
            partial += 1
    return kept, partial, whole


@njit(cache=True, nogil=True)
def divide(order, begin, end, places, axis, cut):
    """Put the events of a cell's lower half before those of the upper one; where these begin."""
    i, j = begin, end
    while i < j:
        if places[order[i], axis] <= cut:
            i += 1
        else:
            j -= 1
            order[i], order[j] = order[j], order[i]
    return i


@njit(cache=True, nogil=True)
def grow(splitter, bits, axis_last, boxes, places, seen, least):
    """All cells down to those where nothing is left to gain; events from number `seen` on are made up."""
    axes, room = len(axis_last), 1024
    hi, lo = np.zeros(room, np.uint64), np.zeros(room, np.uint64)
    length, high = np.zeros(room, np.int64), np.zeros(room, np.int64)
    touching, real, made = np.zeros(room, np.int64), np.zeros(room, np.int64), np.zeros(room, np.int64)
    order = np.arange(len(places))
    near, count = np.zeros((bits + 2, len(boxes.owner)), np.int64), np.zeros(bits + 2, np.int64)
    near[0], count[0] = np.arange(len(boxes.owner)), len(boxes.owner)
    corner = np.zeros((bits + 1, 2, axes), np.uint64)
    corner[0, 1] = axis_last
    state, whole = np.zeros(bits + 1, np.int64), np.zeros(bits + 2, np.int64)
    begin, middle, end = (
        np.zeros(bits + 1, np.int64),
        np.zeros(bits + 1, np.int64),
        np.zeros(bits + 1, np.int64),
    )
    axis, cut = np.full(bits + 1, ROOT, np.int64), np.zeros(bits + 1, np.uint64)
    number, waiting = np.zeros(bits + 1, np.int64), np.zeros(bits + 1, np.bool_)
    code_hi, code_lo = np.zeros(bits + 1, np.uint64), np.zeros(bits + 1, np.uint64)
    state[0], end[0] = splitter.start, len(places)
    n, at = 0, 0
    while at >= 0:
        if n == len(hi):
            hi, lo, length, high = longer(hi), longer(lo), longer(length), longer(high)
            touching, real, made = longer(touching), longer(real), longer(made)
        above = axis[at - 1] if at else ROOT
        count[at + 1], partial, new = narrow(boxes, near[at], count[at], above, corner[at], near[at + 1])
        whole[at + 1] = whole[at] + new
        hi[n], lo[n], length[n], high[n] = code_hi[at], code_lo[at], at, 0
        touching[n] = whole[at + 1] + partial
        for i in range(begin[at], end[at]):
            if order[i] < seen:
                real[n] += 1
            else:
                made[n] += 1
        number[at] = n
        n += 1
        if at < bits and partial and end[at] - begin[at] >= least:
            axis[at], cut[at] = cut_of(splitter, state[at], corner[at])
            middle[at] = divide(order, begin[at], end[at], places, axis[at], cut[at])
            waiting[at] = True
            corner[at + 1] = corner[at]
            corner[at + 1, 1, axis[at]] = cut[at]
            state[at + 1] = next_of(splitter, state[at], 0)
            begin[at + 1], end[at + 1] = begin[at], middle[at]
            code_hi[at + 1], code_lo[at + 1] = code_hi[at], code_lo[at]
            at += 1
            continue
        at -= 1
        while at >= 0 and not waiting[at]:
            at -= 1
        if at >= 0:
            waiting[at] = False
            high[number[at]] = n
            corner[at + 1] = corner[at]
            corner[at + 1, 0, axis[at]] = cut[at] + ONE
            state[at + 1] = next_of(splitter, state[at], 1)
            begin[at + 1], end[at + 1] = middle[at], end[at]
            code_hi[at + 1], code_lo[at + 1] = upper(code_hi[at], code_lo[at], at)
            at += 1
    return Nodes(hi[:n], lo[:n], length[:n], high[:n], touching[:n], real[:n], made[:n])


@njit(cache=True, nogil=True)
def best_cut(nodes, share, price, cost, entries, ends, whole):
    """The cheapest cut where an entry has a price and a made-up event counts for a share; how many entries it has.

    `whole` says which nodes are better taken whole, `ends` which node is the first behind each and all below it.
    """
    for i in range(len(nodes.high) - 1, -1, -1):
        high = nodes.high[i]
        ends[i] = ends[high] if high else i + 1
        wanted = nodes.touching[i]
        cost[i], entries[i], whole[i] = 0.0, 0, True
        if wanted:
            cost[i], entries[i] = price + (nodes.seen[i] + share * nodes.made[i]) * wanted, 1
        if high:
            below = cost[i + 1] + cost[high]
            if below < cost[i]:
                cost[i], entries[i], whole[i] = below, entries[i + 1] + entries[high], False
    return entries[0]


@njit(cache=True, nogil=True)
def list_cut(touching, ends, whole, out):
    """List the cells of the cut that somebody touches, in order; how many these are."""
    n, i = 0, 0
    while i < len(ends):
        if not whole[i]:
            i += 1
            continue
        if touching[i]:
            out[n] = i
            n += 1
        i = ends[i]
    return n


@njit(cache=True, nogil=True)
def corners_of(splitter, axis_last, hi, lo, length, first, last):
    """Fill in the first and the last place of each cell on every axis."""
    corner = np.zeros((2, len(axis_last)), np.uint64)
    for i in range(len(hi)):
        corner[0], corner[1] = 0, axis_last
        state = splitter.start
        for level in range(length[i]):
            axis, cut = cut_of(splitter, state, corner)
            half = np.int64(bit_at(hi[i], lo[i], level))
            if half:
                corner[0, axis] = cut + ONE
            else:
                corner[1, axis] = cut
            state = next_of(splitter, state, half)
        first[i], last[i] = corner[0], corner[1]


@njit(cache=True, nogil=True)
def find_cells(hi, lo, length, code_hi, code_lo):
    """The number of the cell that each dz lies in, of sorted cells none of which is inside another; -1: in none."""
    out = np.full(len(code_hi), -1, np.int64)
    for i in range(len(code_hi)):
        a, b = 0, len(hi)
        while a < b:  # the first cell that begins behind the dz
            middle = (a + b) >> 1
            if hi[middle] < code_hi[i] or (hi[middle] == code_hi[i] and lo[middle] <= code_lo[i]):
                a = middle + 1
            else:
                b = middle
        if a and holds(hi[a - 1], lo[a - 1], length[a - 1], code_hi[i], code_lo[i]):
            out[i] = a - 1
    return out
