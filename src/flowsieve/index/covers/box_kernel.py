"""Cells and boxes of a plan, compiled; their plain twins are in `plans.splitter`, `covers.cover` and `covers.refine`.

A cell is its dz, left-aligned in 128 bits, and its corner: the first and the last place on each axis. Boxes
are known by their numbers; a cell has a list of those that touch it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from flowsieve.index.covers.refine import FEW_BOXES, LEAST_SHARE
from flowsieve.index.plans.split_kernel import axes_of, reach_of

ZERO = np.uint64(0)
ONE = np.uint64(1)


class Task(NamedTuple):
    """A plan, the boxes to cover, and a sample that says where events fall; empty if there is none."""

    start: int  # these seven as in `Splitter`
    axis: NDArray[np.int64]
    fixed: NDArray[np.bool_]
    cut: NDArray[np.uint64]
    next: NDArray[np.int64]
    chained: NDArray[np.bool_]
    reach: NDArray[np.uint8]
    bits: int
    axis_last: NDArray[np.uint64]  # the last place on each axis
    first: NDArray[np.uint64]  # these four as in `Span`: a row per box, a column per axis
    last: NDArray[np.uint64]
    below: NDArray[np.uint64]
    above: NDArray[np.uint64]
    codes_hi: NDArray[np.uint64]  # the sample's dz, sorted
    codes_lo: NDArray[np.uint64]
    places: NDArray[np.uint64]  # a row per event of the sample, a column per axis
    unwanted: NDArray[np.int64]  # room for as many numbers as there are codes, and one more
    prior: float  # as in `EventSample`


class GridTask(NamedTuple):
    """A `Task` of a grid."""

    levels: NDArray[np.int64]  # a row per level: the axis that it halves, then `reach` as in `Splitter`
    bits: int
    axis_last: NDArray[np.uint64]  # the last place on each axis
    first: NDArray[np.uint64]  # these four as in `Span`: a row per box, a column per axis
    last: NDArray[np.uint64]
    below: NDArray[np.uint64]
    above: NDArray[np.uint64]
    codes_hi: NDArray[np.uint64]  # the sample's dz, sorted
    codes_lo: NDArray[np.uint64]
    places: NDArray[np.uint64]  # a row per event of the sample, a column per axis
    unwanted: NDArray[np.int64]  # room for as many numbers as there are codes, and one more
    prior: float  # as in `EventSample`


@njit(cache=True, nogil=True, inline="always")
def upper(hi, lo, length):
    """The left-aligned dz of the upper half of a cell."""
    if length < 64:
        return hi | (ONE << np.uint64(63 - length)), lo
    return hi, lo | (ONE << np.uint64(127 - length))


@njit(cache=True, nogil=True, inline="always")
def bit_at(hi, lo, level):
    """The bit of a left-aligned dz that tells the halves at a level apart."""
    if level < 64:
        return hi >> np.uint64(63 - level) & ONE
    return lo >> np.uint64(127 - level) & ONE


@njit(cache=True, nogil=True)
def copy_corner(source, target):
    for axis in range(source.shape[1]):
        target[0, axis], target[1, axis] = source[0, axis], source[1, axis]


@njit(cache=True, nogil=True)
def whole_corner(task, target):
    for axis in range(len(task.axis_last)):
        target[0, axis], target[1, axis] = ZERO, task.axis_last[axis]


@njit(cache=True, nogil=True)
def list_all(task, near):
    """The list of all boxes."""
    for box in range(len(task.first)):
        near[box] = box


@njit(cache=True, nogil=True)
def keep_touching(task, near, source, count, axis, first, last, target):
    """Copy those boxes of a list that reach into first..last on an axis; how many these are."""
    kept = 0
    for i in range(source, source + count):
        box = near[i]
        if task.first[box, axis] <= last and task.last[box, axis] >= first:
            near[target + kept] = box
            kept += 1
    return kept


@njit(cache=True, nogil=True)
def any_touches(task, near, axis, first, last):
    """Whether some box of a list reaches into first..last on an axis."""
    i = 0
    while i < len(near) and (task.first[near[i], axis] > last or task.last[near[i], axis] < first):
        i += 1
    return i < len(near)


@njit(cache=True, nogil=True)
def any_encloses(task, near, corner):
    """Whether some box of a list encloses the cell."""
    for box in near:
        inside = True
        for axis in range(corner.shape[1]):
            if task.below[box, axis] > corner[0, axis] or task.above[box, axis] < corner[1, axis]:
                inside = False
                break
        if inside:
            return True
    return False


@njit(cache=True, nogil=True)
def any_fills(task, near, state, corner, length):
    """Whether some box of a list fills the cell; twin: `fills` in `cover`."""
    left = task.bits - length
    if left == 0:
        return True
    for box in near:
        filled = True
        for axis in range(axes_of(task)):
            reaches = task.first[box, axis] <= corner[0, axis] and task.last[box, axis] >= corner[1, axis]
            if not reaches and reach_of(task, state, corner, axis) < left:
                filled = False
                break
        if filled:
            return True
    return False


@njit(cache=True, nogil=True)
def outside(task, near, corner):
    """The share of a cell outside all boxes of a list: every sum and product in the order of the twin's."""
    axes, few = corner.shape[1], 1 < len(near) <= FEW_BOXES
    apart = 1.0
    for box in near:
        share, before = 0.0, 1.0
        for axis in range(axes):
            gap = 0.0
            if task.below[box, axis] > corner[0, axis]:
                gap = np.float64(task.below[box, axis] - corner[0, axis])
            if task.above[box, axis] < corner[1, axis]:
                gap += np.float64(corner[1, axis] - task.above[box, axis])
            if gap > 0.0:
                size = np.float64(corner[1, axis] - corner[0, axis]) + 1.0
                share += before * (gap / size)
                before *= (size - gap) / size
        if share == 0.0:
            return 0.0
        apart *= share
    apart = max(apart, 1e-300)
    if not few:
        return apart
    inside = 0.0
    for chosen in range(1, 1 << len(near)):
        share, sign = 1.0, -1.0
        for i in range(len(near)):
            if chosen >> i & 1:
                sign = -sign
        for axis in range(axes):
            low, high = corner[0, axis], corner[1, axis]
            for i in range(len(near)):
                if chosen >> i & 1:
                    low = max(low, task.below[near[i], axis])
                    high = min(high, task.above[near[i], axis])
            if low > high:
                share = 0.0
                break
            share *= (np.float64(high - low) + 1.0) / (np.float64(corner[1, axis] - corner[0, axis]) + 1.0)
        inside += sign * share
    return max(1.0 - inside, LEAST_SHARE * apart)
