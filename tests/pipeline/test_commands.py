"""The pipeline's commands: synth, ingest, stats."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from flowsieve.cli import pipeline_view
from flowsieve.pipeline.reading.schema_file import read_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Flowsieve = Callable[..., Any]


def files(folder: Path, ending: str = "parquet") -> list[Any]:
    return [
        "--schema", folder / "schema.toml",
        "--events", folder / f"events.{ending}",
        "--subscriptions", folder / f"subscriptions.{ending}",
    ]  # fmt: skip


def test_what_synth_writes_stats_reads_and_the_format_changes_nothing(
    spark: SparkSession, flowsieve: Flowsieve, tmp_path: Path
) -> None:
    given = ["synth", "--kind", "zipf", "--attributes", 3, "--events", 500, "--subscriptions", 40]
    drawn = flowsieve(*given, "--out", tmp_path / "p", "--json")
    assert drawn.status == 0, drawn.err
    assert drawn.json["events"] == 500
    assert flowsieve(*given, "--parts", 3, "--format", "csv", "--out", tmp_path / "c").status == 0
    answer = flowsieve("stats", *files(tmp_path / "p"), "--json")
    assert answer.status == 0, answer.err
    result = answer.json
    assert (result["events"], result["subscriptions"]) == (500, 40)
    assert list(result["dimensions"]) == ["a0", "a1", "a2"]
    assert result["matches"] > 0
    assert len(result["covariance"]) == 3
    other = flowsieve("stats", *files(tmp_path / "c", "csv"), "--json").json
    for key in ("events", "dimensions", "covariance", "traffic", "matches"):
        assert result[key] == other[key]


def test_statistics_are_shown_to_people(capsys: pytest.CaptureFixture[str]) -> None:
    read = {
        "rows": 9,
        "good": 8,
        "broken": 1,
        "missing": 0,
        "outside": 0,
        "first_reasons": ["e.csv row 3: x"],
    }
    row = {"variance": 0.25, "matched_per_event": 1.5, "selectivity": 0.1, "overlap": 0.2, "principal": 0.3}
    pipeline_view.statistics(
        {
            "events": 8, "unwanted": 2, "boxes": 3, "matches": 12, "overlap": 0.5, "seconds": 1.0, "executors": 1,
            "traffic": {"mean": 1.0, "median": 1.0, "most": 4, "none": 0}, "dimensions": {"a0": row, "a1": row},
            "read": {"events": read, "subscriptions": read},
        }
    )  # fmt: skip
    shown = capsys.readouterr()
    assert "8 of 9; set aside: 1 broken; 2 wanted by nobody (25.0%)" in " ".join(shown.out.split())
    assert [line.split()[0] for line in shown.out.splitlines() if line.startswith("a")] == ["a0", "a1"]
    assert "e.csv row 3: x" in shown.err


def test_what_is_there_is_not_overwritten_unasked(
    spark: SparkSession, flowsieve: Flowsieve, tmp_path: Path
) -> None:
    for name in ("events.parquet", "subscriptions.parquet", "schema.toml"):
        (tmp_path / name).touch()
    given = ["synth", "--attributes", 2, "--events", 5, "--subscriptions", 5, "--out", tmp_path]
    answer = flowsieve(*given)
    assert answer.status == 2
    assert (
        "has events.parquet, subscriptions.parquet, schema.toml already; --overwrite replaces them"
        in answer.err
    )
    assert not (tmp_path / "schema.toml").read_text()
    assert flowsieve(*given, "--overwrite").status == 0
    assert (tmp_path / "schema.toml").read_text()


def test_ingest_finds_a_schema_and_writes_what_is_good_and_what_is_not(
    spark: SparkSession, flowsieve: Flowsieve, tmp_path: Path
) -> None:
    (tmp_path / "e.csv").write_text("id,temp.C,room\n1,20.5,a\n2,,b\n3,21.5,b\n4,1\n")
    (tmp_path / "f.csv").write_text("id,filter\ns1,temp_C > 20\ns2,room ==\n")
    given = ["--events", tmp_path / "e.csv", "--subscriptions", tmp_path / "f.csv", "--out", tmp_path / "out"]
    refused = flowsieve("ingest", *given, "--infer", tmp_path / "s.toml")
    assert refused.status == 2
    assert "are broken" in refused.err
    answer = flowsieve(
        "ingest", *given, "--infer", tmp_path / "s.toml", "--max-bad", 0.5, "--overwrite", "--json"
    )
    assert answer.status == 0, answer.err
    assert answer.json["events"]["missing"] == 1
    assert answer.json["events"]["broken"] == 1
    assert answer.json["subscriptions"]["good"] == 1
    assert read_schema(tmp_path / "s.toml") == read_schema(tmp_path / "out" / "schema.toml")
    events = pd.read_parquet(tmp_path / "out" / "events.parquet")
    assert events["temp_C"].tolist() == [20.5, 21.5]
    parts = (tmp_path / "out" / "aside.csv").glob("*.csv")
    aside = pd.concat([pd.read_csv(part) for part in parts if part.stat().st_size], ignore_index=True)
    found = {(Path(row.file).name, row.row, row.kind) for row in aside.itertuples()}
    assert found == {("e.csv", 3, "missing"), ("e.csv", 5, "broken"), ("f.csv", 3, "broken")}
    again = flowsieve("stats", *files(tmp_path / "out"))
    assert again.status == 0, again.err


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["ingest", "--events", "e.csv"], "give a schema"),
        (["ingest", "--infer", "s.toml"], "nothing to read"),
        (["synth", "--events", 0, "--subscriptions", 1, "--out", "o"], "0 are to be drawn"),
        (
            ["synth", "--events", 1, "--subscriptions", 1, "--out", "o", "--format", "xls"],
            "there is no format 'xls'",
        ),
        (["synth", "--events", 1, "--subscriptions", 1, "--out", "o", "--parts", 0], "--parts is 0"),
    ],
)
def test_bad_input_is_told_and_changes_nothing(
    spark: SparkSession,
    flowsieve: Flowsieve,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    given: list[Any],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = flowsieve(*given)
    assert answer.status == 2
    assert message in answer.err
    assert not list(tmp_path.iterdir())
