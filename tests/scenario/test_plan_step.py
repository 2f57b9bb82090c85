"""A scenario that goes over to another plan while its events are published."""

from __future__ import annotations

import json
from typing import Any

import pytest

from flowsieve.errors import BadScenario
from flowsieve.index.plan import plan_to_json
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.scenario.play import play, settled
from flowsieve.scenario.read import PlanStep, read_scenario

STEP = '\n[[step]]\nplan = "other.json"\nevents = "later.csv"\nrate = 100000\n'


def with_step(scene: Any, step: str = STEP, **plan: Any) -> Any:
    schema = read_scenario(scene.scenario).schema
    made = RegularPlan.make(schema, **({"bits": 3, "dimensions": ["price"]} | plan))
    scene.write("other.json", json.dumps(plan_to_json(made)))
    rows = [
        f"x{n},{'ann' if n % 2 else 'bob'},{(n * 37) % 1024},{'buy' if n % 3 else 'sell'}" for n in range(90)
    ]
    scene.write("later.csv", "\n".join(["id,host,price,side", *rows, ""]))
    scene.write("scenario.toml", scene.scenario.read_text() + step)
    return scene


def test_nothing_is_lost_or_doubled_and_the_tables_are_those_of_the_new_plan(scene: Any) -> None:
    with_step(scene)
    run = play(read_scenario(scene.scenario))
    report = run.report()
    assert [report[key] for key in ("false_negatives", "duplicates", "repeats")] == [0, 0, 0]
    assert (report["events"], report["bits"]) == (96, 3)
    (told,) = report["transitions"]  # type: ignore[misc]
    assert [each["phase"] for each in told["phases"]] == ["carry", "install", "switch", "clear"]
    assert told["operations"] == sum(each["operations"] for each in told["phases"])
    sent = {dst.split(":")[0] for dst in run.packets.joined()["dst"].tolist()}
    assert sent == {"ff0e", "ff15"}  # some were sent by the one, some by the other
    assert run.stage.plane.verify(run.stage.tables()).holds
    there = {flow.match for table in run.stage.tables().values() for flow in table}
    assert there and all(str(match).startswith("ff15") for match in there)
    assert settled(read_scenario(scene.scenario)).tables() == run.stage.tables()


def test_a_plan_whose_tables_do_not_fit_on_the_way_is_refused_and_the_old_one_stays(scene: Any) -> None:
    with_step(scene)
    scene.replace("[network]", "[network]\ntable_capacity = 1")
    run = play(read_scenario(scene.scenario))
    report = run.report()
    assert report["transitions"] == [] and report["bits"] == 11
    assert report["refused"] == 1 and "plan other.json: " in str(report["first_refused"])
    assert report["false_negatives"] == 0 and report["events"] == 96


@pytest.mark.parametrize(
    ("step", "right"),
    [
        (
            '\n[[step]]\nplan = "other.json"\nrequests = "requests.csv"\n',
            "right is one file, or a plan with events",
        ),
        ('\n[[step]]\nevents = "later.csv"\nrate = 5\n', "right is beside plan"),
        ('\n[[step]]\nplan = "other.json"\nrate = 0\n', "right is a number of events a second"),
        ('\n[[step]]\nplan = "missing.json"\n', "missing.json"),
    ],
)
def test_what_is_wrong_with_such_a_step_is_told(scene: Any, step: str, right: str) -> None:
    with_step(scene, step)
    with pytest.raises(BadScenario, match=right):
        read_scenario(scene.scenario)


def test_a_plan_for_another_schema_is_bad_input(scene: Any) -> None:
    with_step(scene)
    scene.write(
        "other.json", json.dumps({"kind": "regular", "schema": "00", "bits": 3, "dimensions": ["price"]})
    )
    with pytest.raises(BadScenario, match="the plan is for a schema with digest"):
        read_scenario(scene.scenario)


def test_labels_have_no_plan_to_go_over_to(scene: Any) -> None:
    with_step(scene)
    scene.replace("bits = 11\nmax_dz_per_filter = 0", 'header = "receivers"')
    with pytest.raises(BadScenario, match="there is no other plan to go over to"):
        read_scenario(scene.scenario)


def test_a_step_may_have_a_plan_alone(scene: Any) -> None:
    with_step(scene, '\n[[step]]\nplan = "other.json"\n')
    step = read_scenario(scene.scenario).steps[-1]
    assert isinstance(step, PlanStep) and step.events is None and step.rate == 1000
    assert play(read_scenario(scene.scenario)).report()["bits"] == 3
