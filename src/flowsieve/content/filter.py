"""What a subscriber wants and a publisher promises: a union of boxes, written as an expression."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from flowsieve.content.box import Box, Constraint, Interval, Text
from flowsieve.content.parser import parse_boxes
from flowsieve.content.region import Algebra, TooComplex
from flowsieve.content.schema import Attribute, Schema
from flowsieve.errors import BadFilter, BadInput

if TYPE_CHECKING:
    from flowsieve.content.event import EventBatch

__all__ = ["Box", "Constraint", "Filter", "Interval", "Text"]

MOST_PAIRS = 500_000  # pairs of boxes that are compared with each other: some tenths of a second

Condition = tuple[Attribute, Constraint]


@dataclass(frozen=True)
class Filter:
    """A condition on events, as its text and as the boxes that it means (disjunctive normal form).

    >>> schema = Schema.parse({"price": {"type": "int", "min": 0, "max": 1023}})
    >>> cheap = Filter.parse("price < 10.5 or price == 99", schema)
    >>> cheap.boxes
    ((Interval(low=0, high=10),), (Interval(low=99, high=99),))
    >>> cheap.matches({"price": 60})
    False
    """

    text: str
    schema: Schema = field(repr=False, hash=False)
    boxes: tuple[Box, ...] = field(repr=False, hash=False)

    def __post_init__(self) -> None:
        if not self.boxes:
            raise BadFilter("the filter can match nothing", text=self.text)

    @classmethod
    def parse(cls, text: str, schema: Schema) -> Filter:
        """The filter that a text means; a text that means none raises BadFilter, pointing at the place."""
        return cls(text, schema, parse_boxes(text, schema))

    @classmethod
    def known(cls, text: str, schema: Schema) -> Filter:
        """The filter of a text that was parsed before, for this schema; its boxes are worked out if somebody asks."""
        made = cls.__new__(cls)
        vars(made).update(text=text, schema=schema)
        return made

    def __getattr__(self, name: str) -> Any:
        """The boxes of a filter that is `known`."""
        if name != "boxes" or "schema" not in vars(self):
            raise AttributeError(f"a filter has no {name!r}")
        vars(self)["boxes"] = boxes = parse_boxes(self.text, self.schema)
        return boxes

    def matches(self, values: Mapping[str, object]) -> bool:
        """Whether an event matches, exactly: strings are compared as strings.

        Only the attributes that the filter constrains are looked at; a value there that the schema does not
        allow raises BadValue.
        """
        points = {attribute.name: attribute.point_of(values) for attribute in self._constrained}
        return any(
            all(constraint.admits(points[attribute.name]) for attribute, constraint in conditions)  # type: ignore[arg-type]
            for conditions in self._conditions
        )

    def matches_batch(self, events: EventBatch) -> NDArray[np.bool_]:
        """`matches` for many events at once; it means something for events without faults only."""
        out = np.zeros(len(events), dtype=np.bool_)
        for conditions in self._conditions:
            rows: NDArray[np.intp] | None = None  # those that met the conditions so far; None: all
            for attribute, constraint in conditions:
                column = events.columns[attribute.name]
                met = _admitted(constraint, column if rows is None else column[rows])
                rows = np.flatnonzero(met) if rows is None else rows[met]
            if rows is None:
                out[:] = True
                break
            out[rows] = True
        return out

    def covers(self, other: Filter) -> bool:
        """Whether every event that matches the other matches this one, if need be by several boxes together.

        The answer is exact as long as the work stays within a bound, which takes hundreds of interlocking
        boxes to reach; beyond it the answer is no, which is safe: without covering nothing is lost.
        """
        self._check_schema(other)
        known = set(self.boxes)
        new = [box for box in other.boxes if box not in known]
        if len(new) * len(self.boxes) > MOST_PAIRS:
            return False
        hard = [box for box in new if not any(_covers(large, box) for large in self.boxes)]
        algebra = Algebra(self.schema)
        try:
            return not any(self._leaves_some_of(box, algebra) for box in hard)
        except TooComplex:
            return False

    def overlaps(self, other: Filter) -> bool:
        """Whether some event can match both.

        Exact up to half a million pairs of boxes (707 against 707); the answer to more is yes, the safe one.
        """
        self._check_schema(other)
        if len(self.boxes) * len(other.boxes) > MOST_PAIRS:
            return True
        return any(_overlaps(one, two) for one in self.boxes for two in other.boxes)

    def intersection(self, other: Filter) -> Filter | None:
        """The filter that matches what both match; None if there is no such event."""
        self._check_schema(other)
        text = f"{_bracketed(self.text)} and {_bracketed(other.text)}"
        algebra = Algebra(self.schema)
        try:
            regions = [algebra.tidy([algebra.product(box) for box in part.boxes]) for part in (self, other)]
            boxes = algebra.boxes(algebra.all_of(regions))
        except TooComplex:
            raise BadFilter("the intersection of the two filters is too complex", text=text) from None
        return Filter(text, self.schema, boxes) if boxes else None

    def __str__(self) -> str:
        return self.text

    @cached_property
    def _conditions(self) -> tuple[tuple[Condition, ...], ...]:
        """For each box the constraints that say something."""
        whole = self.schema.whole
        return tuple(
            tuple(
                (attribute, constraint)
                for attribute, constraint, everything in zip(self.schema, box, whole, strict=True)
                if constraint != everything
            )
            for box in self.boxes
        )

    @cached_property
    def _constrained(self) -> tuple[Attribute, ...]:
        names = {attribute.name for conditions in self._conditions for attribute, _ in conditions}
        return tuple(attribute for attribute in self.schema if attribute.name in names)

    def _leaves_some_of(self, box: Box, algebra: Algebra) -> bool:
        """Whether some of a box lies in none of the filter's: take one after the other away from it."""
        near = [algebra.product(other) for other in self.boxes if _overlaps(other, box)]
        pieces = [(algebra.product(box), 0)]
        while pieces:
            piece, taken = pieces.pop()
            if taken == len(near):
                return True
            pieces += [(rest, taken + 1) for rest in algebra.minus(piece, near[taken])]
        return False

    def _check_schema(self, other: Filter) -> None:
        if self.schema != other.schema:
            raise BadInput("the filters are of different schemas, and only filters of one schema compare")


def _covers(large: Box, small: Box) -> bool:
    return all(one.covers(two) for one, two in zip(large, small, strict=True))  # type: ignore[arg-type]


def _overlaps(one: Box, two: Box) -> bool:
    return all(first.overlaps(second) for first, second in zip(one, two, strict=True))  # type: ignore[arg-type]


def _admitted(constraint: Constraint, column: NDArray[Any]) -> NDArray[np.bool_]:
    """Which values of a column a constraint admits: its `admits`, for many at once."""
    if isinstance(constraint, Interval):
        return np.asarray((column >= constraint.low) & (column <= constraint.high))
    if constraint.equals is not None:
        return np.asarray(column == constraint.equals, dtype=np.bool_)
    present = (string is not None and constraint.admits(string) for string in column)
    return np.fromiter(present, dtype=np.bool_, count=len(column))


def _bracketed(text: str) -> str:
    return f"({text}\n)" if "#" in text else f"({text})"  # a comment ends with its line
