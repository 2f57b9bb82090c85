"""What holds for every plan, filter, budget and sample; above all: no event that a filter matches is lost."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from plans import (
    EVERY_KIND,
    Case,
    attributes,
    cases,
    constraints,
    cuts,
    events,
    filters,
    plans,
    selective_plans,
    values,
)

from flowsieve.content.box import Interval
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Attribute, Schema
from flowsieve.errors import BadFilter, Refused
from flowsieve.index.axes.cut_axis import CutAxis
from flowsieve.index.axes.grid import Axis, Line
from flowsieve.index.axes.inverse import Unfound, number_in, string_in
from flowsieve.index.covers import cover, refine
from flowsieve.index.covers.walk import Cell, cell_of, root, spans
from flowsieve.index.dz import Dz
from flowsieve.index.dzset import DzSet
from flowsieve.index.extent import remainders
from flowsieve.index.plan import plan_from_json
from flowsieve.index.plans.selective import SelectivePlan
from flowsieve.index.sample import EventSample
from flowsieve.index.witness import meet, uncovered

kinds = pytest.mark.parametrize("kind", EVERY_KIND.split())
fewer = settings(max_examples=settings.default.max_examples // 2)  # for laws that are tried with every kind
budgets = st.integers(1, 40)


@kinds
@given(st.data(), budgets)
def test_an_event_that_a_filter_matches_is_covered(kind: str, data: st.DataObject, budget: int) -> None:
    case = data.draw(cases(kinds=kind))
    sample = EventSample.of(case.plan, case.batch)
    covers = [case.plan.cover(case.wanted, budget), case.plan.cover(case.wanted, budget, sample)]
    if case.plan.count_cover(case.wanted) <= cover.MOST_LISTED:
        covers.append(case.plan.cover(case.wanted, 0))
    for event in case.events:
        if case.wanted.matches(event):
            cells = case.plan.encode(event)
            assert cells
            assert all(some.covers(dz) for some in covers for dz in cells)


@given(cases(most_bits=9, types="int float enum bool", kinds="regular"))
def test_the_exact_cover_is_every_cell_that_is_touched_and_no_other_with_a_value(case: Case) -> None:
    plan = case.plan
    exact = plan.cover(case.wanted, 0)

    def cell_range(axis: Axis, interval: Interval) -> range:
        return range(place_by_fractions(axis, interval.low), place_by_fractions(axis, interval.high) + 1)

    positions = plan.schema.positions
    touched = {
        place
        for box in case.wanted.boxes
        for place in product(*(cell_range(axis, box[positions[axis.attribute.name]]) for axis in plan.axes))  # type: ignore[arg-type]
    }
    for number in range(2**plan.bits):
        dz = Dz(number, plan.bits)
        places = cell_of(plan, dz).first
        if meet(plan, dz, []) is not None:  # some event lies in the cell
            assert exact.covers(dz) == (places in touched)


def place_by_fractions(axis: Axis, number: float) -> int:
    """In the design's words: floor((v-min)/(max-min+1)·2^k), and for floats floor((v-min)/(max-min)·2^k)."""
    attribute = axis.attribute
    width = Fraction(attribute.max) - Fraction(attribute.min) + (attribute.kind != "float")
    place = (Fraction(number) - Fraction(attribute.min)) * 2**axis.bits // width
    return min(int(place), 2**axis.bits - 1)


@kinds
@fewer
@given(st.data())
def test_the_exact_cover_is_where_matching_events_are(kind: str, data: st.DataObject) -> None:
    tables = data.draw(st.lists(st.sampled_from(["int", "bool", "enum"]), min_size=1, max_size=3))
    schema = Schema(
        tuple(
            Attribute.parse(f"a{i}", {"type": "int", "min": -2, "max": 3})
            if type == "int"
            else data.draw(attributes(f"a{i}", type))
            for i, type in enumerate(tables)
        )
    )
    plan: Any = data.draw(plans(schema, most_bits=10, kinds=kind))
    wanted = data.draw(filters(schema, most_boxes=3))
    exact = plan.cover(wanted, 0)
    everything = [
        {a.name: a.value(point) for a, point in zip(schema, points, strict=True)}
        for points in product(*(range(int(a.min), int(a.max) + 1) for a in schema))
    ]
    cells = [(event, dz) for event in everything for dz in plan.encode(event)]
    matching = {dz for event, dz in cells if wanted.matches(event)}
    indexed = set(plan.dimensions)
    if indexed < set(schema.names):  # the others are wanted whole
        assert all(exact.covers(dz) for dz in matching)
        return
    for _, dz in cells:
        outside_all_parts = kind == "selective" and plan.parts[-1].id.covers(dz)
        assert exact.covers(dz) == (dz in matching) or (outside_all_parts and exact.covers(dz))


@kinds
@fewer
@given(st.data())
def test_a_dz_is_the_cell_that_its_event_lies_in(kind: str, data: st.DataObject) -> None:
    case = data.draw(cases(kinds=kind))
    plan, batch = case.plan, case.batch
    column, places = plan.encode_batch(batch), plan.places(batch)
    assert len(places) == len(column.rows)
    found: list[list[Dz]] = [[] for _ in case.events]
    for entry, row in enumerate(column.rows.tolist()):
        found[row].append(column.dz(entry))
        cell, point = root(plan), places[entry].tolist()
        while halves := plan.split(cell):
            inside = [
                all(f <= at <= last for f, at, last in zip(half.first, point, half.last, strict=True))
                for half in halves
            ]
            assert inside.count(True) == 1
            cell = halves[inside.index(True)]
        assert cell.dz == column.dz(entry)
        assert cell_of(plan, cell.dz) == cell
    assert [tuple(cells) for cells in found] == [plan.encode(event) for event in case.events]
    assert all(dz.length == plan.bits for cells in found for dz in cells)


@kinds
@fewer
@given(st.data())
def test_a_plan_comes_back_from_json(kind: str, data: st.DataObject) -> None:
    plan = data.draw(cases(kinds=kind)).plan
    again = plan_from_json(json.loads(json.dumps(plan.to_json())), plan.schema)
    assert again == plan
    assert again.to_json() == plan.to_json()


@given(cases(kinds="regular"))
def test_a_dz_follows_its_event_down_the_halves(case: Case) -> None:
    column = case.plan.encode_batch(case.batch)
    for row, event in enumerate(case.events):
        cell = root(case.plan)
        while halves := case.plan.split(cell):
            i = case.plan.levels[cell.dz.length]
            axis = case.plan.axes[i]
            point = axis.attribute.point(event[axis.attribute.name])
            place = axis.place(point) if isinstance(point, str) else place_by_fractions(axis, point)
            cell = halves[place >= halves[1].first[i]]
        assert case.plan.encode(event) == (cell.dz,) == (column.dz(row),)
    assert column.rows.tolist() == list(range(len(case.events)))


@st.composite
def axes(draw: st.DrawFn, attribute: Attribute, most_bits: int) -> Line:
    if attribute.kind == "string" or draw(st.booleans()):
        return Axis(attribute, draw(st.integers(0, most_bits)))
    return CutAxis(attribute, draw(cuts(attribute, draw(st.integers(0, 20)))))


@given(st.data())
def test_a_value_lies_behind_as_many_cuts_as_are_not_above_it(data: st.DataObject) -> None:
    attribute = data.draw(attributes(types="int float enum bool"))
    axis = CutAxis(attribute, data.draw(cuts(attribute, data.draw(st.integers(0, 20)))))
    point = attribute.number(data.draw(values(attribute)))
    assert axis.place(point) == sum(cut <= point for cut in axis.cuts)


@given(st.data())
def test_a_column_has_the_places_of_its_values(data: st.DataObject) -> None:
    attribute = data.draw(attributes())
    axis = data.draw(axes(attribute, attribute.resolution))
    points = [attribute.point(value) for value in data.draw(st.lists(values(attribute), max_size=30))]
    column = np.array(points, object if attribute.kind == "string" else float)
    assert axis.places(column).tolist() == [axis.place(point) for point in points]


@given(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(0, 52),
    st.lists(st.floats(0, 1), max_size=10),
)
def test_floats_of_any_range_have_exact_places(a: float, b: float, bits: int, shares: list[float]) -> None:
    low, high = min(a, b), max(a, b)
    assume(low < high)
    axis = Axis(Attribute("x", "float", low, high), bits)
    points = [min(max(low * (1 - share) + high * share, low), high) for share in shares] + [low, high]
    assert axis.places(np.array(points)).tolist() == [place_by_fractions(axis, point) for point in points]
    assert [axis.place(point) for point in points] == [place_by_fractions(axis, point) for point in points]


@given(st.data())
def test_a_value_admitted_lies_in_the_span_of_its_constraint(data: st.DataObject) -> None:
    attribute = data.draw(attributes())
    axis = data.draw(axes(attribute, attribute.resolution))
    constraint = data.draw(constraints(attribute))
    span = axis.span(constraint)
    assert 0 <= span.below <= span.first <= span.last <= span.above < axis.cells
    for value in data.draw(st.lists(values(attribute), max_size=30)):
        point = attribute.point(value)
        if constraint.admits(point):  # type: ignore[arg-type]
            assert span.first <= axis.place(point) <= span.last
        elif attribute.kind != "string":
            place = axis.place(point)
            assert not (span.below <= place < span.first or span.last < place <= span.above)


@given(st.data())
def test_a_value_found_at_a_place_lies_there_and_none_is_overlooked(data: st.DataObject) -> None:
    attribute = data.draw(attributes())
    axis = data.draw(axes(attribute, min(attribute.resolution, 60)))
    constraint = data.draw(constraints(attribute))
    first, last = sorted(data.draw(st.integers(0, axis.cells - 1)) for _ in range(2))
    if isinstance(constraint, Interval):
        found: Any = number_in(axis, first, last, constraint)
    else:
        found = string_in(axis, first, last, constraint)
    if found is None:
        for value in data.draw(st.lists(values(attribute), max_size=30)):
            point = attribute.point(value)
            assert not (constraint.admits(point) and first <= axis.place(point) <= last)  # type: ignore[arg-type]
    elif not isinstance(found, Unfound):
        assert constraint.admits(found)
        assert first <= axis.place(found) <= last


@kinds
@fewer
@given(st.data(), budgets)
def test_compiled_covers_are_their_plain_twins(kind: str, data: st.DataObject, budget: int) -> None:
    case = data.draw(cases(most_bits=12, kinds=kind))
    plan, boxes = case.plan, case.plan.boxes(case.wanted)
    exact = plan.cover(case.wanted, 0)
    assert exact == cover.exact(plan, boxes)
    assert plan.count_cover(case.wanted) == cover.count(plan, boxes) == len(exact)
    by_volume = refine.refine(plan, boxes, budget, refine.volume_weight(plan), refine.PATIENCE)
    assert plan.cover(case.wanted, budget) == by_volume
    sample = EventSample.of(plan, case.batch)
    by_traffic = refine.refine(plan, boxes, budget, sample.weight(plan, boxes), refine.PATIENCE_WITH_SAMPLE)
    assert plan.cover(case.wanted, budget, sample) == by_traffic
    price = data.draw(st.sampled_from((1e-4, 1e-2, 0.1)))
    free = data.draw(st.integers(0, budget))
    at_a_price = refine.refine(
        plan, boxes, budget, sample.weight(plan, boxes), refine.PATIENCE_WITH_SAMPLE, price, free
    )
    assert plan.cover(case.wanted, budget, sample, price, free) == at_a_price
    assert plan.touches(case.wanted, exact).tolist() == cover.touches(plan, boxes, exact)


@kinds
@fewer
@given(st.data(), budgets)
def test_long_covers_are_their_plain_twins(kind: str, data: st.DataObject, budget: int) -> None:
    case = data.draw(cases(kinds=kind))
    plan, boxes = case.plan, case.plan.boxes(case.wanted)
    assert plan.cover(case.wanted, budget) == refine.refine(
        plan, boxes, budget, refine.volume_weight(plan), refine.PATIENCE
    )


@kinds
@fewer
@given(st.data(), budgets)
def test_a_cover_keeps_its_budget_and_lies_between_the_exact_one_and_one_cell(
    kind: str, data: st.DataObject, budget: int
) -> None:
    case = data.draw(cases(most_bits=40, kinds=kind))
    plan = case.plan
    sample = EventSample.of(plan, case.batch)
    one = plan.cover(case.wanted, 1)
    assert len(one) == 1
    for some in (plan.cover(case.wanted, budget), plan.cover(case.wanted, budget, sample)):
        assert 1 <= len(some) <= budget
        assert one.covers_set(some)
        if plan.count_cover(case.wanted) <= 10_000:
            assert some.covers_set(plan.cover(case.wanted, 0))


@kinds
@fewer
@given(st.data(), budgets)
def test_covers_at_a_higher_price_contain_those_at_a_lower_one(
    kind: str, data: st.DataObject, budget: int
) -> None:
    case = data.draw(cases(most_bits=40, kinds=kind))
    sample = EventSample.of(case.plan, case.batch) if data.draw(st.booleans()) else None
    prices = sorted(data.draw(st.lists(st.floats(0.0, 0.2), min_size=2, max_size=4)), reverse=True)
    free = data.draw(st.integers(0, budget))
    nested = [case.plan.cover(case.wanted, budget, sample, price, free) for price in prices]
    for dear, cheap in pairwise(nested):
        assert dear.covers_set(cheap)
    assert nested[-1].covers_set(case.plan.cover(case.wanted, budget, sample))


@kinds
@fewer
@given(st.data())
def test_a_budget_that_suffices_gives_the_exact_cover(kind: str, data: st.DataObject) -> None:
    case = data.draw(cases(most_bits=14, kinds=kind))
    exact = case.plan.cover(case.wanted, 0)
    assume(len(exact) <= 500)
    assert case.plan.cover(case.wanted, max(1, len(exact))) == exact


@given(cases(most_boxes=1, kinds="regular adaptive levelwise"))
def test_a_cover_is_refused_exactly_when_it_is_too_long(case: Case) -> None:
    long = case.plan.count_cover(case.wanted) > cover.MOST_LISTED
    try:
        assert len(case.plan.cover(case.wanted, 0)) == case.plan.count_cover(case.wanted)
    except BadFilter:
        assert long
    else:
        assert not long


@kinds
@fewer
@given(st.data(), budgets)
def test_a_hole_in_a_cover_is_found(kind: str, data: st.DataObject, budget: int) -> None:
    case = data.draw(cases(most_bits=30, kinds=kind))
    plan, wanted = case.plan, case.wanted
    some = plan.cover(wanted, budget)
    assert uncovered(plan, wanted, some) is None
    dz = data.draw(st.sampled_from(list(some)))
    missing = uncovered(plan, wanted, some - DzSet([dz]))
    assert (missing is None) == (meet(plan, dz, [wanted]) is None)


@kinds
@fewer
@given(st.data(), st.integers(0, 24))
def test_an_event_where_filters_meet_lies_there_and_matches_them_all(
    kind: str, data: st.DataObject, length: int
) -> None:
    case = data.draw(cases(most_bits=24, kinds=kind))
    plan = case.plan
    inside = plan.encode(case.events[0])[-1]
    dz = Dz(inside.bits >> max(0, plan.bits - length), min(length, plan.bits))
    others = [Filter("first box", plan.schema, case.wanted.boxes[:1]), case.wanted]
    event = meet(plan, dz, others)
    if event is None:
        for known in case.events:
            assert not (any(map(dz.covers, plan.encode(known))) and all(f.matches(known) for f in others))
    elif not any(isinstance(value, Unfound) for value in event.values()):
        assert any(map(dz.covers, plan.encode(event)))
        assert all(wanted.matches(event) for wanted in others)


@given(st.data(), budgets)
def test_without_a_rest_a_filter_is_served_or_refused_and_never_lost(
    data: st.DataObject, budget: int
) -> None:
    schema = Schema(tuple(data.draw(attributes(f"a{i}")) for i in range(data.draw(st.integers(1, 3)))))
    names = data.draw(st.lists(st.sampled_from(schema.names), min_size=1, unique=True))
    plan = data.draw(selective_plans(schema, names, data.draw(st.integers(3, 40)), rest=False))
    wanted = data.draw(filters(schema, most_boxes=2))
    known = data.draw(st.lists(events(schema), max_size=8))
    matching = [event for event in known if wanted.matches(event)]
    try:
        some = plan.cover(wanted, budget)
    except Refused:
        safe = SelectivePlan(schema, plan.dimensions, plan.bounds, plan.bits, rest=True)
        outside = meet(safe, safe.parts[-1].id, [wanted])
        assert outside is not None
        if not any(isinstance(value, Unfound) for value in outside.values()):
            assert plan.encode(outside) == ()
    else:
        assert all(plan.encode(event) for event in matching)
        assert all(some.covers(dz) for event in matching for dz in plan.encode(event))


@given(st.data())
def test_what_is_left_of_a_box_lies_in_it_and_in_none_of_the_others(data: st.DataObject) -> None:
    schema = Schema(tuple(data.draw(attributes(f"a{i}", "int float bool")) for i in range(2)))
    box, *others = data.draw(filters(schema)).boxes
    pieces = list(remainders(schema, box, others))
    for event in data.draw(st.lists(events(schema), max_size=20)):
        left = Filter("box", schema, (box,)).matches(event) and not any(
            Filter("other", schema, (other,)).matches(event) for other in others
        )
        assert sum(Filter("piece", schema, (piece,)).matches(event) for piece in pieces) == left


@dataclass(frozen=True)
class Skewed:
    """Another kind of plan: it cuts a cell where it is longest, at a third, and some sooner than others."""

    axes: tuple[Axis, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(axis.cells for axis in self.axes)

    def split(self, cell: Cell) -> tuple[Cell, Cell] | None:
        sizes = [last - first + 1 for first, last in zip(cell.first, cell.last, strict=True)]
        axis = sizes.index(max(sizes))
        if sizes[axis] == 1 or cell.dz.length >= 5 + cell.dz.bits % 3:
            return None
        return cell.halves(axis, cell.first[axis] + max(1, sizes[axis] // 3))

    def may_cut(self, cell: Cell) -> tuple[bool, ...]:
        return (True,) * len(self.axes)

    def locate(self, event: dict[str, object]) -> Dz:
        cell = root(self)
        places = [axis.place(axis.attribute.point(event[axis.attribute.name])) for axis in self.axes]
        while halves := self.split(cell):
            low, high = halves
            inside = all(f <= p <= last for f, p, last in zip(low.first, places, low.last, strict=True))
            cell = low if inside else high
        return cell.dz


@given(cases(), budgets)
def test_covers_need_nothing_but_a_walk(case: Case, budget: int) -> None:
    walk = Skewed(tuple(Axis(attribute, min(attribute.resolution, 20)) for attribute in case.plan.schema))
    boxes = spans(walk.axes, case.wanted)
    exact = cover.exact(walk, boxes)
    assert exact is not None
    assert cover.count(walk, boxes) == len(exact)
    few = refine.refine(walk, boxes, budget, refine.volume_weight(walk), refine.PATIENCE)
    assert 1 <= len(few) <= budget
    assert few.covers_set(exact)
    for event in case.events:
        if case.wanted.matches(event):
            assert exact.covers(walk.locate(event))
