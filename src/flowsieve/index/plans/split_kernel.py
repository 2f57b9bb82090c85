"""Where cells are cut, compiled; the plain twin is `splitter.Splitter`.

The kernels of covers are compiled once for grids, where a cell's state is its level, and once for all else:
covers are what a controller spends its time on, and those of grids would take half as long again if they had to
ask at every cell how it is cut.
"""

from __future__ import annotations

from math import ldexp

import numpy as np
from numba import njit
from numba.extending import overload

from flowsieve.index.plans.splitter import FREE, NEVER

ONE = np.uint64(1)


@njit(cache=True, nogil=True, inline="always")
def middle_of(corner, axis):
    """The last place of the lower half of a cell that is cut in the middle."""
    return corner[0, axis] + ((corner[1, axis] - corner[0, axis]) >> ONE)


@njit(cache=True, nogil=True)
def free_cut(corner):
    """`cut_of` where the axis is FREE: the one with most places; the spare one, the last, if all have one."""
    longest, spare = 0, corner.shape[1] - 1
    for axis in range(1, spare):
        if corner[1, axis] - corner[0, axis] > corner[1, longest] - corner[0, longest]:
            longest = axis
    if corner[1, longest] == corner[0, longest]:
        return spare, corner[1, spare] - ONE
    return longest, middle_of(corner, longest)


def on_grid(task):
    """Whether a task is one of a grid; `task` is its Numba type."""
    return "levels" in task.fields


def start_of(task):
    """The state of the whole space."""
    raise NotImplementedError("compiled only, as all that follow")


@overload(start_of, inline="always")
def _start_of(task):
    if on_grid(task):
        return lambda task: 0
    return lambda task: task.start


def cut_of(task, state, corner):
    """The axis that a cell is cut on, and the last place of its lower half."""
    raise NotImplementedError


@overload(cut_of, inline="always")
def _cut_of(task, state, corner):
    if on_grid(task):

        def cut(task, state, corner):
            axis = task.levels[state, 0]
            return axis, middle_of(corner, axis)

        return cut

    def fixed_cut(task, state, corner):
        axis, cut = task.axis[state], task.cut[state]
        if axis == FREE:
            axis, cut = free_cut(corner)
        elif not task.fixed[state]:
            cut = middle_of(corner, axis)
        return axis, cut

    return fixed_cut


def next_of(task, state, half):
    """The state of a half of a cell."""
    raise NotImplementedError


@overload(next_of, inline="always")
def _next_of(task, state, half):
    if on_grid(task):
        return lambda task, state, half: state + 1
    return lambda task, state, half: task.next[state, half]


def chain_of(task, state):
    """The axis on which all cells from here on are cut level by level, in the middle; -1: that is not so."""
    raise NotImplementedError


@overload(chain_of, inline="always")
def _chain_of(task, state):
    if on_grid(task):
        return lambda task, state: task.levels[state, 0]
    return lambda task, state: task.axis[state] if task.chained[state] and not task.fixed[state] else -1


def axes_of(task):
    """How many axes have places for events: all but the spare one."""
    raise NotImplementedError


@overload(axes_of, inline="always")
def _axes_of(task):
    if on_grid(task):
        return lambda task: len(task.axis_last)
    return lambda task: len(task.axis_last) - 1


@njit(cache=True, nogil=True)
def free_reach(corner, axis):
    """Twin: `free_reach` of one axis."""
    spare, levels = corner.shape[1] - 1, 0
    if axis == spare:
        for other in range(spare):
            more = corner[1, other] - corner[0, other]  # one less than there are places
            while more:
                more = (more - ONE) >> ONE
                levels += 1
        return levels
    size = corner[1, axis] - corner[0, axis]
    if not size:
        return NEVER
    for other in range(spare):
        if other != axis:
            more = corner[1, other] - corner[0, other]
            while more > size or (more == size and other < axis):
                more = (more - ONE) >> ONE
                levels += 1
    return levels


def reach_of(task, state, corner, axis):
    """How many levels below a cell there are, at least, before one inside it is cut on an axis."""
    raise NotImplementedError


@overload(reach_of, inline="always")
def _reach_of(task, state, corner, axis):
    if on_grid(task):
        return lambda task, state, corner, axis: task.levels[state, axis + 1]

    def reach(task, state, corner, axis):
        if task.axis[state] == FREE:
            return free_reach(corner, axis)
        return np.int64(task.reach[state, axis])

    return reach


def volume_of(task, corner, length):
    """The share of the space that a cell takes, counted in places."""
    raise NotImplementedError


@overload(volume_of)
def _volume_of(task, corner, length):
    if on_grid(task):
        return lambda task, corner, length: ldexp(1.0, -length)

    def volume(task, corner, length):
        volume = 1.0
        for axis in range(corner.shape[1]):
            size = np.float64(corner[1, axis] - corner[0, axis]) + 1.0
            volume *= size / (np.float64(task.axis_last[axis]) + 1.0)
        return volume

    return volume
