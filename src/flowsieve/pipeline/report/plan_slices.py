"""A plan in two dimensions: the cells that it cuts a slice of the content space into, as rectangles.

The slice goes through one event: along two attributes everything is shown, all others are held at the event's values.
Numbers stand for themselves, words for their places in the attribute's list, and a string for its place on an axis
from 0 to 1. A value that is whole is as wide as one, so that a cell of one value can be seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import log2
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from flowsieve.content.box import Box, Interval, Text
from flowsieve.content.event import EventBatch
from flowsieve.content.schema import Attribute, Schema
from flowsieve.errors import BadInput, nearest
from flowsieve.index.axes.grid import Axis, Line
from flowsieve.index.axes.inverse import number_in
from flowsieve.index.covers.walk import Cell, cell_of, root
from flowsieve.index.dz import Dz
from flowsieve.index.extent import Extent
from flowsieve.index.plan import IndexPlan

MOST_CELLS = 2_000  # more cannot be told apart
WHOLE_STRINGS = (0.0, 1.0)


Corners = tuple[float, float, float, float]  # x0, x1, y0, y1


class Rectangle(NamedTuple):
    """A cell's part of the slice and its dz; `order` is the number of cuts before, `under` that others lie over it."""

    x0: float
    x1: float
    y0: float
    y1: float
    order: int
    dz: Dz
    under: bool


@dataclass(frozen=True)
class Slice:
    """What a plan makes of a slice: all cells on the way to the finest that are shown, coarse ones first.

    `bits` is how many bits of the plan were looked at, fewer than it has where the cells would be too many.
    """

    plan: IndexPlan
    x: Attribute
    y: Attribute
    at: Mapping[str, object]
    rectangles: tuple[Rectangle, ...]
    cells: int
    bits: int


def middle(events: EventBatch) -> dict[str, object]:
    """An event in the middle of some events: of each attribute the median, of a string the most frequent value."""
    values: dict[str, object] = {}
    for attribute in events.schema:
        column = events.columns[attribute.name]
        if not len(column):
            values[attribute.name] = "" if attribute.kind == "string" else attribute.value(attribute.min)
        elif attribute.kind == "string":
            words, counts = np.unique(column.astype(str), return_counts=True)
            values[attribute.name] = str(words[np.argmax(counts)])
        else:
            values[attribute.name] = attribute.value(np.sort(column)[(len(column) - 1) // 2])
    return values


def busiest_axes(plans: Iterable[IndexPlan], at: Mapping[str, object]) -> tuple[str, str]:
    """The two attributes that plans of one schema cut most finely around an event, all together."""
    spent: dict[str, float] = {}
    for plan in plans:
        spent = spent or dict.fromkeys(plan.schema.names, 0.0)
        for dz in plan.encode(at)[:1]:
            for extent in plan.extents(cell_of(plan, dz))[:1]:
                for axis, first, last in zip(extent.axes, extent.first, extent.last, strict=True):
                    spent[axis.attribute.name] += log2(axis.cells / (last - first + 1))
    if len(spent) < 2:
        raise BadInput(f"a picture in two dimensions takes two attributes; there is {', '.join(spent)}")
    x, y = sorted(spent, key=lambda name: -spent[name])[:2]
    return x, y


def slice_of(plan: IndexPlan, x: str, y: str, at: Mapping[str, object], most: int = MOST_CELLS) -> Slice:
    """The cells of a plan along two attributes, through an event."""
    for name in (x, y):
        if name not in plan.schema:
            raise BadInput(f"there is no attribute {name!r} to draw{nearest(name, plan.schema.names)}")
    if x == y:
        raise BadInput(f"both axes are {x!r}; right are two attributes")
    points = tuple(attribute.point(at[attribute.name]) for attribute in plan.schema)
    frame = _Frame(plan, plan.schema[x], plan.schema[y], points)
    seen: dict[Corners, Rectangle] = {}
    cells, bits = [root(plan)], 0
    _note(frame, cells, seen)
    while bits < plan.bits:
        finer = list(_halves(frame, cells))
        if len(finer) > most:
            break
        _note(frame, finer, seen)
        cells, bits = finer, bits + 1
    return Slice(plan, frame.x, frame.y, dict(at), tuple(seen.values()), len(cells), bits)


@dataclass(frozen=True)
class _Frame:
    """Where a slice lies: along x and y, and through the points of all attributes, in the schema's order."""

    plan: IndexPlan
    x: Attribute
    y: Attribute
    points: tuple[Any, ...]

    def corners(self, extent: Extent) -> Corners | None:
        """An extent's part of the slice; None if it has none."""
        ends = {}
        for attribute, point, constraint in zip(self.plan.schema, self.points, extent.within, strict=True):
            if attribute in (self.x, self.y):
                ends[attribute.name] = sides(attribute, constraint)
            elif not constraint.admits(point):
                return None
        for axis, first, last in zip(extent.axes, extent.first, extent.last, strict=True):
            name = axis.attribute.name
            if name not in ends:
                if not first <= axis.place(self.points[self.plan.schema.positions[name]]) <= last:
                    return None
            elif (own := _ends(axis, first, last)) is None:
                return None
            else:
                ends[name] = max(own[0], ends[name][0]), min(own[1], ends[name][1])
        return (*ends[self.x.name], *ends[self.y.name])


def coordinates(attribute: Attribute, column: NDArray[Any]) -> NDArray[np.float64]:
    """Where events stand along an attribute of a slice."""
    if attribute.kind != "string":
        return column.astype(np.float64)
    bits = min(52, attribute.resolution)
    return Axis(attribute, bits).places(column).astype(np.float64) / 2.0**bits


def sides(attribute: Attribute, constraint: Interval | Text) -> tuple[float, float]:
    """From where to where a constraint reaches along an attribute; of strings only one alone is a place."""
    if isinstance(constraint, Interval):
        return _widened(attribute, constraint.low, constraint.high)
    if constraint.equals is None:
        return WHOLE_STRINGS
    place = float(coordinates(attribute, np.array([constraint.equals], dtype=object))[0])
    return place - 0.003, place + 0.003


def limits(attribute: Attribute) -> tuple[float, float]:
    return WHOLE_STRINGS if attribute.kind == "string" else _widened(attribute, attribute.min, attribute.max)


def outlines(schema: Schema, box: Box, x: Attribute, y: Attribute) -> Corners:
    """A box as it stands in a slice along two attributes."""
    return (*sides(x, box[schema.positions[x.name]]), *sides(y, box[schema.positions[y.name]]))


def _note(frame: _Frame, cells: list[Cell], seen: dict[Corners, Rectangle]) -> None:
    """Keep the rectangles of cells that were not there before; a cut along another attribute makes none."""
    for cell in cells:
        for extent in frame.plan.extents(cell):
            corners = frame.corners(extent)
            if corners is None:
                continue
            if corners in seen:
                seen[corners] = seen[corners]._replace(dz=cell.dz)
            else:
                seen[corners] = Rectangle(*corners, cell.dz.length, cell.dz, bool(extent.without))


def _halves(frame: _Frame, cells: list[Cell]) -> Iterator[Cell]:
    """The halves of cells that reach into the slice."""
    for cell in cells:
        halves = frame.plan.split(cell)
        for half in (cell,) if halves is None else halves:
            if any(frame.corners(extent) is not None for extent in frame.plan.extents(half)):
                yield half


def _ends(axis: Line, first: int, last: int) -> tuple[float, float] | None:
    attribute = axis.attribute
    if attribute.kind == "string":
        return first / axis.cells, (last + 1) / axis.cells
    whole = Interval(attribute.min, attribute.max)
    low = number_in(axis, first, last, whole)
    if low is None:
        return None  # no value lies there
    after = number_in(axis, last + 1, axis.cells - 1, whole) if last + 1 < axis.cells else None
    if after is None:
        return _widened(attribute, low, attribute.max)
    return _widened(attribute, low, after if attribute.kind == "float" else after - 1)


def _widened(attribute: Attribute, low: float, high: float) -> tuple[float, float]:
    half = 0.0 if attribute.kind == "float" else 0.5
    return float(low) - half, float(high) + half
