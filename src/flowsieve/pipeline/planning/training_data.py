"""What planners look at: subscriptions and a sample of events, both as places on lines that hold every edge of a box.

On such a line two values have one place only if no subscription tells them apart. A cut that is worth anything lies
between two places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Attribute, Schema
from flowsieve.index.axes.grid import Axis

STRING_BITS = 12  # of the line of a string, which is cut by its hash or its first bytes
# Edges on a line; of more, evenly spaced ones: places are then shared by values that boxes tell apart.
MOST_EDGES = 1 << 14


@dataclass(frozen=True, eq=False)
class Edges:
    """The line of an attribute: place p holds the values from `cuts[p - 1]` to below `cuts[p]`.

    A string has no cuts. Its places are the cells of an axis with `STRING_BITS`.
    """

    attribute: Attribute
    cuts: NDArray[np.float64]

    @classmethod
    def of(cls, attribute: Attribute, filters: Sequence[Filter], i: int) -> Edges:
        if attribute.kind == "string":
            return cls(attribute, np.empty(0))
        ends = {(box[i].low, box[i].high) for wanted in filters for box in wanted.boxes}
        both = np.array(sorted(ends), np.float64).reshape(-1, 2)
        cuts = np.unique(np.concatenate([both[:, 0], _next(attribute, both[:, 1])]))
        cuts = cuts[(cuts > attribute.min) & (cuts <= attribute.max)]
        if len(cuts) > MOST_EDGES:
            cuts = cuts[np.linspace(0, len(cuts) - 1, MOST_EDGES).astype(np.int64)]
        return cls(attribute, cuts)

    @property
    def is_string(self) -> bool:
        return self.attribute.kind == "string"

    @property
    def places(self) -> int:
        return 1 << STRING_BITS if self.is_string else len(self.cuts) + 1

    @property
    def bits(self) -> int:
        """How often an axis over it can be halved."""
        return min(self.attribute.resolution, STRING_BITS if self.is_string else 16)

    def numbers(self, places: NDArray[np.int64]) -> list[int | float] | int:
        """The numbers at which places begin, as plans have them; of a string, how often they halve it."""
        if self.is_string:
            return len(places).bit_length()
        beyond = self.attribute.max
        numbers = [
            float(self.cuts[place - 1]) if place <= len(self.cuts) else beyond for place in places.tolist()
        ]
        return numbers if self.attribute.kind == "float" else [int(number) for number in numbers]

    def locate(self, events: EventBatch) -> NDArray[np.int64]:
        """The places of events."""
        column = events.columns[self.attribute.name]
        if self.is_string:
            return Axis(self.attribute, STRING_BITS).places(column).astype(np.int64)
        return np.searchsorted(self.cuts, column, side="right")

    def spans(self, filters: Sequence[Filter], i: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The first and the last place that each box touches."""
        constraints = [box[i] for wanted in filters for box in wanted.boxes]
        if self.is_string:
            axis = Axis(self.attribute, STRING_BITS)
            known = {constraint: axis.span(constraint) for constraint in set(constraints)}
            spans = [known[constraint] for constraint in constraints]
            return np.array([s.first for s in spans], np.int64), np.array([s.last for s in spans], np.int64)
        ends = np.array([(c.low, c.high) for c in constraints], np.float64).reshape(-1, 2)
        first, last = np.searchsorted(self.cuts, ends, side="right").T
        return first, last


def _next(attribute: Attribute, values: NDArray[np.float64]) -> NDArray[np.float64]:
    after: NDArray[np.float64] = np.nextafter(values, np.inf) if attribute.kind == "float" else values + 1.0
    return after


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Subscriptions and sampled events of one schema; what is derived from them is derived once."""

    schema: Schema
    filters: tuple[Filter, ...]
    events: EventBatch
    lines: tuple[Edges, ...]
    owner: NDArray[np.int64]  # the subscription of each box
    first: NDArray[np.int64]  # a row per box, a column per dimension: places
    last: NDArray[np.int64]

    @classmethod
    def of(cls, schema: Schema, filters: Sequence[Filter], events: EventBatch) -> TrainingData:
        lines = tuple(Edges.of(attribute, filters, i) for i, attribute in enumerate(schema))
        spans = [line.spans(filters, i) for i, line in enumerate(lines)]
        owner = np.repeat(np.arange(len(filters)), [len(wanted.boxes) for wanted in filters])
        first, last = (np.ascontiguousarray(np.stack(side, axis=1)) for side in zip(*spans, strict=True))
        return cls(schema, tuple(filters), events, lines, owner, first, last)

    @cached_property
    def points(self) -> NDArray[np.int64]:
        """The places of the events: a row per event, a column per dimension."""
        return np.ascontiguousarray(np.stack([line.locate(self.events) for line in self.lines], axis=1))
