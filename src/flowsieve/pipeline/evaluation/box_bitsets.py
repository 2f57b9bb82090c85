"""Where the boxes of a coverage begin and end along the axes of its plan, as rows of bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from flowsieve.pipeline.matching import bitset_kernel
from flowsieve.pipeline.matching.matcher import bit_rows

TABLE = 1 << 16  # places of an axis for which rows are looked up; on a longer axis they are searched for


class AxisBitsets(NamedTuple):
    """The rows for one axis: that of a place is the number of edges up to it, after `start`."""

    axis: int
    far: bool  # of a cell's last place, not of its first
    edges: NDArray[np.uint64]
    start: int
    # The row of each place, the last one being that of all greater places; or nothing.
    table: NDArray[np.int64]

    def rows(self, places: NDArray[np.uint64]) -> NDArray[np.int64]:
        if len(self.table):
            return self.table[np.minimum(places, np.uint64(len(self.table) - 1)).astype(np.int64)]
        return np.searchsorted(self.edges, places, side="right") + self.start


@dataclass(frozen=True, eq=False)
class BoxBitsets:
    """Boxes as rows of bits, a bit per box.

    On a grid a cell is a place on each axis, and a row of bits has the boxes that reach over that place. Elsewhere
    there are two rows for each axis: the boxes that begin before a cell ends, and those that end after it begins.
    """

    sides: tuple[AxisBitsets, ...]
    owner: NDArray[np.int64]  # the subscription of each bit
    bits: NDArray[np.uint64]
    summary: NDArray[np.uint64]  # which words of each row are not empty

    @classmethod
    def of(
        cls, first: NDArray[np.uint64], last: NDArray[np.uint64], owner: NDArray[np.int64], cut: bool
    ) -> BoxBitsets:
        """Of boxes (a row each, a column per axis) and their owners, for cells of a grid, or of a tree if `cut`."""
        sides: list[AxisBitsets] = []
        tables: list[NDArray[np.uint64]] = []

        def add(
            axis: int, far: bool, edges: NDArray[np.uint64], begin: NDArray[np.int64], end: NDArray[np.int64]
        ) -> None:
            start = sum(map(len, tables))
            tables.append(bit_rows(begin, end, len(edges) + 1))
            short = len(edges) > 0 and edges[-1] < TABLE
            places = np.arange(int(edges[-1]) + 1 if short else 0).astype(np.uint64)
            sides.append(
                AxisBitsets(axis, far, edges, start, np.searchsorted(edges, places, side="right") + start)
            )

        for axis in range(first.shape[1]):
            low, high = first[:, axis], last[:, axis]
            if not cut:
                edges = np.unique(np.concatenate([low, high + np.uint64(1)]))
                begin, end = (np.searchsorted(edges, side, side="right") for side in (low, high))
                add(axis, False, edges, begin, end)
                continue
            edges = np.unique(low)
            begin = np.searchsorted(edges, low, side="right")
            add(axis, True, edges, begin, np.full(len(low), len(edges)))
            edges = np.unique(high) + np.uint64(1)
            add(axis, False, edges, np.zeros(len(high), np.int64), np.searchsorted(edges, high, side="right"))
        bits = np.concatenate(tables)
        return cls(tuple(sides), owner, bits, bitset_kernel.summarise(bits))

    def rows(self, first: NDArray[np.uint64], last: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The numbers of the rows that each cell has, from its first and last places on all axes."""
        rows = np.empty((len(first), len(self.sides)), np.int64)
        for i, side in enumerate(self.sides):
            rows[:, i] = side.rows((last if side.far else first)[:, side.axis])
        return rows
