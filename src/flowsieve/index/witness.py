"""Events that prove something: that a cover misses part of its filter, or that filters meet in a cell."""

from __future__ import annotations

from collections.abc import Sequence

from flowsieve.content.box import Box, Interval
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Attribute, Schema
from flowsieve.index.axes.inverse import Unfound, any_string, number_in, string_in
from flowsieve.index.covers.walk import cell_of
from flowsieve.index.dz import Dz
from flowsieve.index.dzset import WHOLE, DzSet
from flowsieve.index.extent import Extent, intersection, remainders
from flowsieve.index.plan import IndexPlan

EventValues = dict[str, object]  # by attribute; an Unfound stands for a string that cannot be named


def uncovered(plan: IndexPlan, wanted: Filter, cells: DzSet) -> Dz | None:
    """A cell that a set of dz misses and in which some event matches the filter; None: the set covers it."""
    short = cells.length <= plan.bits  # a longer dz covers no event
    gaps = WHOLE - DzSet.from_arrays(cells.hi[short], cells.lo[short], cells.length[short])
    for dz, touched in zip(gaps, plan.touches(wanted, gaps), strict=True):
        if touched and meet(plan, dz, [wanted]) is not None:
            return dz
    return None


def meet(plan: IndexPlan, dz: Dz, filters: Sequence[Filter]) -> EventValues | None:
    """An event in a cell that all filters match; None if there is none."""
    events = (_meet_in(plan.schema, extent, filters) for extent in plan.extents(cell_of(plan, dz)))
    return next((event for event in events if event is not None), None)


def meet_anywhere(schema: Schema, filters: Sequence[Filter]) -> EventValues | None:
    """An event that all filters match; None if there is none."""
    return _meet_in(schema, Extent((), (), (), schema.whole), filters)


def _meet_in(schema: Schema, extent: Extent, filters: Sequence[Filter]) -> EventValues | None:
    choices = [_boxes_in(schema, extent, wanted) for wanted in filters]
    stack: list[tuple[Box, int]] = [(extent.within, 0)]  # what the first so many filters share
    while stack:
        shared, met = stack.pop()
        if met < len(choices):
            both = (intersection(shared, box) for box in reversed(choices[met]))
            stack += [(box, met + 1) for box in both if box is not None]
        elif (event := _event_in(schema, extent, shared)) is not None:
            return event
    return None


def _boxes_in(schema: Schema, extent: Extent, wanted: Filter) -> list[Box]:
    """What the boxes of a filter share with an extent, if they touch its places."""
    shared = (intersection(extent.within, box) for box in wanted.boxes)
    return [box for box in shared if box is not None and _touches(schema, extent, box)]


def _touches(schema: Schema, extent: Extent, box: Box) -> bool:
    for axis, first, last in zip(extent.axes, extent.first, extent.last, strict=True):
        span = axis.span(box[schema.positions[axis.attribute.name]])
        if span.first > last or span.last < first:
            return False
    return True


def _event_in(schema: Schema, extent: Extent, box: Box) -> EventValues | None:
    """An event in an extent and in a box, which may miss each other after all."""
    for piece in remainders(schema, box, extent.without):
        event = _event_at(schema, extent, piece)
        if event is not None and not any(_lies_in(schema, event, taken) for taken in extent.without):
            return event
    return None


def _event_at(schema: Schema, extent: Extent, box: Box) -> EventValues | None:
    """An event at the places of an extent and in a box."""
    places = {axis.attribute.name: i for i, axis in enumerate(extent.axes)}
    event: EventValues = {}
    for attribute, constraint in zip(schema, box, strict=True):
        point: int | float | str | Unfound | None
        if attribute.name in places:
            i = places[attribute.name]
            at = extent.axes[i], extent.first[i], extent.last[i]
            point = (
                number_in(*at, constraint) if isinstance(constraint, Interval) else string_in(*at, constraint)
            )
        else:
            point = constraint.low if isinstance(constraint, Interval) else any_string(constraint)
        if point is None:
            return None
        event[attribute.name] = _value(attribute, point)
    return event


def _lies_in(schema: Schema, event: EventValues, box: Box) -> bool:
    return all(
        constraint.admits(attribute.number(event[attribute.name]))
        for attribute, constraint in zip(schema, box, strict=True)
        if isinstance(constraint, Interval)
    )


def _value(attribute: Attribute, point: int | float | str | Unfound) -> object:
    return point if isinstance(point, Unfound) else attribute.value(point)
