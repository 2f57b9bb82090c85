"""The regular index: the dz's bits go round robin over the dimensions, each bit halves one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from flowsieve.content.schema import Schema
from flowsieve.errors import BadPlan
from flowsieve.index.axes.grid import Axis
from flowsieve.index.dz import MAX_LENGTH
from flowsieve.index.plans.levels import GridPlan, round_robin
from flowsieve.index.plans.reading import check_bits, check_dimensions, names_of, only


@dataclass(frozen=True)
class RegularPlan(GridPlan):
    """Bits round robin over the dimensions in order, passing over one that has all its bits.

    >>> from flowsieve.content.filter import Filter
    >>> schema = Schema.parse({name: {"type": "int", "min": 0, "max": 99} for name in "AB"})
    >>> plan = RegularPlan.make(schema, bits=6)
    >>> plan.encode({"A": 65, "B": 55})
    (Dz('110010'),)
    >>> plan.cover(Filter.parse("A < 50 and B >= 50", schema), budget=0)
    DzSet('01')
    """

    kind: ClassVar[str] = "regular"
    fields: ClassVar[tuple[str, ...]] = ("bits", "dimensions")

    schema: Schema
    dimensions: tuple[str, ...]
    bits: int

    def __post_init__(self) -> None:
        check_dimensions(self.schema, self.dimensions)
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
        check_bits(wanted, room)
        names = schema.names if dimensions is None else names_of(dimensions)
        needed = sum(schema[name].resolution for name in set(names) if name in schema)
        return cls(schema, names, min(wanted, needed))

    @classmethod
    def from_json(cls, data: Mapping[str, Any], schema: Schema, room: int) -> RegularPlan:
        """The plan that `to_json` wrote down; the caller has checked kind and schema."""
        only(data, cls.kind, cls.fields)
        return cls.make(schema, data.get("bits"), data.get("dimensions"), room)

    @cached_property
    def levels(self) -> tuple[int, ...]:
        return round_robin([attribute.resolution for attribute in self.attributes], self.bits)

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        return tuple(Axis(attribute, self.levels.count(i)) for i, attribute in enumerate(self.attributes))

    def shortened(self, bits: int) -> RegularPlan:
        return RegularPlan(self.schema, self.dimensions, bits)

    @cached_property
    def _needed(self) -> int:
        return sum(attribute.resolution for attribute in self.attributes)
