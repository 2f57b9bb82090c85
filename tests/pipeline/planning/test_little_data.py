"""Every method makes a plan of whatever comes: attributes of one value, events that are all alike, a single event."""

from __future__ import annotations

import random

import pytest

from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.pipeline.evaluation.evaluation import Candidate, evaluate_here
from flowsieve.pipeline.matching.boxes import BoxTable
from flowsieve.pipeline.planning.methods import INDEXERS, Method, Workshop, make
from flowsieve.pipeline.planning.portfolio import auto_here
from flowsieve.pipeline.planning.selection import SELECTIONS

METHODS = ("auto", *INDEXERS, *(f"{selection}+asi" for selection in SELECTIONS), "gs+kd", "brs+lw")
KINDS = {
    "one value": {"type": "int", "min": 5, "max": 5},
    "one word": {"type": "enum", "values": ["x"]},
    "a float of two values": {"type": "float", "min": 0.0, "max": 5e-324},
    "a wide float": {"type": "float", "min": -1e300, "max": 1e300},
    "some values": {"type": "int", "min": 0, "max": 9},
    "words": {"type": "string"},
}
VALUES = {
    "one value": (5,),
    "one word": ("x",),
    "a float of two values": (0.0, 5e-324),
    "a wide float": (-1e300, 0.0, 1e300),
    "some values": (0, 3, 9),
    "words": ("aa", "bb"),
}
CASES = (("one value",), ("one value", "one word"), ("one value", "some values"), tuple(KINDS))


def shop_of(kinds: tuple[str, ...], events: int, alike: bool, max_dz: int) -> Workshop:
    draw = random.Random(events)
    schema = Schema.parse({f"a{i}": KINDS[kind] for i, kind in enumerate(kinds)})
    named = {f"a{i}": VALUES[kind] for i, kind in enumerate(kinds)}
    first = {name: draw.choice(values) for name, values in named.items()}
    rows = [
        first if alike else {name: draw.choice(values) for name, values in named.items()}
        for _ in range(events)
    ]
    wanted = [f"{name} == {value!r}" for name, values in named.items() for value in values]
    filters = tuple(Filter.parse(text, schema) for text in ["True", *wanted])
    return Workshop(schema, filters, 8, max_dz, EventBatch.from_events(schema, "h", rows))


@pytest.mark.parametrize("kinds", CASES, ids=len)
@pytest.mark.parametrize(("events", "alike"), [(1, True), (2, False), (30, True)])
@pytest.mark.parametrize("max_dz", [0, 32])
def test_every_method_makes_a_plan_that_loses_nothing(
    kinds: tuple[str, ...], events: int, alike: bool, max_dz: int
) -> None:
    shop = shop_of(kinds, events, alike, max_dz)
    for text in METHODS:
        plan = auto_here(shop, 30.0).plan if text == "auto" else make(Method.parse(text), shop)
        candidate = Candidate.of(plan, shop.filters, 32)
        (score,) = evaluate_here([candidate], BoxTable.of(shop.schema, shop.filters), shop.events)
        assert score.false_negatives == 0, text


def test_a_selection_takes_what_can_be_halved_and_nothing_else() -> None:
    shop = shop_of(("one value", "some values", "one word"), 30, False, 0)
    for selection in SELECTIONS:
        assert shop.select(selection) == (1,), selection
