"""An index that is told: what was written down is read, and what cannot be right is refused."""

from __future__ import annotations

from typing import Any

import pytest

from flowsieve.content.schema import Schema
from flowsieve.errors import BadMessage
from flowsieve.header.tag import POOLS
from flowsieve.index.dzset import DzSet
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.protocol.limits import MAX_NUMBER
from flowsieve.protocol.told_index import ToldIndex, is_of_schema

SCHEMA = Schema.parse({"price": {"type": "int", "min": 0, "max": 1023}})
OTHER = Schema.parse({"price": {"type": "int", "min": 0, "max": 2047}})
PLAN = RegularPlan.make(SCHEMA, bits=8)
INDEX = ToldIndex(3, POOLS["ipv6"][1], PLAN, {"h1-1": DzSet.of("01", "1"), "h1-2": DzSet()})


def test_what_was_written_down_is_read() -> None:
    assert ToldIndex.parse(INDEX.to_json(), SCHEMA) == INDEX
    assert INDEX.encoding.tag == INDEX.tag
    assert INDEX.to_json()["dz"] == {"h1-1": ["01", "1"], "h1-2": []}


@pytest.mark.parametrize(
    "change",
    [{"version": wrong} for wrong in (-1, True, 1.0, "1", None, MAX_NUMBER + 1)]
    + [{"tag": wrong} for wrong in ("here", None, 3, "ff0e::1/16")]
    + [{"plan": wrong} for wrong in (None, {}, {"kind": "magic"}, RegularPlan.make(OTHER).to_json())]
    + [{"plan": PLAN.to_json() | {"bits": 200}}]
    + [{"dz": wrong} for wrong in (None, [], {"a": "01"}, {"a": ["2"]}, {"a": [1]}, {"a": None}, {3: ["0"]})],
)
def test_what_cannot_be_right_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(BadMessage, match="the controller's index cannot be read"):
        ToldIndex.parse(INDEX.to_json() | change, SCHEMA)


@pytest.mark.parametrize("told", [None, 3, [], "index", {}, {"version": 1}])
def test_what_is_no_index_at_all_is_refused(told: object) -> None:
    with pytest.raises(BadMessage, match="the controller's index cannot be read"):
        ToldIndex.parse(told, SCHEMA)
    assert not is_of_schema(told, SCHEMA)


def test_an_index_for_events_of_another_schema_is_told_from_ours() -> None:
    assert is_of_schema(INDEX.to_json(), SCHEMA)
    assert not is_of_schema(INDEX.to_json(), OTHER)
