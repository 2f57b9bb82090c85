"""What holds for every plan, filter, budget and sample; above all: no event that a filter matches is lost."""

from __future__ import annotations

import string
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from flowsieve.content.box import Constraint, Interval, Text
from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Attribute, Schema
from flowsieve.errors import BadFilter
from flowsieve.index import cover, refine
from flowsieve.index.dz import Dz
from flowsieve.index.dzset import DzSet
from flowsieve.index.grid import Axis
from flowsieve.index.inverse import Unfound, number_in, string_in
from flowsieve.index.regular import RegularPlan
from flowsieve.index.sample import EventSample
from flowsieve.index.walk import Cell, cell_of, root, spans
from flowsieve.index.witness import meet, uncovered

WORDS = ["", "a", "ab", "abc", "b", "ba", "xyz", "abcdefgh", "abcdefghi", "ü", "zz top"]

floats = st.floats(-1e6, 1e6, allow_nan=False) | st.integers(-8, 8).map(lambda n: n / 8)


@st.composite
def ranges(draw: st.DrawFn, kind: str) -> dict[str, Any]:
    if kind == "int":
        low = draw(st.integers(-20, 20) | st.integers(-(2**53), 2**53 - 300))
        return {"min": low, "max": low + draw(st.integers(0, 20) | st.integers(0, 250))}
    low, high = sorted(draw(st.lists(floats, min_size=2, max_size=2, unique=True)))
    return {"min": low, "max": high}


@st.composite
def attributes(draw: st.DrawFn, name: str = "x", kinds: str = "int float enum bool string") -> Attribute:
    kind = draw(st.sampled_from(kinds.split()))
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


@dataclass(frozen=True)
class Case:
    plan: RegularPlan
    wanted: Filter
    events: list[dict[str, object]]

    @property
    def batch(self) -> EventBatch:
        return EventBatch.from_events(self.plan.schema, "h", self.events)


@st.composite
def cases(
    draw: st.DrawFn, most_bits: int = 112, most_boxes: int = 6, kinds: str = "int float enum bool string"
) -> Case:
    schema = Schema(tuple(draw(attributes(f"a{i}", kinds)) for i in range(draw(st.integers(1, 4)))))
    dimensions = draw(st.lists(st.sampled_from(schema.names), min_size=1, unique=True))
    plan = RegularPlan.make(schema, draw(st.integers(0, most_bits)), dimensions)
    box = st.tuples(*(constraints(attribute) for attribute in schema))
    wanted = Filter("drawn", schema, tuple(draw(st.lists(box, min_size=1, max_size=most_boxes))))
    event = st.fixed_dictionaries({attribute.name: values(attribute) for attribute in schema})
    return Case(plan, wanted, draw(st.lists(event, min_size=1, max_size=8)))


budgets = st.integers(1, 40)


@given(cases(), budgets)
def test_an_event_that_a_filter_matches_is_covered(case: Case, budget: int) -> None:
    sample = EventSample.of(case.plan, case.batch)
    covers = [case.plan.cover(case.wanted, budget), case.plan.cover(case.wanted, budget, sample)]
    if case.plan.count_cover(case.wanted) <= cover.MOST_LISTED:
        covers.append(case.plan.cover(case.wanted, 0))
    for event in case.events:
        if case.wanted.matches(event):
            (dz,) = case.plan.encode(event)
            assert all(some.covers(dz) for some in covers)


@given(cases(most_bits=9, kinds="int float enum bool"))
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


@given(cases())
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


@given(st.data())
def test_a_column_has_the_places_of_its_values(data: st.DataObject) -> None:
    attribute = data.draw(attributes())
    axis = Axis(attribute, data.draw(st.integers(0, attribute.resolution)))
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
    axis = Axis(attribute, data.draw(st.integers(0, attribute.resolution)))
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
    axis = Axis(attribute, data.draw(st.integers(0, min(attribute.resolution, 60))))
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


@given(cases(most_bits=12), budgets)
def test_compiled_covers_are_their_plain_twins(case: Case, budget: int) -> None:
    plan, boxes = case.plan, case.plan.boxes(case.wanted)
    exact = plan.cover(case.wanted, 0)
    assert exact == cover.exact(plan, boxes)
    assert plan.count_cover(case.wanted) == cover.count(plan, boxes) == len(exact)
    by_volume = refine.refine(plan, boxes, budget, refine.volume_weight(plan), refine.PATIENCE)
    assert plan.cover(case.wanted, budget) == by_volume
    sample = EventSample.of(plan, case.batch)
    by_traffic = refine.refine(plan, boxes, budget, sample.weight(plan, boxes), refine.PATIENCE_WITH_SAMPLE)
    assert plan.cover(case.wanted, budget, sample) == by_traffic
    assert plan.touches(case.wanted, exact).tolist() == cover.touches(plan, boxes, exact)


@given(cases(), budgets)
def test_long_covers_are_their_plain_twins(case: Case, budget: int) -> None:
    plan, boxes = case.plan, case.plan.boxes(case.wanted)
    assert plan.cover(case.wanted, budget) == refine.refine(
        plan, boxes, budget, refine.volume_weight(plan), refine.PATIENCE
    )


@given(cases(most_bits=40), budgets)
def test_a_cover_keeps_its_budget_and_lies_between_the_exact_one_and_one_cell(
    case: Case, budget: int
) -> None:
    plan = case.plan
    sample = EventSample.of(plan, case.batch)
    one = plan.cover(case.wanted, 1)
    assert len(one) == 1
    for some in (plan.cover(case.wanted, budget), plan.cover(case.wanted, budget, sample)):
        assert 1 <= len(some) <= budget
        assert one.covers_set(some)
        if plan.count_cover(case.wanted) <= 10_000:
            assert some.covers_set(plan.cover(case.wanted, 0))


@given(cases(most_bits=14))
def test_a_budget_that_suffices_gives_the_exact_cover(case: Case) -> None:
    exact = case.plan.cover(case.wanted, 0)
    assume(len(exact) <= 500)
    assert case.plan.cover(case.wanted, max(1, len(exact))) == exact


@given(cases(most_boxes=1))
def test_a_cover_is_refused_exactly_when_it_is_too_long(case: Case) -> None:
    long = case.plan.count_cover(case.wanted) > cover.MOST_LISTED
    try:
        assert len(case.plan.cover(case.wanted, 0)) == case.plan.count_cover(case.wanted)
    except BadFilter:
        assert long
    else:
        assert not long


@given(cases(most_bits=30), budgets, st.data())
def test_a_hole_in_a_cover_is_found(case: Case, budget: int, data: st.DataObject) -> None:
    plan, wanted = case.plan, case.wanted
    some = plan.cover(wanted, budget)
    assert uncovered(plan, wanted, some) is None
    dz = data.draw(st.sampled_from(list(some)))
    missing = uncovered(plan, wanted, some - DzSet([dz]))
    assert (missing is None) == (meet(plan, dz, [wanted]) is None)


@given(cases(most_bits=24), st.integers(0, 24))
def test_an_event_where_filters_meet_lies_there_and_matches_them_all(case: Case, length: int) -> None:
    plan = case.plan
    (inside,) = plan.encode(case.events[0])
    dz = Dz(inside.bits >> max(0, plan.bits - length), min(length, plan.bits))
    others = [Filter("first box", plan.schema, case.wanted.boxes[:1]), case.wanted]
    event = meet(plan, dz, others)
    if event is None:
        for known in case.events:
            assert not (dz.covers(plan.encode(known)[0]) and all(f.matches(known) for f in others))
    elif not any(isinstance(value, Unfound) for value in event.values()):
        assert dz.covers(plan.encode(event)[0])
        assert all(wanted.matches(event) for wanted in others)


@dataclass(frozen=True)
class Skewed:
    """Another kind of plan: it cuts a cell where it is longest, at a third, and some sooner than others."""

    axes: tuple[Axis, ...]

    def split(self, cell: Cell) -> tuple[Cell, Cell] | None:
        sizes = [last - first + 1 for first, last in zip(cell.first, cell.last, strict=True)]
        axis = sizes.index(max(sizes))
        if sizes[axis] == 1 or cell.dz.length >= 5 + cell.dz.bits % 3:
            return None
        return cell.halves(axis, cell.first[axis] + max(1, sizes[axis] // 3))

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
