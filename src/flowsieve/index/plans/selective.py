"""Selective indexing: only some parts of the content space (MBRs) are indexed finely, each by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema, shown
from flowsieve.errors import BadPlan, Refused, nearest
from flowsieve.index.axes.cut_axis import CutAxis
from flowsieve.index.axes.grid import Axis, Line, Span
from flowsieve.index.covers.walk import Cell, DzColumn, Spans
from flowsieve.index.dz import MAX_LENGTH, Dz
from flowsieve.index.extent import Extent, remainders
from flowsieve.index.plans import regular_kernel, selective_kernel
from flowsieve.index.plans.cell_plan import CellPlan
from flowsieve.index.plans.mbr import Bounds, Mbr, check_bounds
from flowsieve.index.plans.reading import check_bits, check_dimensions, names_of, need, only
from flowsieve.index.plans.splitter import SPARE, SPARE_PLACES, Splitter, behind_ids, ids

MOST_PARTS = 1 << 12


@dataclass(frozen=True)
class SelectivePlan(CellPlan):
    """Parts (MBRs) of the space, each with a regular grid of its own behind an id; parts may overlap.

    An event is sent once for every part that holds it. With `rest`, what lies outside all parts is one more
    part over the whole space, so that every filter can be served. Without, such events are not sent, and a
    filter that reaches there is refused.

    >>> schema = Schema.parse({name: {"type": "int", "min": 0, "max": 99} for name in "AB"})
    >>> plan = SelectivePlan.make(schema, [{"A": (0, 9)}, {"A": (5, 20), "B": (0, 7)}], bits=4)
    >>> plan.encode({"A": 6, "B": 3}), plan.encode({"A": 50, "B": 3})
    ((Dz('0010'), Dz('0100')), (Dz('1100'),))
    """

    kind: ClassVar[str] = "selective"
    one_dz: ClassVar[bool] = False

    schema: Schema
    dimensions: tuple[str, ...]
    bounds: tuple[tuple[Bounds, ...], ...]  # of each part, on each dimension
    bits: int
    rest: bool = True

    def __post_init__(self) -> None:
        check_dimensions(self.schema, self.dimensions)
        check_bits(self.bits)
        if not 1 <= len(self.bounds) + self.rest <= MOST_PARTS:
            raise BadPlan(f"a selective plan has 1 to {MOST_PARTS} parts, not {len(self.bounds)}")
        for bounds in self.bounds:
            if len(bounds) != len(self.dimensions):
                raise BadPlan(f"a part has {len(bounds)} dimensions; right are {', '.join(self.dimensions)}")
            for name, ends in zip(self.dimensions, bounds, strict=True):
                check_bounds(self.schema[name], ends)
        longest = max(part.id.length for part in self.parts)
        if longest > self.bits:
            raise BadPlan(f"the ids of {len(self.parts)} parts need {longest} bits; there are {self.bits}")

    @classmethod
    def make(
        cls,
        schema: Schema,
        parts: Sequence[Mapping[str, Any]],
        bits: int | None = None,
        dimensions: Sequence[str] | None = None,
        rest: bool = True,
        room: int = MAX_LENGTH,
    ) -> SelectivePlan:
        """A plan from parts: of each the two ends on those dimensions that it does not take all of.

        The ends lie on the attributes' number lines, and belong to the part.
        """
        names = schema.names if dimensions is None else names_of(dimensions)
        check_dimensions(schema, names)
        rows = []
        for part in parts:
            for name in part:
                if name not in names:
                    raise BadPlan(f"a part bounds {name!r}, which is no dimension{nearest(str(name), names)}")
            rows.append(tuple(check_bounds(schema[name], part.get(name)) for name in names))
        return cls(schema, names, tuple(rows), check_bits(room if bits is None else bits, room), rest)

    @classmethod
    def from_json(cls, data: Mapping[str, Any], schema: Schema, room: int) -> SelectivePlan:
        """The plan that `to_json` wrote down; the caller has checked kind and schema."""
        only(data, cls.kind, ("bits", "dimensions", "parts", "rest"))
        names = names_of(need(data, cls.kind, "dimensions"))
        check_dimensions(schema, names)
        parts, rest = need(data, cls.kind, "parts"), data.get("rest", True)
        right = f"it is a list of parts, each a list of the ends on {', '.join(names)}"
        if not isinstance(parts, list):
            raise BadPlan(f"parts = {shown(parts)}; {right}")
        if not isinstance(rest, bool):
            raise BadPlan(f"rest = {shown(rest)}; it is true or false")
        rows = []
        for part in parts:
            if not isinstance(part, list) or len(part) != len(names):
                raise BadPlan(f"parts has {shown(part)}; {right}")
            rows.append(
                tuple(check_bounds(schema[name], ends) for name, ends in zip(names, part, strict=True))
            )
        return cls(schema, names, tuple(rows), check_bits(need(data, cls.kind, "bits"), room), rest)

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "schema": self.schema.digest,
            "bits": self.bits,
            "dimensions": list(self.dimensions),
            "parts": [[None if ends is None else list(ends) for ends in bounds] for bounds in self.bounds],
            "rest": self.rest,
        }

    @cached_property
    def parts(self) -> tuple[Mbr, ...]:
        """All parts, the rest last."""
        everything: tuple[Bounds, ...] = (None,) * len(self.dimensions)
        rows = [*self.bounds, everything] if self.rest else list(self.bounds)
        return tuple(
            Mbr(self.schema, self.dimensions, bounds, id, self.bits)
            for bounds, id in zip(rows, ids(len(rows)), strict=True)
        )

    @property
    def _chosen(self) -> tuple[Mbr, ...]:
        """The parts without the rest."""
        return self.parts[: len(self.bounds)]

    @cached_property
    def _widths(self) -> tuple[int, ...]:
        """The bits of each dimension, in the part that has most."""
        columns = zip(*(part.axes for part in self.parts), strict=True)
        return tuple(max(axis.cells for axis in column).bit_length() - 1 for column in columns)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """An axis that tells the parts apart, the dimensions, and the spare one."""
        return (len(self.parts), *(1 << width for width in self._widths), SPARE_PLACES)

    @cached_property
    def splitter(self) -> Splitter:
        """The ids' tree; behind each id the levels of its part; behind all of them the spare axis."""
        return behind_ids([part.levels for part in self.parts], self.bits, len(self.dimensions))

    def encode(self, values: Mapping[str, object]) -> tuple[Dz, ...]:
        """The dz of an event: one for each part that holds it."""
        for attribute in self.attributes:
            attribute.point_of(values)  # raises what is wrong with a value
        holding = [part for part in self._chosen if part.holds(values)]
        if not holding and self.rest:
            holding = [self.parts[-1]]
        return tuple(part.encode(values) for part in holding)

    def encode_batch(self, events: EventBatch) -> DzColumn:
        """`encode` for many events at once; raises BadCell at the first one without a place in the index."""
        rows, number = self._holding(events)
        hi, lo = np.zeros(len(rows), np.uint64), np.zeros(len(rows), np.uint64)
        for i, part in enumerate(self.parts):
            entries = np.flatnonzero(number == i)
            if len(entries):
                own_hi, own_lo = np.zeros(len(entries), np.uint64), np.zeros(len(entries), np.uint64)
                places = self._places_in(part, events, rows[entries])
                levels, behind = np.array(part.levels, np.int64), np.uint64(part.id.length)
                regular_kernel.interleave(levels, part.shifts, places, own_hi, own_lo)
                selective_kernel.put_behind(np.uint64(part.id.aligned >> 64), behind, own_hi, own_lo)
                hi[entries], lo[entries] = own_hi, own_lo
        return DzColumn(rows, hi, lo, self.bits)

    def places(self, events: EventBatch) -> NDArray[np.uint64]:
        rows, number = self._holding(events)
        out = np.zeros((len(rows), len(self.shape)), np.uint64)
        out[:, 0] = number
        for i, part in enumerate(self.parts):
            entries = np.flatnonzero(number == i)
            places = self._places_in(part, events, rows[entries])
            for j, (axis, width) in enumerate(zip(part.axes, self._widths, strict=True)):
                out[entries, j + 1] = places[j] << np.uint64(width - axis.cells.bit_length() + 1)
        return out

    def boxes(self, wanted: Filter) -> tuple[Spans, ...]:
        self._check_schema(wanted.schema)
        out: dict[Spans, None] = {}
        holes = [part.box for part in self._chosen]
        for box in wanted.boxes:
            outside = next(remainders(self.schema, box, holes), None) is not None
            if outside and not self.rest:
                raise Refused(
                    f"{wanted.text!r} reaches outside all {len(self.parts)} parts of the index, where events are "
                    "not sent; right is a plan with parts, or a rest, that hold it"
                )
            for i, part in enumerate(self.parts if outside else self._chosen):
                spans = part.span(box, self._widths)
                if spans is not None:
                    out[(Span(i, i, i, i), *spans, SPARE)] = None
        return tuple(out)

    def extents(self, cell: Cell) -> tuple[Extent, ...]:
        if cell.first[-1]:
            return ()
        return tuple(self._extent(i, cell) for i in range(cell.first[0], cell.last[0] + 1))

    def _extent(self, number: int, cell: Cell) -> Extent:
        part = self.parts[number]
        spare = [w - axis.cells.bit_length() + 1 for axis, w in zip(part.axes, self._widths, strict=True)]
        first, last = (
            tuple(place >> gap for place, gap in zip(places[1:-1], spare, strict=True))
            for places in (cell.first, cell.last)
        )
        without = tuple(chosen.box for chosen in self._chosen) if number == len(self.bounds) else ()
        return Extent(part.axes, first, last, part.box, without)

    def shortened(self, bits: int) -> SelectivePlan:
        """With fewer bits than the ids need, those of a plan of the rest alone."""
        longest = max(part.id.length for part in self.parts)
        return replace(self, bits=bits) if bits >= longest else replace(self, bits=bits, bounds=(), rest=True)

    def _holding(self, events: EventBatch) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The rows and parts of all dz that events have, row by row."""
        self._check_schema(events.schema)
        points = np.zeros((len(self.dimensions), len(events)))
        for i, name in enumerate(self.dimensions):
            whole = self._whole_lines[i]
            whole.places(events.columns[name])  # raises what is wrong with a column
            if self.schema[name].kind != "string":
                points[i] = events.columns[name]
        held: tuple[NDArray[np.int64], NDArray[np.int64]] = selective_kernel.holding(
            points, *self._ends, self.rest
        )
        return held

    def _places_in(self, part: Mbr, events: EventBatch, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
        places = np.zeros((len(self.dimensions), len(rows)), np.uint64)
        for axis, name, out in zip(part.axes, self.dimensions, places, strict=True):
            if axis.cells > 1:
                axis.fill_places(events.columns[name][rows], out)
        return places

    @cached_property
    def _whole_lines(self) -> tuple[Line, ...]:
        """Axes of a single cell each: what has no place there is no value."""
        return tuple(
            Axis(attribute, 0) if attribute.kind == "string" else CutAxis(attribute, ())
            for attribute in self.attributes
        )

    @cached_property
    def _ends(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Where the parts begin and end, a row for each."""
        open_ends = (-np.inf, np.inf)
        rows = [[open_ends if ends is None else ends for ends in bounds] for bounds in self.bounds]
        both = np.array(rows, np.float64).reshape(len(rows), len(self.dimensions), 2)
        return np.ascontiguousarray(both[:, :, 0]), np.ascontiguousarray(both[:, :, 1])
