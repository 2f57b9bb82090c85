"""The shortest way from a filter to its meaning, for what most are: whole numbers between bounds, joined by and.

It says nothing that `parser` would not say, and leaves to it whatever is of another kind, or wrong.
"""

from __future__ import annotations

import ast

from flowsieve.content.box import Box, Interval
from flowsieve.content.schema import Schema

# What is left of a line below and above a constant: how far its last and first points are from it; None: all of it.
BOUNDS: dict[type[ast.cmpop], tuple[int | None, int | None]] = {
    ast.Lt: (None, -1),
    ast.LtE: (None, 0),
    ast.Gt: (1, None),
    ast.GtE: (0, None),
    ast.Eq: (0, 0),
}
MIRRORED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt,
    ast.LtE: ast.GtE,
    ast.Gt: ast.Lt,
    ast.GtE: ast.LtE,
}


def one_box(expression: ast.expr, schema: Schema) -> Box | None:
    """The box of a filter that is a range of integers for each of some attributes; None where it is anything else."""
    parts = [expression]
    if type(expression) is ast.BoolOp and type(expression.op) is ast.And:
        parts = expression.values
    ranges: dict[int, tuple[int, int]] = {}
    for part in parts:
        if type(part) is not ast.Compare:
            return None
        left = part.left
        for operator, right in zip(part.ops, part.comparators, strict=True):
            kind, name, constant = type(operator), left, right
            if type(name) is not ast.Name:
                kind, name, constant = MIRRORED.get(kind, kind), right, left
            if type(name) is not ast.Name or type(constant) is not ast.Constant or kind not in BOUNDS:
                return None
            position, value = schema.positions.get(name.id), constant.value
            if position is None or type(value) is not int or schema.attributes[position].kind != "int":
                return None
            attribute, (above, below) = schema.attributes[position], BOUNDS[kind]
            low, high = ranges.get(position) or (int(attribute.min), int(attribute.max))
            if above is not None:
                low = max(low, value + above)
            if below is not None:
                high = min(high, value + below)
            ranges[position] = low, high
            left = right
    if any(low > high for low, high in ranges.values()):
        return None  # it matches nothing, and what to say of that is not known here
    box = list(schema.whole)
    for position, (low, high) in ranges.items():
        box[position] = Interval(low, high)
    return tuple(box)
