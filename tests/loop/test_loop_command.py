"""The whole loop at a small size: real switches, a controller, applications and the stream on Spark."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flowsieve.lab.lab import labs


@pytest.mark.real
@pytest.mark.slow
def test_the_plan_follows_the_traffic_and_nothing_is_lost(
    tmp_path: Path, flowsieve: Callable[..., Any]
) -> None:
    before = {lab.name for lab in labs()}
    size = ("--topology", "ring:3", "--subscriptions", 30, "--rate", 150, "--seconds", 3, "--window", 4)
    answer = flowsieve(
        "loop", *map(str, size), "--deadline", "20", "--method", "gs+asi", "--out", str(tmp_path), "--json"
    )
    found = json.loads(answer.out)
    assert answer.status == 0 and found["holds"]
    assert found["index"] >= 1 and found["transitions"][0]["ended"] == "arrived"
    assert found["after"] < found["drifted"] > found["before"]
    assert found["lost"] == found["doubled"] == found["strange"] == 0 < found["wanted"]
    rows = [json.loads(line) for line in (tmp_path / "series.jsonl").read_text().splitlines()]
    assert {row["story"] for row in rows} == {"calm", "drifted", "new plan"}
    assert "in force" in (tmp_path / "report.html").read_text()
    assert {lab.name for lab in labs()} == before  # by what it started


@pytest.mark.real
def test_too_small_a_network_is_refused(tmp_path: Path, flowsieve: Callable[..., Any]) -> None:
    answer = flowsieve("loop", "--topology", "line:2", "--out", str(tmp_path / "out"))
    assert answer.status == 2 and "3 hosts" in answer.err
    assert not (tmp_path / "out").exists()
