"""Filters in one form, by which those that say the same in the same boxes are known as one."""

from __future__ import annotations

from flowsieve.content.box import Box, Constraint, Interval
from flowsieve.content.filter import Filter


def canonical(filter: Filter) -> str:
    """A text that is the same for filters with the same boxes, however and in whatever order they were written.

    >>> from flowsieve.content.schema import Schema
    >>> schema = Schema.parse({"price": {"type": "int", "min": 0, "max": 9}})
    >>> canonical(Filter.parse("price < 3", schema)) == canonical(Filter.parse("not 3 <= price", schema))
    True
    """
    return "|".join(sorted(map(_box, filter.boxes)))


def _box(box: Box) -> str:
    return "&".join(map(_constraint, box))


def _constraint(each: Constraint) -> str:
    if isinstance(each, Interval):
        return f"{each.low!r}..{each.high!r}"
    if each.equals is not None:
        return f"={each.equals!r}"
    return f"{each.low!r}..{each.high!r} not {sorted(each.none_of)!r}"
