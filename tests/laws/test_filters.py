"""What holds for every schema, every filter over it and every event."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flowsieve.content.box import Interval
from flowsieve.content.event import EventBatch, check_event, read_event
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Attribute, Schema
from flowsieve.errors import BadFilter

LAW = settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])

FLOATS = (-2.0, -1.0, -0.5, 0.0, 0.1, 0.5, 1.0, 7.0)
WORDS = ("", "a", "aa", "ab", "b", "é", "a\U0010ffff")
MENU = {
    "n": {"type": "int", "min": -2, "max": 3},
    "one": {"type": "int", "min": 4, "max": 4},
    "x": {"type": "float", "min": -1.0, "max": 1.0},
    "e": {"type": "enum", "values": ["hold", "buy", "sell"]},
    "t": {"type": "bool"},
    "s": {"type": "string"},
    "p": {"type": "string", "prefix": True},
}
CONSTANTS: dict[str, tuple[object, ...]] = {
    "n": (-3, -2, -1, 0, 0.5, 1, 2.5, 3, 4, 1e999, -1e999, 10**400),
    "one": (3, 4, 4.0, 4.5, 5),
    "x": (*FLOATS, 0, 1, -(10**400), 1e999),
    "e": ("hold", "buy", "sell"),
    "t": (True, False),
    "s": WORDS,
    "p": WORDS,
}
ORDERS = ("<", "<=", ">", ">=")
EQUALITIES = ("==", "!=")


def representatives(attribute: Attribute) -> list[object]:
    """Values enough to tell any two filters apart that are made of the constants above.

    Between two neighbouring constants all values behave alike, so that each constant and the value next to
    it stand for all.
    """
    if attribute.kind == "string":
        return [*WORDS, *(word + "\0" for word in WORDS)]
    if attribute.kind == "float":
        near = {value for c in FLOATS for value in (math.nextafter(c, -2), c, math.nextafter(c, 2))}
        return [value for value in near if attribute.min <= value <= attribute.max]
    return [attribute.value(number) for number in range(int(attribute.min), int(attribute.max) + 1)]


def events_of(schema: Schema) -> list[dict[str, object]]:
    return [dict(zip(schema.names, row, strict=True)) for row in product(*map(representatives, schema))]


@dataclass(frozen=True)
class Expression:
    """A condition twice: as a filter, and for Python, to which an enum's value is its place in the order."""

    filter: str
    python: str


def literal(value: object) -> str:
    return repr(value).replace("inf", "1e999")


def constant(attribute: Attribute, value: object) -> Expression:
    place = attribute.number(value) if attribute.kind == "enum" else value
    return Expression(literal(value), literal(place))


@st.composite
def atoms(draw: st.DrawFn, schema: Schema) -> Expression:
    attribute = draw(st.sampled_from(schema.attributes))
    name = attribute.name
    ordered = attribute.kind != "string" or attribute.prefix
    operator = st.sampled_from(EQUALITIES + ORDERS if ordered else EQUALITIES)
    constants = st.sampled_from(CONSTANTS[name]).map(lambda value: constant(attribute, value))
    shape = draw(
        st.sampled_from(["plain", "mirrored", "chain", "chain back", "in", "not in", "alone", "constant"])
    )
    if shape == "constant":
        word = draw(st.sampled_from(["True", "False"]))
        return Expression(word, word)
    if shape == "alone" and attribute.kind == "bool":
        return Expression(name, name)
    if shape in ("in", "not in"):
        members = draw(st.lists(constants, max_size=3))
        brackets = draw(st.sampled_from(["()", "[]", "{}"])) if len(members) > 1 else "[]"
        texts = (", ".join(m.filter for m in members), ", ".join(m.python for m in members))
        return Expression(*(f"{name} {shape} {brackets[0]}{text}{brackets[1]}" for text in texts))
    a, b, first, second = draw(constants), draw(constants), draw(operator), draw(operator)
    if shape == "mirrored":
        return Expression(f"{a.filter} {first} {name}", f"{a.python} {first} {name}")
    if shape == "chain":
        return Expression(*(f"{x} {first} {name} {second} {y}" for x, y in both(a, b)))
    if shape == "chain back":
        return Expression(*(f"{name} {first} {x} {second} {name}" for x, _ in both(a, b)))
    return Expression(f"{name} {first} {a.filter}", f"{name} {first} {a.python}")


def both(a: Expression, b: Expression) -> list[tuple[str, str]]:
    return [(a.filter, b.filter), (a.python, b.python)]


def expressions(schema: Schema) -> st.SearchStrategy[Expression]:
    def larger(part: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        negation = part.map(lambda e: Expression(f"not ({e.filter})", f"not ({e.python})"))
        joined = st.builds(
            lambda word, parts: Expression(
                word.join(f"({e.filter})" for e in parts), word.join(f"({e.python})" for e in parts)
            ),
            st.sampled_from([" and ", " or "]),
            st.lists(part, min_size=2, max_size=4),
        )
        return negation | joined

    return st.recursive(atoms(schema), larger, max_leaves=8)


schemas = st.lists(st.sampled_from(sorted(MENU)), min_size=1, max_size=2, unique=True).map(
    lambda names: Schema.parse({name: MENU[name] for name in names})
)
cases = schemas.flatmap(lambda schema: st.tuples(st.just(schema), expressions(schema)))
pairs = schemas.flatmap(lambda schema: st.tuples(st.just(schema), expressions(schema), expressions(schema)))


def wanted(expression: Expression, schema: Schema) -> list[bool]:
    """What Python itself makes of the expression, for each of the schema's events."""
    code = compile(expression.python, "filter", "eval")
    places = [
        {a.name: a.number(event[a.name]) if a.kind == "enum" else event[a.name] for a in schema}
        for event in events_of(schema)
    ]
    return [bool(eval(code, {"__builtins__": {}}, values)) for values in places]


def parsed(expression: Expression, schema: Schema) -> Filter | None:
    try:
        return Filter.parse(expression.filter, schema)
    except BadFilter as error:
        assert error.message.startswith("the filter can match nothing: ")
        return None


@LAW
@given(cases)
def test_a_filter_matches_what_python_makes_of_its_text(case: tuple[Schema, Expression]) -> None:
    schema, expression = case
    found = parsed(expression, schema)
    matched = [found is not None and found.matches(event) for event in events_of(schema)]
    assert matched == wanted(expression, schema)


@LAW
@given(cases)
def test_the_batch_twin_agrees_with_matching_one_by_one(case: tuple[Schema, Expression]) -> None:
    schema, expression = case
    found, events = parsed(expression, schema), events_of(schema)
    if found is not None:
        batch = EventBatch.from_events(schema, "h", events)
        assert found.matches_batch(batch).tolist() == [found.matches(event) for event in events]


@LAW
@given(cases)
def test_every_box_lies_within_the_ranges_and_holds_an_event(case: tuple[Schema, Expression]) -> None:
    schema, expression = case
    found = parsed(expression, schema)
    for box in found.boxes if found else ():
        for attribute, constraint in zip(schema, box, strict=True):
            if isinstance(constraint, Interval):
                assert attribute.min <= constraint.low <= constraint.high <= attribute.max
            points = [attribute.point(value) for value in representatives(attribute)]
            assert any(constraint.admits(point) for point in points)  # type: ignore[arg-type]


@LAW
@given(pairs)
def test_covering_overlap_and_intersection_are_those_of_the_sets_of_events(
    case: tuple[Schema, Expression, Expression],
) -> None:
    schema, first, second = case
    one, two = parsed(first, schema), parsed(second, schema)
    if one is None or two is None:
        return
    events = events_of(schema)
    ones, twos = [one.matches(e) for e in events], [two.matches(e) for e in events]
    assert one.covers(two) == all(a or not b for a, b in zip(ones, twos, strict=True))
    shared = [a and b for a, b in zip(ones, twos, strict=True)]
    assert one.overlaps(two) == two.overlaps(one) == any(shared)
    common = one.intersection(two)
    assert [common is not None and common.matches(e) for e in events] == shared
    if common is not None:
        assert one.covers(common) and two.covers(common)
        assert Filter.parse(common.text, schema).covers(common)


@LAW
@given(pairs)
def test_a_disjunction_covers_its_parts_and_nothing_more(case: tuple[Schema, Expression, Expression]) -> None:
    schema, first, second = case
    one, two = parsed(first, schema), parsed(second, schema)
    either = parsed(Expression(f"({first.filter}) or ({second.filter})", ""), schema)
    assert (either is None) == (one is None and two is None)
    for part in (one, two):
        assert part is None or (either is not None and either.covers(part))
    if either is not None and one is not None and two is not None:
        together = Filter("", schema, one.boxes + two.boxes)
        assert together.covers(either) and either.covers(together)


@LAW
@given(schemas, st.data())
def test_text_and_native_columns_give_the_same_events(schema: Schema, data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.sampled_from(events_of(schema)), max_size=5))
    native = pd.DataFrame(rows, columns=list(schema.names)).assign(
        id=[f"e{i}" for i in range(len(rows))], host="h"
    )
    one, two = (EventBatch.from_frame(schema, frame) for frame in (native, native.astype(str)))
    assert not one.faults()[0].any() and not two.faults()[0].any()
    for name in schema.names:
        np.testing.assert_array_equal(one.columns[name], two.columns[name])
    assert [one.event(i) for i in range(len(one))] == rows
    for row in rows:
        assert check_event(schema, row) == row
        assert read_event(schema, {name: str(value) for name, value in row.items()}) == row


number_texts = st.sampled_from(
    ["-4", "-3", "-2", "-1", "0", "1e0", "2.0", "2.5", "3", "4", "", "nan", "inf", "-inf", " 1 "]
)


@LAW
@given(st.lists(number_texts, min_size=1, max_size=8))
def test_exactly_the_events_outside_the_schema_are_faulty(texts: list[str]) -> None:
    schema = Schema.parse({"n": MENU["n"]})
    frame = pd.DataFrame({"id": [str(i) for i in range(len(texts))], "host": "h", "n": texts})
    bad, reason = EventBatch.from_frame(schema, frame).faults()
    numbers = [float(text) if text else math.nan for text in texts]
    assert bad.tolist() == [not (-2 <= number <= 3 and number.is_integer()) for number in numbers]
    assert all(reason(int(row)).startswith("n ") for row in np.flatnonzero(bad))
