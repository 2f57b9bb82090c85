"""Events that prove something: that a cover misses part of its filter, or that filters meet in a cell."""

from __future__ import annotations

from collections.abc import Sequence

from flowsieve.content.box import Box, Constraint, Interval, Text
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Attribute
from flowsieve.index.cover import touching
from flowsieve.index.dz import Dz
from flowsieve.index.dzset import WHOLE, DzSet
from flowsieve.index.inverse import Unfound, any_string, number_in, string_in
from flowsieve.index.plan import IndexPlan
from flowsieve.index.walk import Cell, cell_of, spans

Event = dict[str, object]  # by attribute; an Unfound stands for a string that cannot be named


def uncovered(plan: IndexPlan, wanted: Filter, cells: DzSet) -> Dz | None:
    """A cell that a set of dz misses and in which some event matches the filter; None: the set covers it."""
    short = cells.length <= plan.bits  # a longer dz covers no event
    gaps = WHOLE - DzSet.from_arrays(cells.hi[short], cells.lo[short], cells.length[short])
    for dz, touched in zip(gaps, plan.touches(wanted, gaps), strict=True):
        if touched and meet(plan, dz, [wanted]) is not None:
            return dz
    return None


def meet(plan: IndexPlan, dz: Dz, filters: Sequence[Filter]) -> Event | None:
    """An event in a cell that all filters match; None if there is none."""
    cell = cell_of(plan, dz)
    choices = [_boxes_in(plan, cell, wanted) for wanted in filters]
    stack: list[tuple[Box, int]] = [(plan.schema.whole, 0)]  # what the first so many filters share
    while stack:
        shared, met = stack.pop()
        if met < len(choices):
            both = (_intersection(shared, box) for box in reversed(choices[met]))
            stack += [(box, met + 1) for box in both if box is not None]
        elif (event := _event_in(plan, cell, shared)) is not None:
            return event
    return None


def _boxes_in(plan: IndexPlan, cell: Cell, wanted: Filter) -> list[Box]:
    return [
        box
        for box in wanted.boxes
        if touching(cell, spans(plan.axes, Filter(wanted.text, wanted.schema, (box,))))
    ]


def _event_in(plan: IndexPlan, cell: Cell, box: Box) -> Event | None:
    """An event in a cell and in a box, which may miss each other after all."""
    places = {axis.attribute.name: i for i, axis in enumerate(plan.axes)}
    event: Event = {}
    for attribute, constraint in zip(plan.schema, box, strict=True):
        point: int | float | str | Unfound | None
        if attribute.name in places:
            i = places[attribute.name]
            at = plan.axes[i], cell.first[i], cell.last[i]
            point = (
                number_in(*at, constraint) if isinstance(constraint, Interval) else string_in(*at, constraint)
            )
        else:
            point = constraint.low if isinstance(constraint, Interval) else any_string(constraint)
        if point is None:
            return None
        event[attribute.name] = _value(attribute, point)
    return event


def _value(attribute: Attribute, point: int | float | str | Unfound) -> object:
    return point if isinstance(point, Unfound) else attribute.value(point)


def _intersection(one: Box, two: Box) -> Box | None:
    out = []
    for a, b in zip(one, two, strict=True):
        both = _both(a, b)
        if both is None:
            return None
        out.append(both)
    return tuple(out)


def _both(a: Constraint, b: Constraint) -> Constraint | None:
    if isinstance(a, Interval) and isinstance(b, Interval):
        low, high = max(a.low, b.low), min(a.high, b.high)
        return Interval(low, high) if low <= high else None
    assert isinstance(a, Text) and isinstance(b, Text)
    if a.equals is not None:
        return a if b.admits(a.equals) else None
    if b.equals is not None:
        return b if a.admits(b.equals) else None
    low_string = max(a.low, b.low)
    high_string = min((text.high for text in (a, b) if text.high is not None), default=None)
    if high_string is not None and high_string <= low_string:
        return None
    return Text(none_of=a.none_of | b.none_of, low=low_string, high=high_string)
