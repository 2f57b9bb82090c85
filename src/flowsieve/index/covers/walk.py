"""How an index halves the content space, as covers see it: a walk from the whole space to smaller cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from flowsieve.content.filter import Filter
from flowsieve.errors import BadPlan
from flowsieve.index.axes.grid import Line, Span
from flowsieve.index.dz import WHOLE_SPACE, Dz

Spans = tuple[Span, ...]  # one per axis: a box of cells


@dataclass(frozen=True, slots=True)
class Cell:
    """A dz and what it means: on each axis the places from `first` to `last`."""

    dz: Dz
    first: tuple[int, ...]
    last: tuple[int, ...]

    def halves(self, axis: int, place: int) -> tuple[Cell, Cell]:
        """The cell cut in two on an axis: what lies below a place, and the rest."""
        low, high = self.dz.children
        below = (*self.last[:axis], place - 1, *self.last[axis + 1 :])
        above = (*self.first[:axis], place, *self.first[axis + 1 :])
        return Cell(low, self.first, below), Cell(high, above, self.last)


class Walk(Protocol):
    """What an index plan tells a cover: how many places its axes have, and where it cuts each cell."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of places on each axis."""

    def split(self, cell: Cell) -> tuple[Cell, Cell] | None:
        """The two halves of a cell; None if the plan does not cut it any further."""

    def may_cut(self, cell: Cell) -> Sequence[bool]:
        """On which axes the cell, or one inside it, may be cut; True where that is not known."""


class DzColumn(NamedTuple):
    """The dz of many events, left-aligned in 128 bits: entry i is one of event `rows[i]`.

    All have one length. An event may have several entries, or none if the plan does not send it.
    """

    rows: NDArray[np.int64]
    hi: NDArray[np.uint64]
    lo: NDArray[np.uint64]
    length: int

    def dz(self, entry: int) -> Dz:
        """One entry as a dz."""
        return Dz((int(self.hi[entry]) << 64 | int(self.lo[entry])) >> (128 - self.length), self.length)


def root(walk: Walk) -> Cell:
    """The whole space."""
    return Cell(WHOLE_SPACE, (0,) * len(walk.shape), tuple(places - 1 for places in walk.shape))


def cell_of(walk: Walk, dz: Dz) -> Cell:
    """The cell that a dz names."""
    cell = root(walk)
    for level in range(dz.length):
        halves = walk.split(cell)
        if halves is None:
            raise BadPlan(f"the plan makes dz of {level} bits here, and {dz} has {dz.length}")
        cell = halves[dz.bits >> (dz.length - 1 - level) & 1]
    return cell


def spans(axes: Sequence[Line], wanted: Filter) -> tuple[Spans, ...]:
    """A filter's boxes on the axes; those that differ in other attributes alone are one."""
    pairs = [(axis, wanted.schema.positions[axis.attribute.name]) for axis in axes]
    boxes = {tuple([axis.span(box[i]) for axis, i in pairs]): None for box in wanted.boxes}
    return tuple(boxes)
