"""Checks of a plan's JSON: errors name what is wrong, and what would be right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flowsieve.content.schema import Schema, shown
from flowsieve.errors import BadPlan, nearest
from flowsieve.index.axes.cut_axis import AxisCuts, as_cuts
from flowsieve.index.dz import MAX_LENGTH


def check_dimensions(schema: Schema, names: tuple[str, ...]) -> None:
    if not names:
        raise BadPlan("an index has at least one dimension")
    for i, name in enumerate(names):
        if name not in schema:
            raise BadPlan(f"there is no attribute {name!r} to index{nearest(name, schema.names)}")
        if name in names[:i]:
            raise BadPlan(f"{name!r} stands twice among the dimensions")


def check_axes(schema: Schema, names: tuple[str, ...], cuts: Sequence[AxisCuts]) -> None:
    check_dimensions(schema, names)
    if len(cuts) != len(names):
        raise BadPlan(f"there are cuts for {len(cuts)} dimensions, and there are {len(names)}")


def check_bits(bits: object, room: int = MAX_LENGTH) -> int:
    if isinstance(bits, bool) or not isinstance(bits, int) or bits < 0:
        raise BadPlan(f"bits = {bits!r}; it is a whole number from 0 to {room}")
    if bits > room:
        raise BadPlan(f"bits = {bits} is more than the {room} that the header has room for")
    return bits


def only(data: Mapping[str, Any], kind: str, keys: Sequence[str]) -> None:
    """Reject what a plan of this kind does not have."""
    for key in data:
        if key not in ("kind", "schema", *keys):
            raise BadPlan(f"a {kind} plan has no {key!r}, only kind, schema, {', '.join(keys)}")


def need(data: Mapping[str, Any], kind: str, key: str) -> Any:
    if key not in data:
        raise BadPlan(f"the {key} of this {kind} plan are missing")
    return data[key]


def names_of(names: object) -> tuple[str, ...]:
    """A list of attribute names."""
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise BadPlan(f"dimensions = {shown(names)}; it is a list of attribute names")
    return tuple(names)


def cuts_of(schema: Schema, names: tuple[str, ...], rows: object) -> tuple[AxisCuts, ...]:
    """For each dimension the cuts of its axis, or the bits of an axis with cells of one width."""
    check_dimensions(schema, names)
    if not isinstance(rows, list | tuple) or len(rows) != len(names):
        raise BadPlan(f"cuts = {shown(rows)}; it is a list with an entry for each of {', '.join(names)}")
    return tuple(as_cuts(schema[name], row) for name, row in zip(names, rows, strict=True))


def indices_of(key: str, numbers: object, least: int, most: int) -> tuple[int, ...]:
    """A list of whole numbers from `least` to `most`."""
    right = f"it is a list of whole numbers from {least} to {most}"
    if not isinstance(numbers, list | tuple):
        raise BadPlan(f"{key} = {shown(numbers)}; {right}")
    for i, number in enumerate(numbers):
        if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= most:
            raise BadPlan(f"{key} has {shown(number)} at position {i}; {right}")
    return tuple(numbers)
