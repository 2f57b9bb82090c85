"""The files that commands leave behind are read back as what was written."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from flowsieve.config.files import make_folder
from flowsieve.content.event import EventBatch
from flowsieve.content.schema import Schema
from flowsieve.errors import BadScenario
from flowsieve.index.dzset import DzSet
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.scenario.flow_files import read_flows
from flowsieve.scenario.play import Played, play
from flowsieve.scenario.read import read_scenario
from flowsieve.scenario.report import write_covers, write_encoded, write_run

FILES = ["deliveries.csv", "flows.json", "matches.csv", "packets.csv", "report.json"]


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def played(scene: Any) -> Played:
    scene.replace("e1,ann", '"a ""strange"", id",ann', "events.csv")
    return play(read_scenario(scene.scenario))


def test_a_run_is_five_files_that_can_be_read_back(played: Played, tmp_path: Path) -> None:
    report = write_run(played, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == FILES
    assert json.loads((tmp_path / "report.json").read_text()) == report == played.report()
    assert table(tmp_path / "deliveries.csv")[0] == {
        "event": 'a "strange", id',
        "host": "bob",
        "dst": table(tmp_path / "packets.csv")[0]["dst"],
    }
    assert table(tmp_path / "matches.csv")[0] == {"event": 'a "strange", id', "subscription": "cheap"}
    flows = read_flows(tmp_path / "flows.json", played.stage.scenario)
    assert {switch: set(part) for switch, part in flows.items()} == {
        switch: set(part) for switch, part in played.stage.tables().items()
    }


def test_a_run_in_which_nothing_happened_has_the_same_columns(scene: Any, tmp_path: Path) -> None:
    scene.write("scenario.toml", scene.scenario.read_text().partition("[[step]]")[0])
    write_run(play(read_scenario(scene.scenario)), tmp_path)
    assert (tmp_path / "deliveries.csv").read_text().split() == ['"event","host","dst"']
    assert json.loads((tmp_path / "flows.json").read_text()) == []


def test_a_file_that_cannot_be_written_is_told_by_name(played: Played, tmp_path: Path) -> None:
    (tmp_path / "matches.csv").mkdir()
    with pytest.raises(BadScenario, match=r"matches.csv: cannot be written: .*; right is a folder"):
        write_run(played, tmp_path)


def test_folders_are_made_with_those_above_them_but_not_over_a_file(tmp_path: Path) -> None:
    make_folder(tmp_path / "a" / "b")
    make_folder(tmp_path / "a" / "b")
    (tmp_path / "a" / "b" / "c").write_text("taken")
    for folder in ("a/b/c", "a/b/c/d"):
        with pytest.raises(BadScenario, match="cannot be written"):
            make_folder(tmp_path / folder)
    assert (tmp_path / "a" / "b" / "c").read_text() == "taken"


def test_covers_are_written_a_line_each_and_sorted(tmp_path: Path) -> None:
    write_covers(tmp_path / "f.jsonl", [("é", DzSet.of("011", "001", "1")), ("b", DzSet.of(""))])
    assert [json.loads(line) for line in (tmp_path / "f.jsonl").read_text().splitlines()] == [
        {"id": "é", "dz": ["001", "011", "1"]},
        {"id": "b", "dz": [""]},
    ]
    write_covers(tmp_path / "none.jsonl", [])
    assert (tmp_path / "none.jsonl").read_text() == ""


def test_events_are_written_in_their_order_with_no_dz_where_they_have_none(tmp_path: Path) -> None:
    schema = Schema.parse({name: {"type": "int", "min": 0, "max": 99} for name in "AB"})
    values = [{"A": 65, "B": 55}, {"A": 100, "B": 0}, {"A": 0, "B": 0}]
    events = EventBatch.from_events(schema, "h", values)
    screened = write_encoded(tmp_path / "e.csv", events, RegularPlan.make(schema, bits=6))
    ids = events.ids.tolist()
    assert table(tmp_path / "e.csv") == [
        {"id": ids[0], "dz": "110010"},
        {"id": ids[1], "dz": ""},
        {"id": ids[2], "dz": "000000"},
    ]
    assert (screened.rejected, screened.reasons) == (1, (f"{ids[1]}: A = 100 is above 99",))
