"""Grids: plans that cut every cell of a level on the same axis, in the middle."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.index.axes.grid import Line
from flowsieve.index.covers.walk import Cell, DzColumn, Spans, spans
from flowsieve.index.dz import Dz
from flowsieve.index.extent import Extent
from flowsieve.index.plans import regular_kernel
from flowsieve.index.plans.cell_plan import CellPlan
from flowsieve.index.plans.splitter import Splitter, chain

CHUNK = 1 << 14  # events encoded in one go: their places fit the cache


class GridPlan(CellPlan):
    """A plan made of axes, each with a power of two of places, and the order in which bits halve them."""

    @property
    @abstractmethod
    def axes(self) -> tuple[Line, ...]: ...

    @property
    @abstractmethod
    def levels(self) -> tuple[int, ...]:
        """The dimension that each bit halves."""

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return tuple(axis.cells for axis in self.axes)

    @cached_property
    def splitter(self) -> Splitter:
        return chain(self.levels, len(self.axes))

    def split(self, cell: Cell) -> tuple[Cell, Cell] | None:
        if cell.dz.length == self.bits:
            return None
        axis = self.levels[cell.dz.length]
        first, last = cell.first[axis], cell.last[axis]
        return cell.halves(axis, first + (last - first + 1) // 2)

    def encode(self, values: Mapping[str, object]) -> tuple[Dz, ...]:
        """The dz of an event: each bit says which half of its dimension the event lies in."""
        places = places_of(self.axes, values)
        bits = 0
        for i, shift in zip(self.levels, self._shifts.tolist(), strict=True):
            bits = bits << 1 | (places[i] >> shift & 1)
        return (Dz(bits, self.bits),)

    def encode_batch(self, events: EventBatch) -> DzColumn:
        """`encode` for many events at once; raises BadCell at the first one without a place in the index."""
        self._check_schema(events.schema)
        hi, lo = np.zeros(len(events), np.uint64), np.zeros(len(events), np.uint64)
        for rows, some in chunks(self.axes, events):
            regular_kernel.interleave(self._levels, self._shifts, some, hi[rows], lo[rows])
        return DzColumn(np.arange(len(events)), hi, lo, self.bits)

    def boxes(self, wanted: Filter) -> tuple[Spans, ...]:
        self._check_schema(wanted.schema)
        return spans(self.axes, wanted)

    def places(self, events: EventBatch) -> NDArray[np.uint64]:
        columns = [axis.places(events.columns[axis.attribute.name]) for axis in self.axes]
        return np.ascontiguousarray(np.stack(columns, axis=1))

    def extents(self, cell: Cell) -> tuple[Extent, ...]:
        return (Extent(self.axes, cell.first, cell.last, self.schema.whole),)

    @cached_property
    def _levels(self) -> NDArray[np.int64]:
        return np.array(self.levels, np.int64)

    @cached_property
    def _shifts(self) -> NDArray[np.uint64]:
        return shifts_of(self.levels, len(self.axes))


def places_of(axes: Sequence[Line], values: Mapping[str, object]) -> list[int]:
    """Where an event lies on some axes."""
    return [axis.place(axis.attribute.point_of(values)) for axis in axes]


def chunks(axes: Sequence[Line], events: EventBatch) -> Iterator[tuple[slice, NDArray[np.uint64]]]:
    """Where events lie on some axes, a row for each: for a few events at a time, in room that is used again."""
    places = np.zeros((len(axes), min(len(events), CHUNK)), np.uint64)
    for start in range(0, len(events), CHUNK):
        rows = slice(start, min(start + CHUNK, len(events)))
        some = places[:, : rows.stop - start]
        for axis, out in zip(axes, some, strict=True):
            if axis.cells > 1:
                axis.fill_places(events.columns[axis.attribute.name][rows], out, start)
        yield rows, some


def round_robin(widths: Sequence[int], bits: int) -> tuple[int, ...]:
    """The dimension that each bit halves: one after the other, passing over those that have all their bits."""
    left = list(widths)
    levels: list[int] = []
    while len(levels) < bits:
        turn = [i for i, width in enumerate(left) if width][: bits - len(levels)]
        levels += turn
        for i in turn:
            left[i] -= 1
    return tuple(levels)


def shifts_of(levels: Sequence[int], axes: int) -> NDArray[np.uint64]:
    """Which bit of its dimension's place each bit is."""
    left, shifts = [levels.count(i) for i in range(axes)], []
    for i in levels:
        left[i] -= 1
        shifts.append(left[i])
    return np.array(shifts, np.uint64)
