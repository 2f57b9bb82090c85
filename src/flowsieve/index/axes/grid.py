"""The grid over the content space: each attribute's values laid out over cells in a row, exactly."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from flowsieve.content.box import Constraint, Interval, Text
from flowsieve.content.cuts import neighbour
from flowsieve.content.schema import Attribute
from flowsieve.errors import BadCell, BadPlan
from flowsieve.index.axes import grid_kernel as kernel

LinePoint = int | float | str  # what an attribute's constraints compare: a number, or the string itself

STRING_BYTES = 8  # a string's place on its axis is 64 bits


class Span(NamedTuple):
    """The cells of an axis that a constraint touches, `first` to `last`, and how far they may be stretched.

    An axis may have more cells than its attribute has values. The further cells from `below` to `above` hold
    no value at all, so that a cover may take them as well where that makes it smaller.
    """

    first: int
    last: int
    below: int
    above: int


class Line(ABC):
    """An attribute's values laid out over cells in a row, in order."""

    attribute: Attribute

    @property
    @abstractmethod
    def cells(self) -> int: ...

    @abstractmethod
    def place(self, point: LinePoint) -> int:
        """The cell that a point of the attribute's line lies in: the definition."""

    @abstractmethod
    def fill_places(self, column: NDArray[Any], out: NDArray[np.uint64], start: int = 0) -> None:
        """`places`, filled into an array; `start` is the row of the column's first event, for errors."""

    def places(self, column: NDArray[Any]) -> NDArray[np.uint64]:
        """`place` for a column of events; a value that is none of the attribute's raises BadCell."""
        out = np.empty(len(column), np.uint64)
        self.fill_places(column, out)
        return out

    def span(self, constraint: Constraint) -> Span:
        """The cells that a constraint on numbers touches."""
        assert isinstance(constraint, Interval)
        low, high = constraint.low, constraint.high
        if low == self.attribute.min and high == self.attribute.max:
            return self._whole
        first, last = self.place(low), self.place(high)
        if self._no_cell_is_empty:
            return Span(first, last, first, last)
        return Span(first, last, self._end_before(low, first), self._end_after(high, last))

    @property
    def _no_cell_is_empty(self) -> bool:
        return False

    @cached_property
    def _whole(self) -> Span:
        return Span(self.place(self.attribute.min), self.place(self.attribute.max), 0, self.cells - 1)

    def _end_before(self, low: int | float, first: int) -> int:
        """The first of the empty cells before `first`, which is the place of `low`."""
        if low == self.attribute.min:
            return 0
        return min(self.place(neighbour(self.attribute, low, -1)) + 1, first)

    def _end_after(self, high: int | float, last: int) -> int:
        if high == self.attribute.max:
            return self.cells - 1
        return max(self.place(neighbour(self.attribute, high, +1)) - 1, last)

    def _bad_cell(self, number: float, row: int) -> BadCell:
        attribute = self.attribute
        wrong = f"{attribute.name} = {number:.17g}; it is {attribute.range_text}"
        return BadCell(wrong, row=row, column=attribute.name)


@dataclass(frozen=True)
class Axis(Line):
    """An attribute cut into 2^bits cells of one width.

    >>> axis = Axis(Attribute("price", "int", 0, 99), 3)
    >>> axis.place(49), axis.place(50), axis.place(99)
    (3, 4, 7)
    """

    attribute: Attribute
    bits: int

    def __post_init__(self) -> None:
        if not 0 <= self.bits <= self.attribute.resolution:
            most = self.attribute.resolution
            raise BadPlan(f"{self.attribute.name} has 0 to {most} bits in an index, not {self.bits}")

    @cached_property
    def cells(self) -> int:
        return 1 << self.bits

    @cached_property
    def _values(self) -> int:
        """How many values the attribute has; of a float or string, more than one can count."""
        return int(self.attribute.max) - int(self.attribute.min) + 1

    def place(self, point: LinePoint) -> int:
        """The cell that a point of the attribute's line lies in: the definition.

        One of n numbers lies in cell ⌊(v - min) · 2^bits / n⌋, a float in ⌊(v - min) · 2^bits / (max - min)⌋,
        but the topmost in the last cell; of a string the top bits count.
        """
        attribute = self.attribute
        if isinstance(point, str):
            return _string_bits(point, attribute.prefix) >> (8 * STRING_BYTES - self.bits)
        if attribute.kind != "float":
            return (int(point) - int(attribute.min) << self.bits) // self._values
        # Fractions with powers of two below the line, multiplied out: exact, and quicker than Fraction.
        (up, below), (min_up, min_below), (max_up, max_below) = (
            float(x).as_integer_ratio() for x in (point, attribute.min, attribute.max)
        )
        over = (up * min_below - min_up * below) * max_below << self.bits
        return min(over // (below * (max_up * min_below - min_up * max_below)), self.cells - 1)

    def fill_places(self, column: NDArray[Any], out: NDArray[np.uint64], start: int = 0) -> None:
        attribute = self.attribute
        if attribute.kind == "string":
            self._fill_string_places(column, out, start)
            return
        numbers = np.ascontiguousarray(column, np.float64)
        if attribute.kind == "float":
            unsure, bad = kernel.float_places(
                numbers, float(attribute.min), float(attribute.max), self.bits, out
            )
            if bad < 0 and len(unsure):
                distinct, where = np.unique(numbers[unsure], return_inverse=True)
                out[unsure] = np.array([self.place(number) for number in distinct.tolist()], np.uint64)[where]
        else:
            bad = kernel.int_places(numbers, int(attribute.min), int(attribute.max), self.bits, out)
        if bad >= 0:
            raise self._bad_cell(numbers[bad], start + int(bad))

    def _fill_string_places(self, column: Iterable[Any], out: NDArray[np.uint64], start: int) -> None:
        known: dict[str, int] = {}
        for row, string in enumerate(column):
            place = known.get(string)
            if place is None:
                if not isinstance(string, str):
                    wrong = f"{self.attribute.name} = {string!r}; it is a string"
                    raise BadCell(wrong, row=start + row, column=self.attribute.name)
                known[string] = place = self.place(string)
            out[row] = place

    def span(self, constraint: Constraint) -> Span:
        """The cells that a constraint touches.

        A constraint on a string that its bits cannot tell, such as `!=`, touches more cells than it needs to.
        """
        if isinstance(constraint, Text):
            return self._text_span(constraint)
        return super().span(constraint)

    @cached_property
    def _no_cell_is_empty(self) -> bool:
        return self.attribute.kind != "float" and self._values >= self.cells

    def _text_span(self, text: Text) -> Span:
        if text.equals is not None:
            place = self.place(text.equals)
            return Span(place, place, place, place)
        first, last = 0, self.cells - 1
        if self.attribute.prefix:
            first = self.place(text.low)
            if text.high is not None:
                # The strings below `high` end one place before its own, unless some share that place with it:
                # its beginnings, where it has more bytes than count, or ends in NULs.
                end = text.high.encode("utf-8", "surrogatepass")
                shared = len(end) > STRING_BYTES or end.endswith(b"\0")
                last = _leading_bytes(end) - (0 if shared else 1) >> (8 * STRING_BYTES - self.bits)
        return Span(first, last, first, last)


def _string_bits(string: str, prefix: bool) -> int:
    """The 64 bits that stand for a string: its first bytes, or a hash of it."""
    data = string.encode("utf-8", "surrogatepass")
    if prefix:
        return _leading_bytes(data)
    return int.from_bytes(hashlib.blake2b(data, digest_size=STRING_BYTES).digest(), "big")


def _leading_bytes(data: bytes) -> int:
    return int.from_bytes(data[:STRING_BYTES].ljust(STRING_BYTES, b"\0"), "big")
