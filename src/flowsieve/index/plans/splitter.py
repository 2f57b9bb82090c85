"""Where cells are cut: a small automaton that stands for any kind of plan.

A cell is in a state, which says on which axis it is cut and where; its halves are in the next states. The
whole space is in the state `start`. On a grid the states are its levels, one after the other; a tree of cuts
is its own automaton. The last axis of a plan that is no grid is spare: it has no values beyond its first place,
so that a cell with nothing left to cut can still be cut, into itself and a half without events. That gives all
dz one length.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from flowsieve.index.axes.grid import Span
from flowsieve.index.covers.walk import Cell
from flowsieve.index.dz import Dz

# The axis of a state in which a cell is cut on the axis with most places (the first of several), in the middle;
# a cell of a single place takes one off the spare axis.
FREE = -1

NEVER = 255  # levels
SPARE_PLACES = 128  # a power of two above all levels
SPARE = Span(0, 0, 0, SPARE_PLACES - 1)  # what any filter wants of the spare axis


class SplitState(NamedTuple):
    """On which axis a cell is cut, where, and the states of its halves."""

    axis: int
    cut: int | None  # the last place of the lower half; None: in the middle
    low: int
    high: int


class Splitter(NamedTuple):
    """The states, as columns, and the one of the whole space."""

    start: int
    axis: NDArray[np.int64]
    fixed: NDArray[np.bool_]  # whether it cuts at a place of its own
    cut: NDArray[np.uint64]  # that place
    next: NDArray[np.int64]  # the states of both halves, a row per state
    # Whether from here on all cells of a level are cut on one axis, in the middle, or on the spare axis.
    chained: NDArray[np.bool_]
    # Per state and axis: how many levels on, at least, a cell is cut there; of FREE cells `free_reach` says it.
    reach: NDArray[np.uint8]

    @classmethod
    def of(
        cls, start: int, states: Sequence[SplitState], chained: NDArray[np.bool_], reach: NDArray[np.uint8]
    ) -> Splitter:
        return cls(
            start,
            np.array([state.axis for state in states], np.int64),
            np.array([state.cut is not None for state in states], np.bool_),
            np.array([state.cut or 0 for state in states], np.uint64),
            np.array([(state.low, state.high) for state in states], np.int64).reshape(len(states), 2),
            chained,
            reach,
        )

    def state(self, dz: Dz) -> int:
        """The state of a cell."""
        state = self.start
        for level in range(dz.length):
            state = int(self.next[state, dz.bits >> (dz.length - 1 - level) & 1])
        return state

    def cut_of(self, cell: Cell) -> tuple[int, int]:
        """The axis that a cell is cut on, and the last place of its lower half."""
        state = self.state(cell.dz)
        axis = int(self.axis[state])
        if axis == FREE:
            sizes = [last - first for first, last in zip(cell.first[:-1], cell.last[:-1], strict=True)]
            axis = sizes.index(max(sizes))
            if sizes[axis] == 0:
                return len(sizes), cell.last[-1] - 1
        elif self.fixed[state]:
            return axis, int(self.cut[state])
        return axis, cell.first[axis] + (cell.last[axis] - cell.first[axis]) // 2

    def reach_of(self, cell: Cell) -> list[int]:
        """Per axis, how many levels below a cell there are, at least, before one inside it is cut there."""
        state = self.state(cell.dz)
        return free_reach(cell) if self.axis[state] == FREE else [int(n) for n in self.reach[state]]


def free_reach(cell: Cell) -> list[int]:
    """`reach` of a cell that is cut on the axis with most places, and all cells in it too."""
    sizes = [last - first + 1 for first, last in zip(cell.first[:-1], cell.last[:-1], strict=True)]
    out = []
    for axis, size in enumerate(sizes):
        levels = 0
        for other, more in enumerate(sizes):
            while other != axis and (more > size or (more == size and other < axis)) and size > 1:
                more //= 2  # the smaller half
                levels += 1
        out.append(levels if size > 1 else NEVER)
    return [*out, sum(size.bit_length() - 1 for size in sizes)]


def reached(states: Sequence[SplitState], order: Iterable[int], axes: int) -> NDArray[np.uint8]:
    """`reach` of states that are given in an order in which halves come before the cells that they are of."""
    out = np.full((len(states), axes), NEVER, np.uint8)
    for number in order:
        state = states[number]
        if state.low < len(states):
            out[number] = np.minimum(np.minimum(out[state.low], out[state.high]), NEVER - 1) + 1
        out[number, state.axis] = 0
    return out


def chain(levels: Sequence[int], axes: int) -> Splitter:
    """A grid: every level is cut on one axis, in the middle."""
    states = [SplitState(axis, None, level + 1, level + 1) for level, axis in enumerate(levels)]
    reach = reached(states, reversed(range(len(states))), axes)
    return Splitter.of(0, states, np.ones(len(states), np.bool_), reach)


def ids(number: int) -> list[Dz]:
    """So many ids of nearly one length, in order: none is left over, and none begins another.

    >>> [str(id) for id in ids(3)]
    ['00', '01', '1']
    """
    out: list[Dz] = []
    waiting = [(Dz(0, 0), number)]
    while waiting:
        id, parts = waiting.pop()
        if parts == 1:
            out.append(id)
        else:
            low, high = id.children
            waiting += [(high, parts // 2), (low, parts - parts // 2)]
    return out


def behind_ids(grids: Sequence[tuple[int, ...]], bits: int, dimensions: int) -> Splitter:
    """Several grids, each behind one of the `ids`, and behind all of them the spare axis.

    Axis 0 tells the grids apart, the dimensions follow, then the spare one. A grid is the dimension that each
    of its levels halves; what it has less than all bits is spare.
    """
    states: list[SplitState] = []

    def add(axis: int, cut: int | None, low: int, high: int) -> int:
        states.append(SplitState(axis, cut, low, high))
        return len(states) - 1

    state = 0
    for level in reversed(range(bits)):  # from the end to the beginning, since a state names the next
        state = add(dimensions + 1, SPARE_PLACES - 2 - level, state, state)
    known: dict[tuple[int, ...], int] = {(): state}  # grids that end alike share the states of their ends

    def grid(levels: tuple[int, ...]) -> int:
        for start in reversed(range(len(levels))):
            if levels[start:] not in known:
                after = known[levels[start + 1 :]]
                known[levels[start:]] = add(levels[start] + 1, None, after, after)
        return known[levels]

    def tree(first: int, number: int) -> int:
        if number == 1:
            return grid(grids[first])
        low = number - number // 2
        return add(0, first + low - 1, tree(first, low), tree(first + low, number - low))

    start = tree(0, len(grids))
    chained = np.array([state.axis > 0 for state in states], np.bool_)
    return Splitter.of(start, states, chained, reached(states, range(len(states)), dimensions + 2))
