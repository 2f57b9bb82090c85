"""Every kind of plan in a scenario: the commands use it as they use the regular one."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from typing import Any

import pytest

from flowsieve.content.schema import Schema
from flowsieve.index.plan import KINDS, IndexPlan
from flowsieve.index.plans.kd import KdPlan
from flowsieve.index.plans.learned import AdaptivePlan, LevelwisePlan
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.index.plans.selective import SelectivePlan

SCHEMA = Schema.parse(
    {
        "price": {"type": "int", "min": 0, "max": 1023},
        "side": {"type": "enum", "values": ["buy", "sell"]},
    }
)
CUTS = {"price": [64, 100, 300], "side": [1]}
PLANS: list[IndexPlan] = [
    RegularPlan.make(SCHEMA, 11),
    AdaptivePlan.make(SCHEMA, CUTS),
    LevelwisePlan.make(SCHEMA, CUTS, ["side", "price", "price"]),
    KdPlan.make(SCHEMA, [("price", 100), None, ("side", 1), None, None], 5, CUTS),
    SelectivePlan.make(SCHEMA, [{"price": (0, 99)}, {"price": (50, 299), "side": (0, 0)}], 8),
]


def test_there_is_a_plan_of_every_kind() -> None:
    assert {plan.kind for plan in PLANS} == set(KINDS)


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.kind)
def test_the_commands_take_a_plan_from_a_file(
    plan: IndexPlan, scene: Any, flowsieve: Callable[..., Any]
) -> None:
    scene.write("plan.json", json.dumps(plan.to_json()))
    scene.replace("bits = 11\n", 'plan = "plan.json"\n')
    out = scene.folder / "out"
    answer = flowsieve("run", scene.scenario, "--out", out)
    assert answer.status == 0, answer.err
    with (out / "matches.csv").open() as file:
        matches = sorted((row["event"], row["subscription"]) for row in csv.DictReader(file))
    assert matches == [("e1", "cheap"), ("e2", "some"), ("e3", "sale"), ("e6", "dear")]
    proof = flowsieve("verify", scene.scenario, "--json")
    assert (proof.status, proof.json["holds"]) == (0, True)
    told = flowsieve("explain", scene.scenario, "--host", "ann", "price=60", "side=buy", "--json")
    assert "bob" in told.json["delivered"]


def test_a_bad_plan_is_named_with_its_file(scene: Any, flowsieve: Callable[..., Any]) -> None:
    scene.write("plan.json", json.dumps(PLANS[1].to_json() | {"cuts": [[5, 4, 3], [1]]}))
    scene.replace("bits = 11\n", 'plan = "plan.json"\n')
    answer = flowsieve("verify", scene.scenario)
    assert answer.status == 2
    assert "plan.json" in answer.err
    assert "price has a cut at 4 after one at 5" in answer.err
