"""The regular index: the dz's bits go round robin over the dimensions, each bit halves one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Attribute, Schema
from flowsieve.errors import BadFilter, BadPlan, BadValue, nearest
from flowsieve.index import cover_kernel, refine_kernel, regular_kernel
from flowsieve.index.box_kernel import Task
from flowsieve.index.cover import MOST_LISTED
from flowsieve.index.dz import MAX_LENGTH, Dz
from flowsieve.index.dzset import DzSet
from flowsieve.index.grid import Axis
from flowsieve.index.refine import PATIENCE, PATIENCE_WITH_SAMPLE, most_effort
from flowsieve.index.sample import EventSample
from flowsieve.index.walk import Cell, DzColumn, Spans, spans

CHUNK = 1 << 14  # events encoded in one go: their places fit the cache
# How many boxes a search may look at, over and over; a million take a few milliseconds.
LISTING_EFFORT = 100_000_000
COUNTING_EFFORT = 5_000_000
ADVICE_EFFORT = 1_000_000


@dataclass(frozen=True)
class RegularPlan:
    """Bits round robin over the dimensions in order, passing over one that has all its bits.

    >>> schema = Schema.parse({name: {"type": "int", "min": 0, "max": 99} for name in "AB"})
    >>> plan = RegularPlan.make(schema, bits=6)
    >>> plan.encode({"A": 65, "B": 55})
    (Dz('110010'),)
    >>> plan.cover(Filter.parse("A < 50 and B >= 50", schema), budget=0)
    DzSet('01')
    """

    kind: ClassVar[str] = "regular"

    schema: Schema
    dimensions: tuple[str, ...]
    bits: int

    def __post_init__(self) -> None:
        if not self.dimensions:
            raise BadPlan("an index has at least one dimension")
        for i, name in enumerate(self.dimensions):
            if name not in self.schema:
                raise BadPlan(f"there is no attribute {name!r} to index{nearest(name, self.schema.names)}")
            if name in self.dimensions[:i]:
                raise BadPlan(f"{name!r} stands twice among the dimensions")
        if not 0 <= self.bits <= MAX_LENGTH:
            raise BadPlan(f"an index has 0 to {MAX_LENGTH} bits, not {self.bits}")
        if self.bits > self._needed:
            raise BadPlan(f"{', '.join(self.dimensions)} need {self._needed} bits at most, not {self.bits}")

    @classmethod
    def make(
        cls,
        schema: Schema,
        bits: int | None = None,
        dimensions: Sequence[str] | None = None,
        room: int = MAX_LENGTH,
    ) -> RegularPlan:
        """A plan for a header with room for so many bits: all dimensions and all bits unless told otherwise.

        Where more bits are asked for than the dimensions need, the rest stays unused.
        """
        wanted = room if bits is None else bits
        if isinstance(wanted, bool) or not isinstance(wanted, int) or wanted < 0:
            raise BadPlan(f"bits = {wanted!r}; it is a whole number from 0 to {room}")
        if wanted > room:
            raise BadPlan(f"bits = {wanted} is more than the {room} that the header has room for")
        if isinstance(dimensions, str) or not all(isinstance(name, str) for name in dimensions or ()):
            raise BadPlan(f"dimensions = {dimensions!r}; it is a list of attribute names")
        names = schema.names if dimensions is None else tuple(dimensions)
        needed = sum(schema[name].resolution for name in set(names) if name in schema)
        return cls(schema, names, min(wanted, needed))

    @classmethod
    def from_json(cls, data: Mapping[str, Any], schema: Schema, room: int) -> RegularPlan:
        """The plan that `to_json` wrote down; the caller has checked kind and schema."""
        for key in data:
            if key not in ("kind", "schema", "bits", "dimensions"):
                raise BadPlan(f"a regular plan has no {key!r}, only kind, schema, bits, dimensions")
        names = data.get("dimensions")
        if not isinstance(names, list | None):
            raise BadPlan(f"dimensions = {names!r}; it is a list of attribute names")
        return cls.make(schema, data.get("bits"), names, room)

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "schema": self.schema.digest,
            "bits": self.bits,
            "dimensions": list(self.dimensions),
        }

    @cached_property
    def attributes(self) -> tuple[Attribute, ...]:
        return tuple(self.schema[name] for name in self.dimensions)

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """The dimension that each bit halves."""
        left = [attribute.resolution for attribute in self.attributes]
        levels: list[int] = []
        while len(levels) < self.bits:
            turn = [i for i, bits in enumerate(left) if bits][: self.bits - len(levels)]
            levels += turn
            for i in turn:
                left[i] -= 1
        return tuple(levels)

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        return tuple(Axis(attribute, self.levels.count(i)) for i, attribute in enumerate(self.attributes))

    def split(self, cell: Cell) -> tuple[Cell, Cell] | None:
        if cell.dz.length == self.bits:
            return None
        axis = self.levels[cell.dz.length]
        first, last = cell.first[axis], cell.last[axis]
        return cell.halves(axis, first + (last - first + 1) // 2)

    def encode(self, values: Mapping[str, object]) -> tuple[Dz, ...]:
        """The dz of an event: each bit says which half of its dimension the event lies in."""
        places, left = [], []
        for axis in self.axes:
            attribute = axis.attribute
            if attribute.name not in values:
                raise BadValue(f"{attribute.name} is missing; it is {attribute.range_text}")
            places.append(axis.place(attribute.point(values[attribute.name])))
            left.append(axis.bits)
        bits = 0
        for i in self.levels:
            left[i] -= 1
            bits = bits << 1 | (places[i] >> left[i] & 1)
        return (Dz(bits, self.bits),)

    def encode_batch(self, events: EventBatch) -> DzColumn:
        """`encode` for many events at once; raises BadCell at the first one without a place in the index."""
        self._check_schema(events.schema)
        hi, lo = np.zeros(len(events), np.uint64), np.zeros(len(events), np.uint64)
        places = np.zeros((len(self.axes), min(len(events), CHUNK)), np.uint64)
        for start in range(0, len(events), CHUNK):
            rows = slice(start, start + CHUNK)
            some = places[:, : len(hi[rows])]
            for axis, out in zip(self.axes, some, strict=True):
                if axis.bits:
                    axis.fill_places(events.columns[axis.attribute.name][rows], out, start)
            regular_kernel.interleave(self._compiled_levels, self._shifts, some, hi[rows], lo[rows])
        return DzColumn(np.arange(len(events)), hi, lo, self.bits)

    def cover(self, wanted: Filter, budget: int, sample: EventSample | None = None) -> DzSet:
        """The filter's DZ: exact with budget 0, else at most so many dz, spent where they save most traffic.

        The traffic is that of the sample, made under this plan; without one it is taken as alike everywhere.
        """
        if budget < 0:
            raise BadPlan(f"a budget is a number of dz, or 0 for the exact cover; not {budget}")
        task = self._task(wanted, sample)
        if budget:
            patience = PATIENCE_WITH_SAMPLE if sample else PATIENCE
            return DzSet.from_arrays(*refine_kernel.refine(task, budget, patience, most_effort(budget)))
        *arrays, complete = cover_kernel.exact(task, MOST_LISTED, LISTING_EFFORT)
        if not complete:
            raise BadFilter(self._too_long(wanted), text=wanted.text)
        return DzSet.from_arrays(*arrays)

    def count_cover(self, wanted: Filter) -> int:
        """How many dz the exact cover has, however many: counted, not listed.

        A float counts them, so beyond 2^53 the last digits are rounded. For a filter of many boxes that lie
        across each other everywhere it is an upper bound.
        """
        return self._count(wanted, COUNTING_EFFORT)

    def touches(self, wanted: Filter, cells: DzSet) -> NDArray[np.bool_]:
        """Which dz of a set name cells that the filter touches."""
        mask: NDArray[np.bool_] = cover_kernel.touches(
            self._task(wanted, None), cells.hi, cells.lo, cells.length
        )
        return mask

    def boxes(self, wanted: Filter) -> tuple[Spans, ...]:
        """What a filter wants, as boxes of cells on the plan's axes."""
        self._check_schema(wanted.schema)
        return spans(self.axes, wanted)

    def _task(self, wanted: Filter, sample: EventSample | None) -> Task:
        boxes = np.array(self.boxes(wanted), np.uint64)  # boxes, axes, the four fields of a span
        first, last, below, above = np.ascontiguousarray(boxes.transpose(2, 0, 1))
        sample = sample or self._no_sample
        if sample.axes is not self.axes and sample.axes != self.axes:
            raise BadPlan("the sample was made under another plan")
        return Task(
            levels=self._compiled_levels,
            axis_last=self._axis_last,
            first=first,
            last=last,
            below=below,
            above=above,
            codes_hi=sample.hi,
            codes_lo=sample.lo,
            places=sample.places,
            unwanted=np.empty(len(sample) + 1, np.int64),
            prior=sample.prior,
        )

    def _count(self, wanted: Filter, effort: int) -> int:
        return int(cover_kernel.count(self._task(wanted, None), effort))

    def _too_long(self, wanted: Filter) -> str:
        fits, fits_not = 0, self.bits
        while fits_not - fits > 1:
            middle = (fits + fits_not) // 2
            if RegularPlan(self.schema, self.dimensions, middle)._count(wanted, ADVICE_EFFORT) <= MOST_LISTED:
                fits = middle
            else:
                fits_not = middle
        count = self._count(wanted, ADVICE_EFFORT)
        shorter = f"take bits = {fits}, or " if fits else ""
        return (
            f"the exact cover has up to {count:,} dz of {self.bits} bits, and not more than {MOST_LISTED:,} can be "
            f"listed; give a budget (max_dz_per_filter = 32, say), or {shorter}index fewer dimensions"
        )

    def _check_schema(self, schema: Schema) -> None:
        if schema is not self.schema and schema != self.schema:
            raise BadPlan(
                f"the plan is for the schema of {', '.join(self.schema.names)}, "
                f"not for that of {', '.join(schema.names)}"
            )

    @cached_property
    def _needed(self) -> int:
        return sum(attribute.resolution for attribute in self.attributes)

    @cached_property
    def _compiled_levels(self) -> NDArray[np.int64]:
        return np.array(self.levels, np.int64)

    @cached_property
    def _axis_last(self) -> NDArray[np.uint64]:
        return np.array([axis.cells - 1 for axis in self.axes], np.uint64)

    @cached_property
    def _shifts(self) -> NDArray[np.uint64]:
        left, shifts = [axis.bits for axis in self.axes], []
        for i in self.levels:
            left[i] -= 1
            shifts.append(left[i])
        return np.array(shifts, np.uint64)

    @cached_property
    def _no_sample(self) -> EventSample:
        nothing = np.empty(0, np.uint64)
        return EventSample(self.axes, nothing, nothing, np.empty((0, len(self.axes)), np.uint64))
