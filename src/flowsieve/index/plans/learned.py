"""Grids that were learned from traffic: where each dimension is cut, and in which order bits halve the dimensions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from flowsieve.content.schema import Schema
from flowsieve.errors import BadPlan
from flowsieve.index.axes.cut_axis import AxisCuts, as_cuts, axis_of, bits_of, thinned
from flowsieve.index.axes.grid import Line
from flowsieve.index.dz import MAX_LENGTH
from flowsieve.index.plans.levels import GridPlan, round_robin
from flowsieve.index.plans.reading import (
    check_axes,
    check_bits,
    check_dimensions,
    cuts_of,
    indices_of,
    names_of,
    need,
    only,
)


class LearnedPlan(GridPlan):
    """A grid whose axes have cuts: 2^k - 1 of them make k bits. An axis of a string just has a number of bits."""

    cuts: tuple[AxisCuts, ...]

    def _check(self) -> tuple[int, ...]:
        """The bits of each axis, after a look at what they are made of."""
        check_axes(self.schema, self.dimensions, self.cuts)
        widths = tuple(map(bits_of, self.attributes, self.cuts))
        assert len(self.axes) == len(widths)
        check_bits(sum(widths))
        return widths

    @cached_property
    def axes(self) -> tuple[Line, ...]:
        return tuple(map(axis_of, self.attributes, self.cuts))


@dataclass(frozen=True)
class AdaptivePlan(LearnedPlan):
    """Adaptive spatial indexing: bits round robin over the dimensions, each between cuts that balance its load.

    >>> schema = Schema.parse({name: {"type": "int", "min": 0, "max": 99} for name in "AB"})
    >>> plan = AdaptivePlan.make(schema, {"A": [5, 9, 70], "B": [3]})
    >>> plan.encode({"A": 65, "B": 55})
    (Dz('110'),)
    """

    kind: ClassVar[str] = "adaptive"
    fields: ClassVar[tuple[str, ...]] = ("dimensions", "cuts")

    schema: Schema
    dimensions: tuple[str, ...]
    cuts: tuple[AxisCuts, ...]
    bits: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "bits", sum(self._check()))

    @classmethod
    def make(
        cls, schema: Schema, cuts: Mapping[str, Any], bits: int | None = None, room: int = MAX_LENGTH
    ) -> AdaptivePlan:
        """A plan for a header with room for so many bits, from the cuts (or bits) of each dimension, in order.

        Where there are more cuts than bits, those of the first halvings are taken.
        """
        names, rows = _named(schema, cuts)
        widths = [bits_of(schema[name], row) for name, row in zip(names, rows, strict=True)]
        wanted = min(check_bits(room if bits is None else bits, room), sum(widths))
        return cls(schema, names, _thinned(rows, round_robin(widths, wanted)))

    @classmethod
    def from_json(cls, data: Mapping[str, Any], schema: Schema, room: int) -> AdaptivePlan:
        """The plan that `to_json` wrote down; the caller has checked kind and schema."""
        only(data, cls.kind, cls.fields)
        names = names_of(need(data, cls.kind, "dimensions"))
        plan = cls(schema, names, cuts_of(schema, names, need(data, cls.kind, "cuts")))
        check_bits(plan.bits, room)
        return plan

    @cached_property
    def levels(self) -> tuple[int, ...]:
        return round_robin(list(map(bits_of, self.attributes, self.cuts)), self.bits)

    def shortened(self, bits: int) -> AdaptivePlan:
        return AdaptivePlan(self.schema, self.dimensions, _thinned(self.cuts, self.levels[:bits]))


@dataclass(frozen=True)
class LevelwisePlan(LearnedPlan):
    """Each bit halves the dimension that was best at that level; `order` has a dimension's number for each.

    >>> schema = Schema.parse({name: {"type": "int", "min": 0, "max": 99} for name in "AB"})
    >>> plan = LevelwisePlan.make(schema, {"A": [5, 9, 70], "B": [3]}, order=["B", "A", "A"])
    >>> plan.encode({"A": 65, "B": 2})
    (Dz('010'),)
    """

    kind: ClassVar[str] = "levelwise"
    fields: ClassVar[tuple[str, ...]] = ("dimensions", "cuts", "order")

    schema: Schema
    dimensions: tuple[str, ...]
    cuts: tuple[AxisCuts, ...]
    order: tuple[int, ...]
    bits: int = field(init=False)

    def __post_init__(self) -> None:
        for i, (name, width) in enumerate(zip(self.dimensions, self._check(), strict=True)):
            if self.order.count(i) != width:
                raise BadPlan(
                    f"{name} has {width} bits and is halved {self.order.count(i)} times in the order"
                )
        object.__setattr__(self, "bits", len(self.order))

    @classmethod
    def make(
        cls,
        schema: Schema,
        cuts: Mapping[str, Any],
        order: Iterable[str],
        bits: int | None = None,
        room: int = MAX_LENGTH,
    ) -> LevelwisePlan:
        """A plan from the cuts (or bits) of each dimension and the dimension that each level halves.

        Where there are more cuts than levels, those of the first halvings are taken.
        """
        names, rows = _named(schema, cuts)
        listed = list(order)[: check_bits(room if bits is None else bits, room)]
        for name in listed:
            if name not in names:
                raise BadPlan(f"{name!r} stands in the order, and only {', '.join(names)} have cuts")
        levels = tuple(map(names.index, listed))
        for i, (name, row) in enumerate(zip(names, rows, strict=True)):
            if levels.count(i) > (most := bits_of(schema[name], row)):
                raise BadPlan(
                    f"{name} has cuts for {most} halvings, and stands in the order {levels.count(i)} times"
                )
        return cls(schema, names, _thinned(rows, levels), levels)

    @classmethod
    def from_json(cls, data: Mapping[str, Any], schema: Schema, room: int) -> LevelwisePlan:
        """The plan that `to_json` wrote down; the caller has checked kind and schema."""
        only(data, cls.kind, cls.fields)
        names = names_of(need(data, cls.kind, "dimensions"))
        rows = cuts_of(schema, names, need(data, cls.kind, "cuts"))
        order = indices_of("order", need(data, cls.kind, "order"), 0, len(names) - 1)
        check_bits(len(order), room)
        return cls(schema, names, rows, order)

    @property
    def levels(self) -> tuple[int, ...]:
        return self.order

    def shortened(self, bits: int) -> LevelwisePlan:
        order = self.order[:bits]
        return LevelwisePlan(self.schema, self.dimensions, _thinned(self.cuts, order), order)


def _named(schema: Schema, cuts: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[AxisCuts, ...]]:
    names = tuple(cuts)
    check_dimensions(schema, names)
    return names, tuple(as_cuts(schema[name], row) for name, row in cuts.items())


def _thinned(cuts: Sequence[AxisCuts], levels: Sequence[int]) -> tuple[AxisCuts, ...]:
    """The cuts that are left where each dimension is halved as often as it stands in the levels."""
    return tuple(
        levels.count(i) if isinstance(row, int) else thinned(row, levels.count(i))
        for i, row in enumerate(cuts)
    )
