from __future__ import annotations

import json
from typing import Any

import pytest

from flowsieve.content.schema import Schema
from flowsieve.errors import BadPlan
from flowsieve.index.plan import plan_from_json, plan_to_json
from flowsieve.index.plans.regular import RegularPlan

SCHEMA = Schema.parse({"price": {"type": "int", "min": 0, "max": 1023}, "live": {"type": "bool"}})
OTHER = Schema.parse({"price": {"type": "int", "min": 0, "max": 1024}, "live": {"type": "bool"}})


def written(**changes: Any) -> dict[str, Any]:
    return plan_to_json(RegularPlan.make(SCHEMA, bits=8)) | changes


def test_a_plan_comes_back_from_json() -> None:
    plan = RegularPlan.make(SCHEMA, bits=8, dimensions=["live", "price"])
    assert plan_from_json(json.loads(json.dumps(plan_to_json(plan))), SCHEMA) == plan


def test_a_plan_says_what_it_is_and_for_which_schema() -> None:
    assert written() == {
        "kind": "regular",
        "schema": SCHEMA.digest,
        "bits": 8,
        "dimensions": ["price", "live"],
    }


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "not list"),
        (
            written(kind="regulr"),
            r"no plan of kind 'regulr', only regular, adaptive, .*; did you mean 'regular'\?",
        ),
        (written(kind=3), "no plan of kind 3"),
        (written(schema="abc"), "a schema with digest 'abc'"),
        (written(bits=24), "bits = 24 is more than the 23"),
        (written(bits="8"), "bits = '8'; it is a whole number"),
        (written(dimensions=["prise"]), "did you mean 'price'"),
        (written(dimensions="price"), "list of attribute names"),
        (written(dimensions={"price": 1}), "list of attribute names"),
        (written(dimensions=[1]), "list of attribute names"),
        (written(bytes=3), "a regular plan has no 'bytes'"),
    ],
)
def test_a_plan_that_does_not_fit_is_refused(data: object, message: str) -> None:
    with pytest.raises(BadPlan, match=message):
        plan_from_json(data, SCHEMA, room=23)


def test_a_plan_for_another_schema_is_refused() -> None:
    with pytest.raises(BadPlan, match=OTHER.digest):
        plan_from_json(written(), OTHER)
