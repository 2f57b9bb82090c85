"""Random schemas, plans of every kind, filters and events, for the laws."""

from __future__ import annotations

import string
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from flowsieve.content.box import Constraint, Interval, Text
from flowsieve.content.cuts import neighbour
from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Attribute, Schema
from flowsieve.index.axes.cut_axis import AxisCuts, axis_of
from flowsieve.index.plan import KINDS, IndexPlan
from flowsieve.index.plans.kd import LEAF, KdPlan
from flowsieve.index.plans.learned import AdaptivePlan, LevelwisePlan
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.index.plans.selective import SelectivePlan

WORDS = ["", "a", "ab", "abc", "b", "ba", "xyz", "abcdefgh", "abcdefghi", "ü", "zz top"]
EVERY_TYPE = "int float enum bool string"
EVERY_KIND = " ".join(KINDS)

floats = st.floats(-1e6, 1e6, allow_nan=False) | st.integers(-8, 8).map(lambda n: n / 8)


@st.composite
def ranges(draw: st.DrawFn, kind: str) -> dict[str, Any]:
    if kind == "int":
        low = draw(st.integers(-20, 20) | st.integers(-(2**53), 2**53 - 300))
        return {"min": low, "max": low + draw(st.integers(0, 20) | st.integers(0, 250))}
    low, high = sorted(draw(st.lists(floats, min_size=2, max_size=2, unique=True)))
    return {"min": low, "max": high}


@st.composite
def attributes(draw: st.DrawFn, name: str = "x", types: str = EVERY_TYPE) -> Attribute:
    kind = draw(st.sampled_from(types.split()))
    table: dict[str, Any] = {"type": kind}
    if kind in ("int", "float"):
        table |= draw(ranges(kind))
    elif kind == "enum":
        table["values"] = list(string.ascii_lowercase[: draw(st.integers(1, 7))])
    elif kind == "string":
        table["prefix"] = draw(st.booleans())
    return Attribute.parse(name, table)


def values(attribute: Attribute) -> st.SearchStrategy[Any]:
    """Values of an attribute, often on the edges of cells."""
    if attribute.kind == "string":
        return st.sampled_from(WORDS) | st.text(max_size=10)
    if attribute.kind != "float":
        return st.integers(int(attribute.min), int(attribute.max)).map(attribute.value)
    low, high = float(attribute.min), float(attribute.max)

    def near_edge(eighths: int, step: int) -> float:
        edge = low + (high - low) * eighths / 8
        return min(max(edge if not step else float(np.nextafter(edge, step * np.inf)), low), high)

    return st.floats(low, high) | st.builds(near_edge, st.integers(0, 8), st.integers(-1, 1))


@st.composite
def constraints(draw: st.DrawFn, attribute: Attribute) -> Constraint:
    if draw(st.integers(0, 3)) == 0:
        return attribute.whole
    if attribute.kind != "string":
        return Interval(*sorted(attribute.number(draw(values(attribute))) for _ in range(2)))
    way = draw(st.integers(0, 2))
    if way == 0:
        return Text(equals=draw(st.sampled_from(WORDS)))
    if way == 1 or not attribute.prefix:
        return Text(none_of=draw(st.frozensets(st.sampled_from(WORDS), min_size=1, max_size=3)))
    low, high = sorted(draw(st.lists(st.sampled_from(WORDS), min_size=2, max_size=2, unique=True)))
    return Text(low=low, high=high + draw(st.sampled_from(["", "\0"])))


@st.composite
def cuts(draw: st.DrawFn, attribute: Attribute, number: int) -> tuple[int | float, ...]:
    """So many cuts: some of them equal, some at the ends."""
    end = neighbour(attribute, attribute.max, +1)
    one = values(attribute).map(attribute.number) | st.just(attribute.min) | st.just(end)
    return tuple(sorted(draw(st.lists(one, min_size=number, max_size=number))))


@st.composite
def halvings(draw: st.DrawFn, attribute: Attribute, most: int) -> AxisCuts:
    """An axis that is halved `most` times or less."""
    if attribute.kind == "string" or draw(st.integers(0, 3)) == 0:
        return draw(st.integers(0, min(most, attribute.resolution)))
    return draw(cuts(attribute, (1 << draw(st.integers(0, min(most, 4)))) - 1))


@st.composite
def grids(draw: st.DrawFn, schema: Schema, names: list[str], bits: int, kind: str) -> IndexPlan:
    rows: dict[str, AxisCuts] = {}
    left = bits
    for name in names:
        rows[name] = row = draw(halvings(schema[name], left))
        left -= row if isinstance(row, int) else len(row).bit_length()
    if kind == AdaptivePlan.kind:
        return AdaptivePlan.make(schema, rows)
    order = [
        name
        for name, row in rows.items()
        for _ in range(row if isinstance(row, int) else len(row).bit_length())
    ]
    return LevelwisePlan.make(schema, rows, draw(st.permutations(order)))


@st.composite
def kd_plans(draw: st.DrawFn, schema: Schema, names: list[str], bits: int) -> KdPlan:
    rows: list[AxisCuts] = []
    for name in names:
        attribute = schema[name]
        if attribute.kind == "string" or draw(st.integers(0, 3)) == 0:
            rows.append(draw(st.integers(0, min(8, attribute.resolution))))
        else:
            rows.append(draw(cuts(attribute, draw(st.integers(0, 12)))))
    corner = [(0, axis_of(schema[name], row).cells - 1) for name, row in zip(names, rows, strict=True)]
    axis: list[int] = []
    place: list[int] = []
    stack = [(corner, 0)]
    while stack:
        cell, depth = stack.pop()
        free = [i for i, (first, last) in enumerate(cell) if first < last]
        if not free or depth == 5 or draw(st.integers(0, 3)) == 0:
            axis.append(LEAF)
            place.append(0)
            continue
        i = draw(st.sampled_from(free))
        first, last = cell[i]
        at = draw(st.integers(first + 1, last))
        axis.append(i)
        place.append(at)
        stack.append(([*cell[:i], (at, last), *cell[i + 1 :]], depth + 1))
        stack.append(([*cell[:i], (first, at - 1), *cell[i + 1 :]], depth + 1))
    return KdPlan(schema, tuple(names), tuple(rows), tuple(axis), tuple(place), bits)


@st.composite
def selective_plans(
    draw: st.DrawFn, schema: Schema, names: list[str], bits: int, rest: bool
) -> SelectivePlan:
    parts = []
    most = 4 if bits >= 3 else (1 << bits) - 1
    for _ in range(draw(st.integers(0 if rest else 1, max(most, 0 if rest else 1)))):
        bounds = {}
        for name in names:
            constraint = draw(constraints(schema[name]))
            if isinstance(constraint, Interval):
                bounds[name] = (constraint.low, constraint.high)
        parts.append(bounds)
    return SelectivePlan.make(schema, parts, bits, names, rest)


@st.composite
def plans(draw: st.DrawFn, schema: Schema, most_bits: int = 112, kinds: str = EVERY_KIND) -> IndexPlan:
    names = draw(st.lists(st.sampled_from(schema.names), min_size=1, unique=True))
    bits, kind = draw(st.integers(0, most_bits)), draw(st.sampled_from(kinds.split()))
    if kind == RegularPlan.kind:
        return RegularPlan.make(schema, bits, names)
    if kind == KdPlan.kind:
        return draw(kd_plans(schema, names, bits))
    if kind == SelectivePlan.kind:
        return draw(selective_plans(schema, names, bits, rest=True))
    return draw(grids(schema, names, bits, kind))


@dataclass(frozen=True)
class Case:
    plan: Any  # an IndexPlan, with what only some kinds have
    wanted: Filter
    events: list[dict[str, object]]

    @property
    def batch(self) -> EventBatch:
        return EventBatch.from_events(self.plan.schema, "h", self.events)


@st.composite
def cases(
    draw: st.DrawFn,
    most_bits: int = 112,
    most_boxes: int = 6,
    types: str = EVERY_TYPE,
    kinds: str = EVERY_KIND,
) -> Case:
    schema = Schema(tuple(draw(attributes(f"a{i}", types)) for i in range(draw(st.integers(1, 4)))))
    plan = draw(plans(schema, most_bits, kinds))
    wanted = draw(filters(schema, most_boxes))
    return Case(plan, wanted, draw(st.lists(events(schema), min_size=1, max_size=8)))


@st.composite
def filters(draw: st.DrawFn, schema: Schema, most_boxes: int = 6) -> Filter:
    box = st.tuples(*(constraints(attribute) for attribute in schema))
    return Filter("drawn", schema, tuple(draw(st.lists(box, min_size=1, max_size=most_boxes))))


def events(schema: Schema) -> st.SearchStrategy[dict[str, object]]:
    return st.fixed_dictionaries({attribute.name: values(attribute) for attribute in schema})
