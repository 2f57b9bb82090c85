"""The commands plan and evaluate."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from flowsieve.cli import plan_view
from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.index.plan import plan_from_json
from flowsieve.pipeline.reading.schema_file import read_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Flowsieve = Callable[..., Any]
KEYS = (
    "fpr",
    "false_positives",
    "false_negatives",
    "deliveries",
    "matches",
    "prefixes",
    "prefixes_max",
    "seconds",
)


@pytest.fixture(scope="module")
def workload(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from flowsieve.pipeline.reading.schema_file import write_schema
    from flowsieve.pipeline.runtime.frame_files import write_frame
    from flowsieve.pipeline.synth.synth import synth_events, synth_subscriptions
    from flowsieve.pipeline.synth.workload import Workload

    folder = tmp_path_factory.mktemp("w")
    drawn = Workload("zipf", attributes=3, bits=8, seed=5)
    write_schema(folder / "schema.toml", drawn.schema)
    write_frame(synth_events(spark, drawn, 1500, 2), folder / "events.parquet")
    write_frame(synth_subscriptions(spark, drawn, 60, 1), folder / "subscriptions.parquet")
    return folder


def data(folder: Path) -> list[Any]:
    return ["--events", folder / "events.parquet", "--subscriptions", folder / "subscriptions.parquet"]


def planned(flowsieve: Flowsieve, workload: Path, out: Path, *more: Any) -> dict[str, Any]:
    answer = flowsieve(
        "plan",
        "--schema",
        workload / "schema.toml",
        *data(workload),
        "--bits",
        12,
        "--out",
        out,
        "--json",
        *more,
    )
    assert answer.status == 0, answer.err
    result: dict[str, Any] = answer.json
    return result


def brute_force(workload: Path, plan: Path, max_dz: int) -> tuple[int, int]:
    """(deliveries, matches) over all events, from the core alone."""
    schema = read_schema(workload / "schema.toml")
    events = EventBatch.from_frame(schema, pd.read_parquet(workload / "events.parquet"), needs_host=False)
    made = plan_from_json(json.loads(plan.read_text()), schema)
    column = made.encode_batch(events)
    deliveries = matches = 0
    for text in pd.read_parquet(workload / "subscriptions.parquet")["filter"]:
        wanted = Filter.parse(text, schema)
        cover = made.cover(wanted, max_dz)
        deliveries += len(set(column.rows[cover.covers_many(column.hi, column.lo, column.length)].tolist()))
        matches += int(wanted.matches_batch(events).sum())
    return deliveries, matches


def test_a_plan_is_judged_on_what_was_held_back_from_it_and_on_all_if_asked(
    workload: Path, flowsieve: Flowsieve, tmp_path: Path
) -> None:
    out = tmp_path / "plan.json"
    result = planned(flowsieve, workload, out, "--method", "gs+asi", "--max-dz", 0)
    assert result["method"] == "gs+asi"
    answer = flowsieve("evaluate", "--plan", out, *data(workload), "--max-dz", 8, "--json")
    assert answer.status == 0, answer.err
    assert all(key in answer.json for key in KEYS)
    assert 250 <= answer.json["events"] <= 350
    assert "held back" in answer.json["judged_on"]
    everything = flowsieve("evaluate", "--plan", out, *data(workload), "--max-dz", 8, "--all", "--json").json
    assert everything["events"] == 1500
    assert (everything["deliveries"], everything["matches"]) == brute_force(workload, out, 8)
    rows = everything["subscriptions"]
    assert len(rows) == 60
    for key in ("false_positives", "deliveries", "matches", "prefixes"):
        assert sum(row[key] for row in rows) == everything[key]
    assert everything["fpr"] == everything["false_positives"] / everything["deliveries"]


def test_covers_for_a_whole_table_are_judged_by_its_entries(
    workload: Path, flowsieve: Flowsieve, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "plan.json"
    planned(flowsieve, workload, out, "--method", "lw", "--max-dz", 0)
    single = flowsieve("evaluate", "--plan", out, *data(workload), "--max-dz", 4, "--json").json
    answer = flowsieve("evaluate", "--plan", out, *data(workload), "--table", 100, "--json")
    assert answer.status == 0, answer.err
    assert (answer.json["table"], answer.json["false_negatives"]) == (100, 0)
    assert 80 < answer.json["prefixes"] <= 100 < single["prefixes"]
    assert answer.json["fpr"] < single["fpr"]
    assert "held back" in answer.json["judged_on"]
    assert max(row["prefixes"] for row in answer.json["subscriptions"]) == answer.json["prefixes_max"]
    plan_view.evaluation(answer.json, [answer.json])
    assert "covers for a table of 100 entries" in " ".join(capsys.readouterr().out.split())

    everything = ["evaluate", "--plan", out, *data(workload), "--all"]
    refused = flowsieve(*everything, "--table", 100)
    assert refused.status == 2
    assert "give others: --sample E2" in " ".join(refused.err.split())
    sample = ["--sample", workload / "events.parquet"]
    assert flowsieve(*everything, "--table", 100, *sample, "--json").json["events"] == 1500
    none = flowsieve(*everything, "--table", 0)
    assert none.status == 2
    assert "--table is 0; right is a number of entries from 1 on" in " ".join(none.err.split())


def test_other_events_than_those_planned_on_are_all_judged_for_several_plans_at_once(
    spark: SparkSession,
    workload: Path,
    flowsieve: Flowsieve,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    one, other = tmp_path / "one.json", tmp_path / "other.json"
    planned(flowsieve, workload, one)
    planned(flowsieve, workload, other, "--method", "ri")
    assert json.loads(one.read_text())["planned"]["method"].startswith("auto: ")
    later = tmp_path / "later.csv"
    frame = pd.read_parquet(workload / "events.parquet").head(100)
    frame.to_csv(later, index=False)
    given = [
        "--plan",
        one,
        "--plan",
        other,
        "--events",
        later,
        "--subscriptions",
        workload / "subscriptions.parquet",
    ]
    answer = flowsieve("evaluate", *given, "--max-dz", 0, "--json")
    assert answer.status == 0, answer.err
    assert [row["events"] for row in answer.json["plans"]] == [100, 100]
    assert answer.json["plans"][0]["fpr"] < answer.json["plans"][1]["fpr"]
    plan_view.evaluation(answer.json, answer.json["plans"])
    shown = " ".join(capsys.readouterr().out.split())
    assert f"judged on 100 events, {answer.json['matches']:,} matches: all of them; any number of dz" in shown


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--method", "gs+foo"], "there is no method 'gs+foo'"),
        (["--bits", 0], "--bits is 0; right is 1 to"),
        (["--max-dz", -1], "--max-dz is -1"),
        (["--hold-back", 1.5], "right is 0 to below 1"),
        (["--method", "evs+ri", "--dimensions", 9], "right is a number from 1 to 3"),
    ],
)
def test_bad_options_are_named(
    more: list[Any], said: str, workload: Path, flowsieve: Flowsieve, tmp_path: Path
) -> None:
    given = ["--schema", workload / "schema.toml", *data(workload), "--out", tmp_path / "p.json"]
    answer = flowsieve("plan", *given, *more)
    assert answer.status == 2
    assert said in " ".join(answer.err.split())
    assert not (tmp_path / "p.json").exists()


def test_what_is_no_plan_is_named(workload: Path, flowsieve: Flowsieve, tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    for text, said in (
        ("{", "is no JSON"),
        ('{"kind": "regular"}', "does not say its schema"),
        ("[]", "does not say"),
    ):
        bad.write_text(text)
        answer = flowsieve("evaluate", "--plan", bad, *data(workload))
        assert answer.status == 2
        assert said in " ".join(answer.err.split())
