"""Covers that a snapshot keeps: they are taken only where they would come out the same."""

from __future__ import annotations

from hashlib import blake2b

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.memory.snapshot_format import (
    COVERS,
    covers_from_json,
    covers_name,
    covers_to_json,
    fit_name,
)
from flowsieve.control.state import ControlState, Settings
from flowsieve.index.dzset import EMPTY, WHOLE, DzSet
from flowsieve.index.plan import IndexPlan
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.network.generators import line

SCHEMA = Schema.parse(
    {
        "level": {"type": "int", "min": 0, "max": 99},
        "ratio": {"type": "float", "min": 0.0, "max": 1.0},
        "kind": {"type": "enum", "values": ["a", "b", "c"]},
        "name": {"type": "string", "prefix": True},
    }
)
TEXTS = (
    "True",
    "10 <= level < 50 and ratio < 0.4 or kind == 'a'",
    "level != 7 and not kind in ('a', 'b')",
    "0.25 < ratio <= 0.75 and level > 90",
    "name == 'zero' and level < 3 or name == 'one'",
    "level in (1, 2, 3, 50) and ratio >= 0.123",
)


def state(plan: IndexPlan | None = None, budget: int = 8, capacity: int | None = None) -> ControlState:
    return ControlState(
        line(3), plan or RegularPlan.make(SCHEMA), settings=Settings(budget=budget, capacity=capacity)
    )


def test_covers_come_back_under_the_name_that_they_were_written_under() -> None:
    covers = [DzSet.of("01", "1101"), EMPTY, WHOLE, DzSet.of("1" * 112)]
    kept = covers_to_json("so", covers)
    assert covers_from_json(kept, "so") == covers
    assert covers_from_json(kept, "otherwise") is None
    assert covers_from_json(None, "so") is None
    assert covers_from_json(covers_to_json("so", []), "so") == []


def test_a_name_tells_apart_what_covers_and_cuts_depend_on() -> None:
    states = [state(), state(budget=9), state(RegularPlan.make(SCHEMA, bits=20))]
    assert len({covers_name(each) for each in states}) == len(states)
    states += [state(capacity=9), state(capacity=10)]
    assert len({fit_name(each) for each in states}) == len(states)
    assert fit_name(state(capacity=9)) == fit_name(state(capacity=9))


def test_covers_are_those_of_the_version_that_snapshots_are_marked_with() -> None:
    """Where this fails since covers have become better, count COVERS up: older snapshots' are not taken then."""
    seen = blake2b(digest_size=8)
    for plan in (RegularPlan.make(SCHEMA), RegularPlan.make(SCHEMA, bits=24)):
        for budget in (1, 8, 32):
            for text in TEXTS:
                seen.update(" ".join(plan.cover(Filter.parse(text, SCHEMA), budget).texts()).encode() + b";")
    assert (COVERS, seen.hexdigest()) == (1, "d858b0944ea70e3f")
