"""Exact covers of one box in one cell, compiled; the plain twins are `cover.exact` and `cover.count`.

Most filters are a single box, and of the others single boxes are left soon. One box needs no lists: a cell is
known by its corner alone, which is changed on the way down and changed back on the way up. Grids do without it:
they are counted by a formula.
"""

from __future__ import annotations

from math import ldexp

import numpy as np
from numba import njit
from numba.extending import overload

from flowsieve.index.covers.box_kernel import ONE, upper
from flowsieve.index.dzset_kernel import grown, push
from flowsieve.index.plans.split_kernel import free_reach, on_grid
from flowsieve.index.plans.splitter import FREE

NEAR_THE_END = 2  # levels; so few are walked sooner than asked about


def list_lone(task, box, corner, state, at, listed, n, most, effort, most_effort):
    """Put the dz of a box in a cell, which it touches, behind `n` that are listed; the lists, n and the effort.

    `at` is the cell's dz. It ends early when these are too many, or too much effort, as `exact` does. Last comes
    whether it was done at all.
    """
    raise NotImplementedError("compiled only, as the next")


@overload(list_lone)
def _list_lone(task, box, corner, state, at, listed, n, most, effort, most_effort):
    if on_grid(task):
        return lambda task, box, corner, state, at, listed, n, most, effort, most_effort: (
            *listed,
            n,
            effort,
            False,
        )

    def lone(task, box, corner, state, at, listed, n, most, effort, most_effort):
        spans = task.first[box], task.last[box], task.below[box], task.above[box]
        tree = task.axis, task.fixed, task.cut, task.next, task.reach
        limits = most, effort, most_effort
        hi, lo, length, n, _, _, effort = walk(
            spans, tree, task.bits, corner, state, at, True, listed, n, limits
        )
        return hi, lo, length, n, effort, True

    return lone


def count_lone(task, box, corner, state, level, effort, most_effort):
    """How many dz of a box there are in a cell that it touches, whether these are the whole cell, and the effort."""
    raise NotImplementedError


@overload(count_lone)
def _count_lone(task, box, corner, state, level, effort, most_effort):
    if on_grid(task):
        return lambda task, box, corner, state, level, effort, most_effort: (0.0, False, effort)

    def lone(task, box, corner, state, level, effort, most_effort):
        spans = task.first[box], task.last[box], task.below[box], task.above[box]
        tree = task.axis, task.fixed, task.cut, task.next, task.reach
        none = np.empty(0, np.uint64), np.empty(0, np.uint64), np.empty(0, np.int64)
        at, limits = (np.uint64(0), np.uint64(0), level), (0, effort, most_effort)
        _, _, _, _, count, whole, effort = walk(
            spans, tree, task.bits, corner, state, at, False, none, 0, limits
        )
        return count, whole, effort

    return lone


@njit(cache=True, nogil=True)
def walk(spans, tree, bits, corner, start, at, listing, listed, n, limits):
    """List or count the dz of a box in a cell: the lists, their length, the count, whether it is all, the effort."""
    first, last, below, above = spans
    axis_of, fixed, cut_at, next_of, reach = tree
    hi, lo, length = listed
    most, effort, most_effort = limits
    spare, top = corner.shape[1] - 1, at[2]
    path_hi, path_lo = np.empty(bits + 1, np.uint64), np.empty(bits + 1, np.uint64)
    state, axis = np.empty(bits + 1, np.int64), np.empty(bits + 1, np.int64)
    middle, side = np.empty(bits + 1, np.uint64), np.empty(bits + 1, np.uint64)
    turn, wholes, total = np.zeros(bits + 1, np.int64), np.zeros(bits + 1, np.int64), np.zeros(bits + 1)
    # On how many axes the box does not enclose the cell, and on how many it does not touch every place.
    open, loose = np.zeros(bits + 1, np.int64), np.zeros(bits + 1, np.int64)
    level = top
    path_hi[level], path_lo[level], state[level] = at[0], at[1], start
    for a in range(spare):
        open[level] += below[a] > corner[0, a] or above[a] < corner[1, a]
        loose[level] += first[a] > corner[0, a] or last[a] < corner[1, a]
    while True:
        known, whole, here = False, False, 1.0
        if turn[level] == 0:
            effort += 2
            if listing and (n > most + bits or effort > most_effort):
                break
            left, now, high = bits - level, state[level], False
            whole = left == 0 or open[level] == 0
            if not whole:
                a, cut = axis_of[now], cut_at[now]
                if a == FREE:
                    a = 0
                    size = corner[1, 0] - corner[0, 0]
                    for other in range(1, spare):
                        if corner[1, other] - corner[0, other] > size:
                            a, size = other, corner[1, other] - corner[0, other]
                    if size == np.uint64(0):
                        a = spare
                    cut = corner[0, a] + (size >> ONE)
                    # Asked again only when an axis more is touched all over: else the answer is mostly the same.
                    news = (
                        level == top or loose[level] < loose[level - 1] or axis_of[state[level - 1]] != FREE
                    )
                    if news and left > NEAR_THE_END and a != spare:
                        whole = filled_free(first, last, corner, left)
                else:
                    if not fixed[now]:
                        cut = corner[0, a] + ((corner[1, a] - corner[0, a]) >> ONE)
                    whole = np.int64(reach[now, spare]) >= left
                    if whole and loose[level]:
                        for other in range(spare):
                            if np.int64(reach[now, other]) < left and (
                                first[other] > corner[0, other] or last[other] < corner[1, other]
                            ):
                                whole = False
                                break
                axis[level], middle[level] = a, cut
                known = a == spare  # all further cuts are: a cell of the finest level is left
                if left == 1 and not known:
                    high = first[a] > cut
                    known, whole = True, whole or (not high and last[a] > cut)
            if listing and (known or whole):
                if n == len(hi):
                    hi, lo, length = grown(hi, 2 * n), grown(lo, 2 * n), grown(length, 2 * n)
                end_hi, end_lo = path_hi[level], path_lo[level]
                if high and not whole:
                    end_hi, end_lo = upper(end_hi, end_lo, level)
                n = push(hi, lo, length, n, end_hi, end_lo, level if whole else bits)
            elif not listing and not known and effort > most_effort:
                known, here = True, bound(first, last, corner, bits - level)
            known = known or whole
        elif turn[level] == 2:
            known, whole = True, wholes[level] == 2
            here = 1.0 if whole else total[level]
        if known:
            if level == top:
                return hi, lo, length, n, here, whole, effort
            level -= 1
            corner[2 - turn[level], axis[level]] = side[level]
            total[level] += here
            wholes[level] += whole
            continue
        half, a, cut = turn[level], axis[level], middle[level]
        turn[level] += 1
        if first[a] > cut if half == 0 else last[a] <= cut:
            continue
        below_it = level + 1
        was_open = below[a] > corner[0, a] or above[a] < corner[1, a]
        was_loose = first[a] > corner[0, a] or last[a] < corner[1, a]
        path_hi[below_it], path_lo[below_it] = path_hi[level], path_lo[level]
        if half == 0:
            side[level] = corner[1, a]
            corner[1, a] = cut
        else:
            side[level] = corner[0, a]
            corner[0, a] = cut + ONE
            path_hi[below_it], path_lo[below_it] = upper(path_hi[level], path_lo[level], level)
        is_open = below[a] > corner[0, a] or above[a] < corner[1, a]
        is_loose = first[a] > corner[0, a] or last[a] < corner[1, a]
        open[below_it] = open[level] - was_open + is_open
        loose[below_it] = loose[level] - was_loose + is_loose
        state[below_it], turn[below_it], total[below_it], wholes[below_it] = (
            next_of[state[level], half],
            0,
            0.0,
            0,
        )
        level = below_it
    return hi, lo, length, n, 0.0, False, effort


@njit(cache=True, nogil=True)
def filled_free(first, last, corner, left):
    """Whether a box surely touches all cells in a FREE cell, of which none is cut on the spare axis."""
    for a in range(corner.shape[1] - 1):
        if (first[a] > corner[0, a] or last[a] < corner[1, a]) and free_reach(corner, a) < left:
            return False
    return free_reach(corner, corner.shape[1] - 1) >= left


@njit(cache=True, nogil=True)
def bound(first, last, corner, left):
    """No less than the dz of one box in a cell: the places that it touches."""
    places = 1.0
    for a in range(corner.shape[1]):
        low, high = max(first[a], corner[0, a]), min(last[a], corner[1, a])
        places *= np.float64(high - low) + 1.0
    return min(places, ldexp(1.0, left))
