"""What all plans share: covers of filters, computed from where the plan cuts its cells."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Attribute, Schema
from flowsieve.errors import BadFilter, BadPlan
from flowsieve.index.covers import cover_kernel, refine_kernel
from flowsieve.index.covers.box_kernel import GridTask, Task
from flowsieve.index.covers.cover import MOST_LISTED
from flowsieve.index.covers.refine import PATIENCE, PATIENCE_WITH_SAMPLE, most_effort
from flowsieve.index.covers.walk import Cell, DzColumn, Spans
from flowsieve.index.dz import Dz
from flowsieve.index.dzset import DzSet
from flowsieve.index.extent import Extent
from flowsieve.index.plans.splitter import Splitter
from flowsieve.index.sample import PRIOR, EventSample

# How many boxes a search may look at, repeats included; a million take a few milliseconds.
LISTING_EFFORT = 100_000_000
COUNTING_EFFORT = 5_000_000
ADVICE_EFFORT = 1_000_000

NOTHING = np.empty(0, np.uint64)


class CellPlan(ABC):
    """An index plan: what its axes are, where it cuts cells, what a filter wants of its axes, how events are encoded.

    The one law: an event that a filter matches has a dz that the filter's cover covers, whatever the budget
    and the sample.
    """

    kind: ClassVar[str]
    one_dz: ClassVar[bool] = True  # whether every event has exactly one dz
    single_places: ClassVar[bool] = True  # whether a cell of full length is a single place on each axis
    fields: ClassVar[tuple[str, ...]]  # what its JSON has beside kind and schema

    schema: Schema
    dimensions: tuple[str, ...]  # the attributes that the plan cuts
    bits: int  # of the longest dz that the plan can make; an event's dz have this length

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """The number of places on each axis."""

    @property
    @abstractmethod
    def splitter(self) -> Splitter:
        """Where cells are cut, in a form that kernels take."""

    @abstractmethod
    def encode(self, values: Mapping[str, object]) -> tuple[Dz, ...]:
        """The dz of an event: one, several, or none if the plan does not send it."""

    @abstractmethod
    def encode_batch(self, events: EventBatch) -> DzColumn:
        """`encode` for many events at once; raises BadCell at the first one without a place in the index."""

    @abstractmethod
    def boxes(self, wanted: Filter) -> tuple[Spans, ...]:
        """What a filter wants, as boxes of places on the plan's axes."""

    @abstractmethod
    def places(self, events: EventBatch) -> NDArray[np.uint64]:
        """Where events lie on the axes: a row for each dz that `encode_batch` gives."""

    def cells(self, places: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """The first and the last places of the cells of full length that such places lie in."""
        return places, places

    @abstractmethod
    def extents(self, cell: Cell) -> tuple[Extent, ...]:
        """The parts of the content space that a cell stands for; none if no event lies in it."""

    @abstractmethod
    def shortened(self, bits: int) -> Self:
        """The plan with at most as many bits as it has."""

    def to_json(self) -> dict[str, Any]:
        """The plan as a plain value: its kind, the digest of its schema, and what the kind needs."""
        own = {name: _listed(getattr(self, name)) for name in self.fields}
        return {"kind": self.kind, "schema": self.schema.digest, **own}

    @cached_property
    def attributes(self) -> tuple[Attribute, ...]:
        return tuple(self.schema[name] for name in self.dimensions)

    def split(self, cell: Cell) -> tuple[Cell, Cell] | None:
        if cell.dz.length == self.bits:
            return None
        axis, last = self.splitter.cut_of(cell)
        return cell.halves(axis, last + 1)

    def may_cut(self, cell: Cell) -> list[bool]:
        """On which axes the cell, or one inside it, is cut, as far as that can be told from its shape."""
        left = self.bits - cell.dz.length
        return (
            [levels < left for levels in self.splitter.reach_of(cell)] if left else [False] * len(self.shape)
        )

    def cover(
        self,
        wanted: Filter,
        budget: int,
        sample: EventSample | None = None,
        price: float = 0.0,
        free: int = 0,
    ) -> DzSet:
        """The filter's DZ: exact with budget 0, else at most so many dz, spent where they save most traffic.

        With a price, each dz beyond the `free` ones saves at least that share of the traffic.

        The traffic is that of the sample, made under this plan; without one it is taken as alike everywhere.
        """
        if budget < 0:
            raise BadPlan(f"a budget is a number of dz, or 0 for the exact cover; not {budget}")
        task = self._task(wanted, sample)
        if budget:
            patience = PATIENCE_WITH_SAMPLE if sample else PATIENCE
            return DzSet.from_arrays(
                *refine_kernel.refine(task, budget, patience, most_effort(budget), price, free)
            )
        *arrays, complete = cover_kernel.exact(task, MOST_LISTED, LISTING_EFFORT)
        if not complete:
            raise BadFilter(self._too_long(wanted), text=wanted.text)
        return DzSet.from_arrays(*arrays)

    def count_cover(self, wanted: Filter) -> int:
        """How many dz the exact cover has, however many: counted, not listed.

        A float counts them, so beyond 2^53 the last digits are rounded. For a filter of many boxes that lie
        across each other everywhere, or of very many dz on what is no grid, it is an upper bound.
        """
        return self._count(wanted, COUNTING_EFFORT)

    def touches(self, wanted: Filter, cells: DzSet) -> NDArray[np.bool_]:
        """Which dz of a set name cells that the filter touches."""
        mask: NDArray[np.bool_] = cover_kernel.touches(
            self._task(wanted, None), cells.hi, cells.lo, cells.length
        )
        return mask

    def _task(self, wanted: Filter, sample: EventSample | None) -> Task | GridTask:
        boxes = np.array(self.boxes(wanted), np.uint64)  # boxes, axes, the four fields of a span
        if sample is None:
            traffic = NOTHING, NOTHING, self._no_places, np.empty(1, np.int64), PRIOR
        elif sample.plan is self or sample.plan == self:
            room = np.empty(len(sample) + 1, np.int64)
            traffic = sample.hi, sample.lo, sample.places, room, sample.prior
        else:
            raise BadPlan("the sample was made under another plan")
        rest = (self.bits, self.axis_last, *np.ascontiguousarray(boxes.transpose(2, 0, 1)), *traffic)
        if self._levels is None:
            return Task(*self.splitter, *rest)
        return GridTask(self._level_rows, *rest)

    def _count(self, wanted: Filter, effort: int) -> int:
        return int(cover_kernel.count(self._task(wanted, None), effort))

    def _too_long(self, wanted: Filter) -> str:
        fits, fits_not = 0, self.bits
        while fits_not - fits > 1:
            middle = (fits + fits_not) // 2
            if self.shortened(middle)._count(wanted, ADVICE_EFFORT) <= MOST_LISTED:
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
    def _levels(self) -> NDArray[np.int64] | None:
        """The axis that each level halves, if the plan is a grid."""
        return None

    @cached_property
    def _level_rows(self) -> NDArray[np.int64]:
        """The levels of a grid as `GridTask` has them: every further array in it would make covers slower."""
        return np.column_stack((self.splitter.axis, self.splitter.reach)).astype(np.int64)

    @cached_property
    def axis_last(self) -> NDArray[np.uint64]:
        """The last place on each axis."""
        return np.array([places - 1 for places in self.shape], np.uint64)

    @cached_property
    def _no_places(self) -> NDArray[np.uint64]:
        return np.empty((0, len(self.shape)), np.uint64)


def _listed(value: Any) -> Any:
    """A value as JSON has it: a list for a tuple."""
    return [_listed(part) for part in value] if isinstance(value, tuple) else value
