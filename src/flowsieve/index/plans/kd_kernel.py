"""Kd plans, compiled: the dz and the cells of many events, and what a tree cuts where.

The plain twins are `kd.KdPlan.encode` and `covers.walk.cell_of`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from flowsieve.index.plans.split_kernel import free_reach
from flowsieve.index.plans.splitter import FREE, NEVER

ZERO = np.uint64(0)
ONE = np.uint64(1)


@njit(cache=True, nogil=True)
def locate(nodes, axis_last, bits, places, hi, lo):
    """Fill in left-aligned dz: the way of each event (a column of places) down the tree, and on below it.

    A node is its axis, the last place of its lower half, and the nodes of both halves; one behind the last
    stands for all that is below the tree.
    Which half an event lies in is a coin toss that no processor can guess, so nothing branches on it.
    """
    axes = len(places)
    first, size = np.empty(axes, np.uint64), np.empty(axes, np.uint64)  # of the cell: the size less one
    at = np.empty(axes, np.uint64)
    for row in range(len(hi)):
        for i in range(axes):
            first[i], size[i], at[i] = ZERO, axis_last[i], places[i, row]
        node, level = np.int64(0), 0
        word, full = ZERO, ZERO  # the bits so far; the first 64 of them, if these are more
        while level < bits and node < len(nodes):
            axis = np.int64(nodes[node, 0])
            cut = np.uint64(nodes[node, 1])
            half = np.uint64(at[axis] > cut)
            low = cut - first[axis]
            size[axis] = size[axis] - low - ONE if half else low
            first[axis] = cut + ONE if half else first[axis]
            word = word << ONE | half
            level += 1
            if level == 64:
                word, full = ZERO, word
            node = np.int64(nodes[node, 3] if half else nodes[node, 2])
        while level < bits:
            axis = np.int64(0)
            longest = size[0]
            for other in range(1, axes):
                longer = size[other] > longest
                axis = np.int64(other) if longer else axis
                longest = size[other] if longer else longest
            if longest == ZERO:
                break
            low = longest >> ONE
            cut = first[axis] + low
            half = np.uint64(at[axis] > cut)
            size[axis] = longest - low - ONE if half else low
            first[axis] = cut + ONE if half else first[axis]
            word = word << ONE | half
            level += 1
            if level == 64:
                word, full = ZERO, word
        if level < 64:
            hi[row] = word << np.uint64(64 - level) if level else ZERO
        else:
            hi[row] = full
            lo[row] = word << np.uint64(128 - level) if level > 64 else ZERO


@njit(cache=True, nogil=True)
def fill_cells(start, split, cuts, following, axis_last, bits, places, first, last):
    """Fill in the first and the last place, on every axis, of the cell that each event (a row of places) lies in."""
    axes = places.shape[1]
    for row in range(len(places)):
        for axis in range(axes):
            first[row, axis], last[row, axis] = ZERO, axis_last[axis]
        state = start
        for _ in range(bits):
            axis, cut = split[state], cuts[state]
            if axis == FREE:
                axis = 0
                for other in range(1, axes):
                    if last[row, other] - first[row, other] > last[row, axis] - first[row, axis]:
                        axis = other
                if last[row, axis] == first[row, axis]:
                    break
                cut = first[row, axis] + ((last[row, axis] - first[row, axis]) >> ONE)
            if places[row, axis] > cut:
                first[row, axis] = cut + ONE
                state = following[state, 1]
            else:
                last[row, axis] = cut
                state = following[state, 0]


@njit(cache=True, nogil=True)
def fill_reach(axis, next, parents, corners, reach):
    """Fill in `Splitter.reach`, given the cells of all leaves and the states that they hang from.

    Halves come after the cells that they are of; the last state is that below the tree.
    """
    axes, free = reach.shape[1], len(axis) - 1
    for leaf in range(len(parents)):
        for other in range(axes):
            levels = min(free_reach(corners[leaf], other) + 1, NEVER)
            reach[parents[leaf], other] = min(np.int64(reach[parents[leaf], other]), levels)
    for state in range(free - 1, -1, -1):
        for half in range(2):
            if next[state, half] < free:
                for other in range(axes):
                    levels = min(np.int64(reach[next[state, half], other]) + 1, NEVER)
                    reach[state, other] = min(np.int64(reach[state, other]), levels)
        reach[state, axis[state]] = 0
