"""Parts of the content space that are indexed by themselves, each with its own regular grid behind its id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from flowsieve.content.box import Box, Interval
from flowsieve.content.schema import Attribute, Schema
from flowsieve.errors import BadPlan
from flowsieve.index.axes.cut_axis import CutAxis, Number
from flowsieve.index.axes.grid import Axis, Line, Span
from flowsieve.index.covers.walk import Spans
from flowsieve.index.dz import Dz
from flowsieve.index.extent import intersection
from flowsieve.index.plans.levels import round_robin, shifts_of

Bounds = tuple[Number, Number] | None  # the ends on a dimension, both inside; None: all of it, as of a string


@dataclass(frozen=True)
class Mbr:
    """A box of the content space, the id that its dz begin with, and the grid behind that.

    Its axes are laid over `widths` bits that all parts of a plan share: an axis of fewer bits has the top ones.
    """

    schema: Schema
    dimensions: tuple[str, ...]
    bounds: tuple[Bounds, ...]
    id: Dz
    bits: int

    @cached_property
    def box(self) -> Box:
        """The part as a box over all attributes of the schema."""
        bounds = dict(zip(self.dimensions, self.bounds, strict=True))
        return tuple(
            attribute.whole if (ends := bounds.get(attribute.name)) is None else Interval(*ends)
            for attribute in self.schema
        )

    @cached_property
    def _lines(self) -> tuple[Attribute | None, ...]:
        """The number lines of its axes, from one end of the part to the other; None where the ends are one."""
        return tuple(
            _line(self.schema[name], ends) for name, ends in zip(self.dimensions, self.bounds, strict=True)
        )

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """The dimension that each bit behind the id halves: round robin, as many as there are."""
        widths = [0 if line is None else line.resolution for line in self._lines]
        return round_robin(widths, min(self.bits - self.id.length, sum(widths)))

    @cached_property
    def axes(self) -> tuple[Line, ...]:
        return tuple(
            CutAxis(self.schema[name], ()) if line is None else Axis(line, self.levels.count(i))
            for i, (name, line) in enumerate(zip(self.dimensions, self._lines, strict=True))
        )

    @cached_property
    def shifts(self) -> NDArray[np.uint64]:
        return shifts_of(self.levels, len(self.axes))

    def holds(self, values: Mapping[str, object]) -> bool:
        """Whether an event lies in it."""
        return all(
            ends is None or ends[0] <= self.schema[name].number(values[name]) <= ends[1]
            for name, ends in zip(self.dimensions, self.bounds, strict=True)
        )

    def encode(self, values: Mapping[str, object]) -> Dz:
        """The dz of an event that lies in it."""
        points = {name: self.schema[name].point(values[name]) for name in self.dimensions}
        places = [axis.place(points[name]) for axis, name in zip(self.axes, self.dimensions, strict=True)]
        bits = self.id.bits
        for i, shift in zip(self.levels, self.shifts.tolist(), strict=True):
            bits = bits << 1 | (places[i] >> shift & 1)
        return Dz(bits << (self.bits - self.id.length - len(self.levels)), self.bits)

    def span(self, box: Box, widths: Sequence[int]) -> Spans | None:
        """What a box wants of it, on axes of these bits; None if it lies outside."""
        shared = intersection(self.box, box)
        if shared is None:
            return None
        out = []
        for axis, name, width in zip(self.axes, self.dimensions, widths, strict=True):
            spare = width - axis.cells.bit_length() + 1
            span = axis.span(shared[self.schema.positions[name]])
            first, last, below = span.first << spare, span.last << spare, span.below << spare
            out.append(Span(first, last, below, (span.above + 1 << spare) - 1))
        return tuple(out)


def _line(attribute: Attribute, ends: Bounds) -> Attribute | None:
    if ends is None:
        return attribute
    low, high = ends
    if attribute.kind == "float":
        return Attribute(attribute.name, "float", low, high) if low < high else None
    return Attribute(attribute.name, "int", low, high)


def check_bounds(attribute: Attribute, ends: object) -> Bounds:
    """The ends of a part on a dimension, as plain numbers of its line."""
    name = attribute.name
    if ends is None:
        return None
    if attribute.kind == "string":
        raise BadPlan(f"{name} is a string, which no part bounds; right is null, not {ends!r}")
    listed = ends if isinstance(ends, Sequence | np.ndarray) else ()
    plain = [end.item() if isinstance(end, np.generic) else end for end in listed]
    if len(plain) != 2 or not all(_is_on(attribute, end) for end in plain) or plain[0] > plain[1]:
        right = f"two numbers on its line, from {attribute.min} to {attribute.max}, the lower one first"
        raise BadPlan(f"a part reaches over {ends!r} of {name}; right are {right}")
    low, high = map(float if attribute.kind == "float" else int, plain)
    return low, high


def _is_on(attribute: Attribute, number: object) -> bool:
    """Whether something is a number of an attribute's line."""
    if isinstance(number, bool) or not isinstance(number, int | float):
        return False
    return attribute.min <= number <= attribute.max and (attribute.kind == "float" or number == int(number))
