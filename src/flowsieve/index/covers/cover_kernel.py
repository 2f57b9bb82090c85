"""Exact covers, compiled; the plain twins are the functions of these names in `covers.cover`."""

from __future__ import annotations

import numpy as np
from numba import njit

from flowsieve.index.covers.box_kernel import (
    ONE,
    ZERO,
    any_encloses,
    bit_at,
    copy_corner,
    keep_touching,
    list_all,
    upper,
    whole_corner,
)
from flowsieve.index.covers.lone_kernel import bound, count_lone, list_lone
from flowsieve.index.dzset_kernel import grown, push
from flowsieve.index.plans.split_kernel import chain_of, cut_of, next_of, start_of


@njit(cache=True, nogil=True)
def touches(task, hi, lo, length):
    """Which cells some box touches."""
    axes = len(task.axis_last)
    corner = np.empty((2, axes), np.uint64)
    out = np.zeros(len(hi), np.bool_)
    for i in range(len(hi)):
        whole_corner(task, corner)
        state = start_of(task)
        for level in range(min(length[i], task.bits)):
            axis, middle = cut_of(task, state, corner)
            half = np.int64(bit_at(hi[i], lo[i], level))
            if half:
                corner[0, axis] = middle + ONE
            else:
                corner[1, axis] = middle
            state = next_of(task, state, half)
        for box in range(len(task.first)):
            touched = True
            for axis in range(axes):
                if task.first[box, axis] > corner[1, axis] or task.last[box, axis] < corner[0, axis]:
                    touched = False
                    break
            if touched:
                out[i] = True
                break
    return out


@njit(cache=True, nogil=True)
def exact(task, most, most_effort):
    """The dz of the exact cover, canonical; and whether these are all, and not more than `most`."""
    axes, boxes, bits = len(task.axis_last), len(task.first), task.bits
    room = 1024
    hi, lo, length = np.empty(room, np.uint64), np.empty(room, np.uint64), np.empty(room, np.int64)
    # The path to the cell in hand: of each level the cell, and the boxes that touch it.
    path_hi, path_lo = np.zeros(bits + 1, np.uint64), np.zeros(bits + 1, np.uint64)
    corners = np.empty((bits + 1, 2, axes), np.uint64)
    whole_corner(task, corners[0])
    near, count = np.empty((bits + 1) * boxes, np.int64), np.zeros(bits + 1, np.int64)
    list_all(task, near)
    count[0] = boxes
    state = np.full(bits + 1, start_of(task))
    turn = np.zeros(bits + 1, np.int64)  # how many halves have been looked at
    n = level = effort = 0
    while level >= 0:
        if turn[level] == 0:
            effort += 1 + count[level]
            if n > most + bits or effort > most_effort:
                return hi[:n], lo[:n], length[:n], False
            some = near[level * boxes : level * boxes + count[level]]
            alone = False
            if len(some) == 1:
                at, listed = (path_hi[level], path_lo[level], level), (hi, lo, length)
                hi, lo, length, n, effort, alone = list_lone(
                    task, some[0], corners[level], state[level], at, listed, n, most, effort, most_effort
                )
                if n > most + bits or effort > most_effort:
                    return hi[:n], lo[:n], length[:n], False
            if alone:
                room, turn[level] = len(hi), 2
            elif level == bits or any_encloses(task, some, corners[level]):
                if n == room:
                    room *= 2
                    hi, lo, length = grown(hi, room), grown(lo, room), grown(length, room)
                n = push(hi, lo, length, n, path_hi[level], path_lo[level], level)
                turn[level] = 2
        if turn[level] == 2:
            turn[level] = 0
            level -= 1
            continue
        half = turn[level]
        turn[level] += 1
        if enter(task, near, count, corners, state, level, half):
            path_hi[level + 1], path_lo[level + 1] = path_hi[level], path_lo[level]
            if half:
                path_hi[level + 1], path_lo[level + 1] = upper(path_hi[level], path_lo[level], level)
            level += 1
    return hi[:n], lo[:n], length[:n], n <= most


@njit(cache=True, nogil=True)
def enter(task, near, count, corners, state, level, half):
    """Write down a half of the cell at a level as the cell at the next; whether any box touches it."""
    boxes = len(task.first)
    axis, middle = cut_of(task, state[level], corners[level])
    state[level + 1] = next_of(task, state[level], half)
    copy_corner(corners[level], corners[level + 1])
    if half == 0:
        corners[level + 1, 1, axis] = middle
    else:
        corners[level + 1, 0, axis] = middle + ONE
    count[level + 1] = keep_touching(
        task,
        near,
        level * boxes,
        count[level],
        axis,
        corners[level + 1, 0, axis],
        corners[level + 1, 1, axis],
        (level + 1) * boxes,
    )
    return count[level + 1] > 0


@njit(cache=True, nogil=True)
def count(task, most_effort):
    """How many dz the exact cover has, as a float.

    Once the effort is spent, what several boxes share counts for each of them: the result is an upper bound.
    """
    axes, boxes, bits = len(task.axis_last), len(task.first), task.bits
    corners = np.empty((bits + 1, 2, axes), np.uint64)
    whole_corner(task, corners[0])
    near, near_count = np.empty((bits + 1) * boxes, np.int64), np.zeros(bits + 1, np.int64)
    list_all(task, near)
    near_count[0] = boxes
    state = np.full(bits + 1, start_of(task))
    turn = np.zeros(bits + 1, np.int64)
    total, wholes = np.zeros(bits + 1), np.zeros(bits + 1, np.int64)  # of the halves looked at
    level = effort = 0
    while True:
        here, whole, known = 0.0, False, False
        if turn[level] == 0:
            effort += 1 + near_count[level]
            some = near[level * boxes : level * boxes + near_count[level]]
            whole = level == bits or any_encloses(task, some, corners[level])
            chained = not whole and chain_of(task, state[level]) >= 0
            known = whole or len(some) == 1 or effort > most_effort
            if whole:
                here = 1.0
            elif len(some) == 1 and not chained:
                here, whole, effort = count_lone(
                    task, some[0], corners[level], state[level], level, effort, most_effort
                )
            elif known:
                for box in some:
                    if chained:
                        here += count_one(task, box, corners[level], state[level], level)
                    else:
                        here += bound(task.first[box], task.last[box], corners[level], bits - level)
        elif turn[level] == 2:
            known, whole = True, wholes[level] == 2
            here = 1.0 if whole else total[level]
        if known:
            turn[level], total[level], wholes[level] = 0, 0.0, 0
            level -= 1
            if level < 0:
                return here
            total[level] += here
            wholes[level] += whole
            continue
        half = turn[level]
        turn[level] += 1
        if enter(task, near, near_count, corners, state, level, half):
            level += 1


@njit(cache=True, nogil=True)
def count_one(task, box, corner, state, level):
    """How many dz the exact cover of one box has in a cell, without going there.

    Cells are products of intervals: at every level the box encloses as many cells as the product, over the
    axes, of the intervals that it encloses there. Where it encloses the parent as well, only that one counts.
    """
    axes = len(task.axis_last)
    shift = np.zeros(axes, np.uint64)  # log2 of the places in an interval
    for axis in range(axes):
        while shift[axis] < np.uint64(64) and (corner[1, axis] - corner[0, axis]) >> shift[axis]:
            shift[axis] += ONE
    low, high, number = np.empty(axes, np.uint64), np.empty(axes, np.uint64), np.empty(axes)
    for axis in range(axes):
        low[axis], high[axis], number[axis] = enclosed(task, box, corner, axis, shift[axis])
    found = 1.0
    for axis in range(axes):
        found *= number[axis]
    while level < task.bits:
        axis = chain_of(task, state)
        if axis < 0:  # the spare axis, which the box encloses at any rate
            break
        state = next_of(task, state, 0)
        level += 1
        parent_low, parent_high, parents = low[axis], high[axis], number[axis]
        shift[axis] -= ONE
        low[axis], high[axis], number[axis] = enclosed(task, box, corner, axis, shift[axis])
        new = number[axis]
        if parents and new:
            in_low, in_high = max(low[axis], parent_low << ONE), min(high[axis], parent_high << ONE | ONE)
            new = np.float64(in_low - low[axis]) + np.float64(high[axis] - in_high)
        for other in range(axes):
            if other != axis:
                new *= number[other]
        found += new
    return found


@njit(cache=True, nogil=True)
def enclosed(task, box, corner, axis, shift):
    """Of the intervals of 2^shift places in a cell, those that a box touches and encloses.

    The first, the last, and how many these are, as a float since they may be 2^64.
    """
    if shift >= np.uint64(64):  # one interval, the whole axis; and no machine shifts by 64
        whole = task.below[box, axis] == ZERO and task.above[box, axis] == task.axis_last[axis]
        return ZERO, ZERO, 1.0 if whole else 0.0
    base, top = corner[0, axis], corner[1, axis]
    low = (max(task.first[box, axis], base) - base) >> shift
    high = (min(task.last[box, axis], top) - base) >> shift
    rest = (ONE << shift) - ONE
    below, above = max(task.below[box, axis], base) - base, min(task.above[box, axis], top) - base
    if below > low << shift:
        low = (below + rest) >> shift if below <= ~rest else high + ONE
    if above & rest != rest:
        if above >> shift == ZERO:
            return ZERO, ZERO, 0.0
        high = min(high, (above >> shift) - ONE)
    else:
        high = min(high, above >> shift)
    if low > high:
        return ZERO, ZERO, 0.0
    return low, high, np.float64(high - low) + 1.0
