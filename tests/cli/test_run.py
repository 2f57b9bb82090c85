"""`flowsieve run`: a report for machines, a summary for people, files for both."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flowsieve.scenario import play

REPORT = {
    "requests", "refused", "events", "rejected", "deliveries", "wanted", "false_positives", "false_negatives",
    "duplicates", "repeats", "fpr", "flows", "flows_max", "flow_ops", "link_packets", "bits", "seconds",
}  # fmt: skip
FILES = {"report.json", "deliveries.csv", "matches.csv", "packets.csv", "flows.json"}

Command = Callable[..., Any]


def test_the_report_is_the_one_json_object_on_standard_output(
    flowsieve: Command, scene: Any, tmp_path: Path
) -> None:
    answer = flowsieve("run", scene.scenario, "--out", tmp_path / "out", "--json")
    assert (answer.status, answer.err) == (0, "")
    assert answer.json.keys() >= REPORT
    assert answer.json == json.loads((tmp_path / "out" / "report.json").read_text())
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES


def test_people_read_a_summary_that_fits_80_columns(flowsieve: Command, scene: Any, tmp_path: Path) -> None:
    answer = flowsieve("run", scene.scenario, "--out", tmp_path / "out")
    assert (answer.status, answer.err) == (0, "")
    assert all(len(line) <= 80 for line in answer.out.splitlines()), answer.out
    words = " ".join(answer.out.split())
    assert "6, 2 rejected" in words
    assert "4 copies, 4 wanted; 0 false positives (0.0%)" in words
    assert "all that was wanted arrived, once" in words
    assert "rejected: e5: outside the advertisements of bob" in words


def test_many_rejected_events_are_counted_and_a_few_shown(
    flowsieve: Command, scene: Any, tmp_path: Path
) -> None:
    scene.write(
        "events.csv", "id,host,price,side\n" + "".join(f"e{n},ann,{2000 + n},buy\n" for n in range(40))
    )
    answer = flowsieve("run", scene.scenario, "--out", tmp_path)
    assert answer.status == 0
    assert answer.out.count("rejected: e") == 5
    assert "… and 35 more" in answer.out


@pytest.mark.parametrize("slice", [500, 1])
def test_a_refused_request_is_status_1_and_says_what_to_do(
    flowsieve: Command, scene: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slice: int
) -> None:
    monkeypatch.setattr(play, "SLICE", slice)
    scene.replace("[network]\n", "[network]\ntable_capacity = 0\n")
    scene.write("requests.csv", (scene.folder / "requests.csv").read_text() + "unsub,cheap,bob,\n")
    answer = flowsieve("run", scene.scenario, "--out", tmp_path, "--json")
    assert answer.status == 1
    assert (answer.json["requests"], answer.json["refused"], answer.json["false_negatives"]) == (7, 4, 0)
    people = " ".join(flowsieve("run", scene.scenario, "--out", tmp_path).out.split())
    assert "requests refused: 4" in people
    assert "refused: sub cheap of bob: switch s1 needs at least 1 entry and has room for 0" in people
    assert "raise table_capacity in [network]" in people


def test_what_looks_like_markup_is_printed_as_it_is(flowsieve: Command, scene: Any, tmp_path: Path) -> None:
    folder = tmp_path / "[bold]:100:[/bold]"
    answer = flowsieve("run", scene.scenario, "--out", folder)
    assert answer.status == 0
    assert "[bold]:100:[/bold]" in "".join(answer.out.split())


@pytest.mark.parametrize("where", ["taken", "taken/below", "full"])
def test_a_place_that_cannot_be_written_is_bad_input(
    flowsieve: Command, scene: Any, tmp_path: Path, where: str
) -> None:
    (tmp_path / "taken").write_text("mine")
    (tmp_path / "full" / "flows.json").mkdir(parents=True)
    answer = flowsieve("run", scene.scenario, "--out", tmp_path / where, "--json")
    assert (answer.status, answer.out) == (2, "")
    assert str(tmp_path / where) in answer.err
    assert "cannot be written" in answer.err
    assert (tmp_path / "taken").read_text() == "mine"


def test_a_network_that_there_is_not_is_bad_input(flowsieve: Command, scene: Any, tmp_path: Path) -> None:
    answer = flowsieve("run", scene.scenario, "--out", tmp_path / "out", "--network", "ns3")
    assert (answer.status, answer.out) == (2, "")
    assert "there is no network 'ns3' here; right is 'embedded' or 'ovs'" in answer.err
    assert not (tmp_path / "out").exists()


def test_the_example_is_played_and_proved(flowsieve: Command, tmp_path: Path) -> None:
    example = Path(__file__).parents[2] / "examples" / "stock" / "scenario.toml"
    ran = flowsieve("run", example, "--out", tmp_path, "--json").json
    assert (ran["events"], ran["rejected"], ran["false_negatives"], ran["duplicates"]) == (400, 3, 0, 0)
    assert ran["wanted"] > 300
    assert flowsieve("verify", example, "--flows", tmp_path / "flows.json").status == 0
    order = ("symbol=OATS", "side=sell", "price=240", "lots=9")
    assert flowsieve("explain", example, "--host", "paris", *order, "--json").json["matches"] == [
        "oats-cheap"
    ]
    assert flowsieve("quote", example, "--host", "rome", 'symbol == "COD" and price < 300').status == 0
