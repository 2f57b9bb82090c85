"""`flowsieve verify`: a proof of the scenario's own tables, or the judgement of a dump."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]
Flows = list[dict[str, Any]]
KEYS = {"holds", "false_negatives", "duplicates", "loops", "false_positive_share", "witness"}


@pytest.fixture
def flows(flowsieve: Command, scene: Any, tmp_path: Path) -> Flows:
    """The tables that the scenario ends with, as a dump."""
    assert flowsieve("run", scene.scenario, "--out", tmp_path / "run").status == 0
    found: Flows = json.loads((tmp_path / "run" / "flows.json").read_text())
    return found


@pytest.fixture
def judge(flowsieve: Command, scene: Any, tmp_path: Path) -> Command:
    def call(dump: Flows, *options: str) -> Any:
        path = tmp_path / "dump.json"
        path.write_text(json.dumps(dump))
        return flowsieve("verify", scene.scenario, "--flows", path, *options)

    return call


def at(flows: Flows, switch: str) -> Flows:
    return [flow for flow in flows if flow["switch"] == switch]


def test_the_tables_of_the_scenario_are_proved(flowsieve: Command, scene: Any) -> None:
    answer = flowsieve("verify", scene.scenario, "--json")
    assert (answer.status, answer.err) == (0, "")
    assert answer.json.keys() >= KEYS
    found = {key: answer.json[key] for key in KEYS}
    assert found == {
        "holds": True,
        "false_negatives": 0,
        "duplicates": 0,
        "loops": 0,
        "false_positive_share": 0.0,
        "witness": None,
    }


def test_people_read_that_it_is_proved(flowsieve: Command, scene: Any, flows: Flows) -> None:
    answer = flowsieve("verify", scene.scenario)
    assert answer.status == 0
    words = " ".join(answer.out.split())
    assert (
        f"proved: {len(flows)} flows in 3 switches deliver all that is wanted, once, and nothing loops"
        in words
    )
    assert all(len(line) <= 80 for line in answer.out.splitlines())


def test_a_dump_of_a_run_holds(judge: Command, flows: Flows) -> None:
    assert judge(flows).status == 0


def test_a_port_too_few_is_a_loss_with_a_witness(judge: Command, flows: Flows) -> None:
    dump = [{**flow, "out": [name for name in flow["out"] if name != "bob"]} for flow in flows]
    answer = judge(dump, "--json")
    assert answer.status == 1
    assert answer.json["holds"] is False
    assert answer.json["false_negatives"] == 1  # from ann to bob
    witness = answer.json["witness"]
    assert witness["publisher"] == "ann"
    assert witness["event"]["price"] < 100
    assert witness["where"].startswith("bob wants it and does not get it")
    people = judge(dump)
    assert people.status == 1
    assert "does not hold" in people.out
    assert "false negative: ann publishes price = " in people.out


def test_a_flow_too_few_is_a_loss_that_the_witness_shows(judge: Command, flows: Flows) -> None:
    first = at(flows, "s1")[0]
    assert first["dst"] == "ff0e::/19"  # 000: prices below 256, bought
    answer = judge([flow for flow in flows if flow != first], "--json")
    assert answer.status == 1
    event = answer.json["witness"]["event"]
    assert answer.json["false_negatives"] == 2  # from ann to bob and to cy
    assert (answer.json["witness"]["publisher"], event["side"]) == ("ann", "buy")
    assert event["price"] < 256


def test_an_empty_dump_loses_everything(judge: Command) -> None:
    answer = judge([], "--json")
    assert answer.status == 1
    assert answer.json["false_negatives"] == 4  # from ann to bob and cy, from bob to ann and cy
    assert answer.json["false_positive_share"] == 0.0


def test_a_port_too_many_may_deliver_twice(judge: Command, flows: Flows) -> None:
    direct = [flow for flow in at(flows, "s1") if flow["out"] == ["s3"]]
    assert direct
    for flow in direct:
        flow["out"] = ["s2", "s3"]  # and s2 sends to bob what comes from s3 as well
    answer = judge(flows, "--json")
    assert answer.status == 1
    assert answer.json["duplicates"] >= 1
    assert answer.json["false_negatives"] == 0
    assert answer.json["witness"]["kind"] == "duplicate"


def test_a_port_too_many_to_a_host_is_only_unwanted(judge: Command, flows: Flows) -> None:
    for flow in at(flows, "s3"):
        flow["out"] = sorted({*flow["out"], "dee"})
    answer = judge(flows, "--json")
    assert (answer.status, answer.json["holds"]) == (0, True)
    assert answer.json["false_positive_share"] == 0.5  # dee now gets all four, too


def test_a_loop_is_found_though_no_event_takes_it(judge: Command, flows: Flows) -> None:
    ring = [("s1", "s2"), ("s2", "s3"), ("s3", "s1")]
    astray = [{"switch": a, "priority": 2000, "dst": "ff15::/16", "out": [b]} for a, b in ring]
    answer = judge(flows + astray, "--json")
    assert answer.status == 1
    assert (answer.json["loops"], answer.json["false_negatives"]) == (3, 0)
    witness = answer.json["witness"]
    assert (witness["kind"], witness["event"]) == ("loop", None)
    assert witness["where"] == "a packet to ff15:: goes round s2 > s3 > s1 > s2"
    assert "an address that no event has" in judge(flows + astray).out


def test_packets_that_multiply_are_judged_all_the_same(
    flowsieve: Command, scene: Any, tmp_path: Path
) -> None:
    links = [[f"s{a}", f"s{b}"] for a in range(1, 6) for b in range(1, a)]
    scene.replace('[["s1", "s2"], ["s2", "s3"], ["s3", "s1"]]', str(links))
    names = {name for link in links for name in link}
    flood = [
        {"switch": a, "priority": 3000, "dst": "ff0e::/16", "out": sorted(names - {a})} for a in sorted(names)
    ]
    (tmp_path / "flood.json").write_text(json.dumps(flood))
    answer = flowsieve("verify", scene.scenario, "--flows", tmp_path / "flood.json", "--json")
    assert (answer.status, answer.err) == (1, "")
    assert answer.json["loops"] == 5
    assert answer.json["false_positive_share"] is None
    people = flowsieve("verify", scene.scenario, "--flows", tmp_path / "flood.json")
    assert "cannot be told" in people.out


def test_refused_requests_are_told_and_not_asked_for(flowsieve: Command, scene: Any) -> None:
    scene.replace("[network]\n", "[network]\ntable_capacity = 0\n")
    answer = flowsieve("verify", scene.scenario, "--json")
    assert (answer.status, answer.json["holds"]) == (0, True)
    assert "refused: sub cheap of bob" in answer.err


def test_a_dump_that_cannot_be_read_is_bad_input(judge: Command, flows: Flows) -> None:
    flows[1]["out"] = ["s9"]
    answer = judge(flows, "--json")
    assert (answer.status, answer.out) == (2, "")
    assert "dump.json line 1" in answer.err
    assert "'s9'" in answer.err
