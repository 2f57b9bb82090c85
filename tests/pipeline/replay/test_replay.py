"""Events replayed on Spark: what `flowsieve run` counts for the same events and tables, however they are split."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from replay_scenario import SCENARIO, write_scenario

from flowsieve.content.event import EventBatch
from flowsieve.errors import SwitchError
from flowsieve.index.plan import plan_to_json
from flowsieve.index.plans.selective import SelectivePlan
from flowsieve.pipeline.reading.ingest import read_events
from flowsieve.pipeline.replay.network_snapshot import NetworkSnapshot, ReplayTraffic
from flowsieve.pipeline.replay.replay import Replayed, at_hosts, replay
from flowsieve.scenario.flow_files import read_flows
from flowsieve.scenario.play import play, settled
from flowsieve.scenario.read import read_scenario

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Flowsieve = Callable[..., Any]
TOTALS = (
    "events", "rejected", "deliveries", "wanted", "false_positives", "false_negatives", "duplicates", "repeats",
    "fpr", "link_packets", "flows", "flows_max",
)  # fmt: skip


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    return write_scenario(tmp_path)


def test_it_counts_what_a_run_counts(
    spark: SparkSession, flowsieve: Flowsieve, scenario: Path, tmp_path: Path
) -> None:
    run = flowsieve("run", scenario, "--out", tmp_path / "out", "--json")
    report = run.json
    assert report["false_positives"] > 0
    assert report["rejected"] > 0
    flows = tmp_path / "out" / "flows.json"
    for file in ("events.csv", "events.parquet"):
        answer = flowsieve("replay", scenario, "--flows", flows, "--events", tmp_path / file, "--json")
        assert answer.status == 0, answer.err
        assert {name: answer.json[name] for name in TOTALS} == {name: report[name] for name in TOTALS}
    found = answer.json
    rows = pd.read_csv(tmp_path / "out" / "deliveries.csv", dtype=str)
    received = {
        host: figures["deliveries"] for host, figures in found["hosts"].items() if figures["deliveries"]
    }
    assert received == rows["host"].value_counts().to_dict()
    sent = pd.read_csv(tmp_path / "out" / "packets.csv", dtype=str)
    published = {
        host: figures["published"] for host, figures in found["hosts"].items() if figures["published"]
    }
    assert published == sent["host"].value_counts().to_dict()
    played = play(read_scenario(scenario))
    links = {(link["from"], link["to"]): link["packets"] for link in found["links"]}
    assert links == played.stage.network.link_packets
    for name in ("deliveries", "false_positives", "link_packets"):
        assert sum(row[name] for row in found["switches"].values()) == found[name]
    for row in found["switches"].values():
        assert row["received"] >= row["unmatched"] >= 0


def test_a_dump_of_other_tables_is_judged_by_the_same_subscriptions(
    spark: SparkSession, flowsieve: Flowsieve, scenario: Path, tmp_path: Path
) -> None:
    assert flowsieve("run", scenario, "--out", tmp_path / "out").status == 0
    flows = json.loads((tmp_path / "out" / "flows.json").read_text())
    (tmp_path / "fewer.json").write_text(json.dumps([flow for flow in flows if flow["switch"] != "s2"]))
    given = ["replay", scenario, "--events", tmp_path / "events.csv"]
    own = flowsieve(*given, "--json")
    fewer = flowsieve(*given, "--flows", tmp_path / "fewer.json", "--json")
    assert own.status == 0
    assert fewer.status == 1
    assert own.json["wanted"] == fewer.json["wanted"]
    assert fewer.json["false_negatives"] >= own.json["hosts"]["bob"]["wanted"] > 0
    assert fewer.json["switches"]["s2"]["received"] == fewer.json["switches"]["s2"]["unmatched"]
    shown = flowsieve(*given, "--flows", tmp_path / "fewer.json")
    assert "wanted and not arrived" in shown.out
    assert "busiest links" in shown.out


def test_the_split_of_the_events_changes_nothing(spark: SparkSession, scenario: Path, tmp_path: Path) -> None:
    setting = read_scenario(scenario)
    snapshot = NetworkSnapshot.of(settled(setting).plane.controller.view())
    intake = at_hosts(read_events(spark, tmp_path / "events.csv", setting.schema), setting.topology)
    one, seven = (replay(intake.events.repartition(parts), snapshot) for parts in (1, 7))
    assert one.to_json() == seven.to_json()
    assert one.total("deliveries") > 0
    none = replay(intake.events.where("false"), snapshot)
    assert none.to_json()["deliveries"] == none.to_json()["link_packets"] == 0


def test_an_event_that_is_sent_several_times_counts_as_in_a_run(scenario: Path, tmp_path: Path) -> None:
    schema = read_scenario(scenario).schema
    parts = [{"price": (0, 500)}, {"price": (200, 800), "ratio": (-0.5, 0.5)}, {"ratio": (0.0, 1.0)}]
    plan = SelectivePlan.make(schema, parts, bits=8)
    (tmp_path / "plan.json").write_text(json.dumps(plan_to_json(plan)))
    setting = read_scenario(
        write_scenario(
            tmp_path, text=SCENARIO.replace("bits = 9", 'plan = "plan.json"').replace("trees = 4", "")
        )
    )
    played = play(setting)
    report = played.report()
    snapshot = NetworkSnapshot.of(played.stage.plane.controller.view())
    traffic = ReplayTraffic.none(snapshot.wiring)
    events = played.stage.scenario.steps[-1].events  # type: ignore[union-attr]
    good = events.take(~events.faults()[0])
    source = np.array([snapshot.wiring.hosts.index(host) for host in good.hosts])
    snapshot.send(good, source, traffic)
    found = Replayed(snapshot.wiring, traffic).to_json()
    assert report["repeats"] > 0  # type: ignore[operator]
    for name in set(TOTALS) - {"events", "rejected", "flows", "flows_max"}:
        assert found[name] == report[name], name


def test_duplicates_and_loops_are_seen(spark: SparkSession, scenario: Path, tmp_path: Path) -> None:
    setting = read_scenario(scenario)
    stage = settled(setting)
    events = read_events(spark, tmp_path / "events.csv", setting.schema)
    good = at_hosts(events, setting.topology, "ann").events.limit(20)

    def flood(out: dict[str, list[str]]) -> Replayed:
        flows = [
            {"switch": switch, "priority": 1, "dst": str(setting.index.encoding.tag.group), "out": names}
            for switch, names in out.items()
        ]
        (tmp_path / "flood.json").write_text(json.dumps(flows))
        return replay(
            good,
            NetworkSnapshot.of(stage.plane.controller.view(read_flows(tmp_path / "flood.json", setting))),
        )

    twice = flood({"s1": ["s2", "s4"], "s2": ["s3"], "s4": ["s3"], "s3": ["cy"]})
    assert twice.total("deliveries") == 40
    assert twice.total("duplicates") == 20
    assert twice.links["s1", "s2"] == twice.links["s4", "s3"] == 20
    circling = flood({"s1": ["s2"], "s2": ["s3"], "s3": ["s4"], "s4": ["s1"]})
    assert circling.to_json()["expired"] == 20
    with pytest.raises(SwitchError, match="multiplies on a loop"):
        flood({switch: [*setting.topology.neighbours(switch)] for switch in setting.topology.switches})


def test_nobody_subscribed_and_everything_is_unwanted(scenario: Path, tmp_path: Path) -> None:
    (tmp_path / "requests.csv").write_text("op,id,host,filter\nadv,a,ann,True\n")
    setting = read_scenario(scenario)
    flows = [{"switch": "s1", "priority": 1, "dst": str(setting.index.encoding.tag.group), "out": ["s2"]}]
    flows += [{"switch": "s2", "priority": 1, "dst": str(setting.index.encoding.tag.group), "out": ["bob"]}]
    (tmp_path / "flows.json").write_text(json.dumps(flows))
    snapshot = NetworkSnapshot.of(
        settled(setting).plane.controller.view(read_flows(tmp_path / "flows.json", setting))
    )
    event = {"price": 1, "ratio": 0.5, "side": "buy", "name": "x"}
    traffic = ReplayTraffic.none(snapshot.wiring)
    snapshot.send(EventBatch.from_events(setting.schema, "ann", [event] * 3), np.zeros(3, np.int64), traffic)
    found = Replayed(snapshot.wiring, traffic).to_json()
    assert (found["wanted"], found["deliveries"], found["false_positives"]) == (0, 3, 3)


def test_who_publishes_has_to_be_known(
    spark: SparkSession, flowsieve: Flowsieve, scenario: Path, tmp_path: Path
) -> None:
    lines = (tmp_path / "events.csv").read_text().splitlines()
    (tmp_path / "strange.csv").write_text("\n".join([*lines[:9], "e9,zoe,5,0.5,buy,n1"]) + "\n")
    given = ["replay", scenario, "--events"]
    strange = flowsieve(*given, tmp_path / "strange.csv")
    assert strange.status == 2
    assert "strange.csv row 10: host 'zoe' is none of" in strange.err
    kept = flowsieve(*given, tmp_path / "strange.csv", "--max-bad", 0.2, "--json")
    assert kept.json["events"] == 8
    pd.read_csv(tmp_path / "events.csv").drop(columns="host").to_csv(tmp_path / "plain.csv", index=False)
    plain = flowsieve(*given, tmp_path / "plain.csv")
    assert plain.status == 2
    assert "there is no column 'host'" in plain.err
    unknown = flowsieve(*given, tmp_path / "plain.csv", "--host", "an")
    assert unknown.status == 2
    assert "'ann'" in unknown.err
    answer = flowsieve(*given, tmp_path / "plain.csv", "--host", "ann", "--json")
    assert answer.json["hosts"]["ann"]["published"] == answer.json["published"] > 3000
