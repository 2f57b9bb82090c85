"""Axes with learned cuts: cells as wide or as narrow as the traffic asks for."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flowsieve.content.cuts import neighbour
from flowsieve.content.schema import Attribute
from flowsieve.errors import BadPlan
from flowsieve.index.axes import cut_axis_kernel as kernel
from flowsieve.index.axes.grid import Axis, Line, LinePoint

MOST_CUTS = (1 << 16) - 1
MOST_LISTED_VALUES = 1 << 16  # up to here the places of all values are kept in a table

Number = int | float
# How a plan says where the cells of an axis are: its cuts, or the bits of an axis with cells of one width.
AxisCuts = tuple[Number, ...] | int


@dataclass(frozen=True)
class CutAxis(Line):
    """An attribute cut at some numbers of its line, in order: what lies below a cut is in the cells before it.

    Equal cuts, and cuts at an end, leave cells without values.

    >>> axis = CutAxis(Attribute("price", "int", 0, 99), (10, 12, 60))
    >>> axis.place(9), axis.place(10), axis.place(59), axis.place(60)
    (0, 1, 2, 3)
    """

    attribute: Attribute
    cuts: tuple[Number, ...]

    def __post_init__(self) -> None:
        name, attribute = self.attribute.name, self.attribute
        if attribute.kind == "string":
            raise BadPlan(f"{name} is a string and has no cuts; right is a number of bits")
        if len(self.cuts) > MOST_CUTS:
            raise BadPlan(f"{name} has {len(self.cuts):,} cuts; right are {MOST_CUTS:,} at most")
        right = Number if attribute.kind == "float" else int
        most = neighbour(attribute, attribute.max, +1)
        before = attribute.min
        for cut in self.cuts:
            if isinstance(cut, bool) or not isinstance(cut, right) or not math.isfinite(cut):
                kind = "a number" if attribute.kind == "float" else "a whole number"
                raise BadPlan(f"{name} has a cut at {cut!r}; right is {kind} on its line")
            if not attribute.min <= cut <= most:
                ends = f"from {attribute.min} to {attribute.max}, or the next one"
                raise BadPlan(f"{name} has a cut at {cut!r}; right is a number {ends}")
            if cut < before:
                raise BadPlan(f"{name} has a cut at {cut!r} after one at {before!r}; right is in order")
            before = cut

    @property
    def cells(self) -> int:
        return len(self.cuts) + 1

    def place(self, point: LinePoint) -> int:
        """The cell that a number lies in: how many cuts are not above it."""
        assert not isinstance(point, str)
        return bisect_right(self.cuts, point)

    def fill_places(self, column: NDArray[Any], out: NDArray[np.uint64], start: int = 0) -> None:
        attribute = self.attribute
        numbers = np.ascontiguousarray(column, np.float64)
        if self._table is not None:
            bad = kernel.listed_places(numbers, float(attribute.min), self._table, out)
        else:
            ends = float(attribute.min), float(attribute.max)
            bad = kernel.searched_places(numbers, *ends, attribute.kind != "float", self._numbers, out)
        if bad >= 0:
            raise self._bad_cell(numbers[bad], start + int(bad))

    @cached_property
    def _numbers(self) -> NDArray[np.float64]:
        """The cuts as floats, which hold every value, padded with infinity to a power of two less one.

        A cut above all values may be no float, so it becomes infinity too.
        """
        out = np.full((1 << len(self.cuts).bit_length()) - 1, math.inf)
        for i, cut in enumerate(self.cuts):
            if cut <= self.attribute.max:
                out[i] = cut
        return out

    @cached_property
    def _table(self) -> NDArray[np.uint16] | None:
        """The place of every value, if these are not too many."""
        attribute = self.attribute
        if attribute.kind == "float" or attribute.max - attribute.min >= MOST_LISTED_VALUES:
            return None
        values = np.arange(int(attribute.min), int(attribute.max) + 1)
        return np.searchsorted(np.array(self.cuts, np.int64), values, side="right").astype(np.uint16)


def axis_of(attribute: Attribute, cuts: AxisCuts) -> Line:
    """The axis that a plan speaks of."""
    return Axis(attribute, cuts) if isinstance(cuts, int) else CutAxis(attribute, cuts)


def bits_of(attribute: Attribute, cuts: AxisCuts) -> int:
    """The bits of an axis that is halved again and again, so that it has a power of two of cells."""
    if isinstance(cuts, int):
        return cuts
    bits = len(cuts).bit_length()
    if len(cuts) + 1 != 1 << bits:
        raise BadPlan(
            f"{attribute.name} has {len(cuts)} cuts; right is one less than a power of two, such as {(1 << bits) - 1}"
        )
    return bits


def thinned(cuts: Sequence[Number], bits: int) -> tuple[Number, ...]:
    """The cuts of the first so many halvings, out of those of more.

    >>> thinned((1, 2, 3, 4, 5, 6, 7), 2)
    (2, 4, 6)
    """
    step = (len(cuts) + 1) >> bits
    return tuple(cuts[step - 1 :: step]) if bits else ()


def as_cuts(attribute: Attribute, cuts: object) -> AxisCuts:
    """Cuts from a list or an array, as plain numbers of the attribute's kind; a number of bits stays one."""
    if isinstance(cuts, int | np.integer) and not isinstance(cuts, bool):
        return int(cuts)
    if isinstance(cuts, str) or not isinstance(cuts, Sequence | np.ndarray):
        raise BadPlan(
            f"the cuts of {attribute.name} are {cuts!r}; right is a list of numbers, or a number of bits"
        )
    listed = cuts.tolist() if isinstance(cuts, np.ndarray) else list(cuts)
    return tuple(_plain(attribute, cut) for cut in listed)


def _plain(attribute: Attribute, cut: Any) -> Any:
    """A cut as a plain number; what is none is left to the axis to name."""
    if isinstance(cut, np.generic):
        cut = cut.item()
    if isinstance(cut, float) and attribute.kind != "float" and cut.is_integer():
        return int(cut)
    if isinstance(cut, int) and not isinstance(cut, bool) and attribute.kind == "float":
        return float(cut)
    return cut
