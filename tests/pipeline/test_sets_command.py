"""The command sets: which hosts share a set, learned on Spark from who wants the same events."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from flowsieve.cli import plan_view

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Flowsieve = Callable[..., Any]
HOSTS, GROUPS = 240, 4

SCENARIO = """\
[schema]
topic = { type = "int", min = 0, max = 399 }
level = { type = "int", min = 0, max = 99 }
[index]
header = "receivers"
sets = "sets.json"
[network]
links = [["s1", "s2"], ["s2", "s3"], ["s3", "s4"]]
[network.hosts]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Hosts that want the topics of their group; neighbours are of different groups."""
    folder, dice = tmp_path_factory.mktemp("sets"), np.random.default_rng(3)
    hosts = "".join(f'h{i} = "s{i * 4 // HOSTS + 1}"\n' for i in range(HOSTS))
    steps = '[[step]]\nrequests = "requests.csv"\n[[step]]\nevents = "events.csv"\n'
    (folder / "scenario.toml").write_text(SCENARIO + hosts + steps)
    rows, requests = ["id,host,filter"], ["op,id,host,filter", "adv,a,h0,True"]
    for i in range(3 * HOSTS):
        host, low = i % HOSTS, 100 * (i % GROUPS) + int(dice.integers(0, 90))
        wish = f"h{host},{low} <= topic < {low + 10} and level < {dice.integers(30, 100)}"
        rows.append(f"s{i},{wish}")
        requests.append(f"sub,s{i},{wish}")
    (folder / "wishes.csv").write_text("\n".join(rows) + "\n")
    (folder / "requests.csv").write_text("\n".join(requests) + "\n")
    events = ["id,host,topic,level"]
    events += [f"e{i},h0,{dice.integers(0, 400)},{dice.integers(0, 100)}" for i in range(1500)]
    (folder / "events.csv").write_text("\n".join(events) + "\n")
    return folder


def test_sets_are_learned_and_a_scenario_that_names_them_sends_fewer_packets(
    spark: SparkSession,
    folder: Path,
    flowsieve: Flowsieve,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    scenario, sets = folder / "scenario.toml", folder / "sets.json"
    missing = flowsieve("run", scenario, "--out", tmp_path / "none")
    assert missing.status == 2
    assert "sets.json" in missing.err

    answer = flowsieve("sets", scenario, "--out", sets, "--json")
    assert answer.status == 0, answer.err
    result = answer.json
    assert (result["hosts"], result["hosts_per_set"]["room"]) == (HOSTS, 110)
    packets = result["packets_per_event"]
    assert packets["learned"] < 0.7 * packets["neighbours"]
    assert packets["neighbours"] <= 1.1 * packets["random"]
    assert 200 <= result["judged_on"]["events"] <= 400
    learned = json.loads(sets.read_text())
    assert sorted(host for row in learned["sets"] for host in row) == sorted(f"h{i}" for i in range(HOSTS))
    plan_view.sets(result)
    shown = " ".join(capsys.readouterr().out.split())
    assert f"learned {packets['learned']:.3f}" in shown

    files = ["--events", folder / "events.csv", "--subscriptions", folder / "wishes.csv"]
    again = flowsieve("sets", scenario, *files, "--out", tmp_path / "again.json", "--json")
    assert again.status == 0, again.err
    assert json.loads((tmp_path / "again.json").read_text()) == learned

    report = flowsieve("run", scenario, "--out", tmp_path / "out", "--json").json
    assert (report["false_negatives"], report["false_positives"], report["repeats"]) == (0, 0, 0)
    assert report["sets"] == len(learned["sets"])
    plain = folder / "plain.toml"
    plain.write_text(scenario.read_text().replace('sets = "sets.json"\n', ""))
    before = flowsieve("run", plain, "--out", tmp_path / "plain", "--json").json
    assert before["wanted"] == report["wanted"]

    def sent(name: str) -> int:
        return len((tmp_path / name / "packets.csv").read_text().splitlines())

    assert sent("out") < 0.7 * sent("plain")
    assert flowsieve("verify", scenario, "--json").json["holds"]


def test_bad_input_is_named_before_anything_is_written(
    spark: SparkSession, folder: Path, flowsieve: Flowsieve, tmp_path: Path
) -> None:
    scenario, out = folder / "scenario.toml", tmp_path / "sets.json"
    hostless, stranger = tmp_path / "hostless.csv", tmp_path / "stranger.csv"
    hostless.write_text("id,filter\ns1,topic < 3\n")
    stranger.write_text("id,host,filter\ns1,nobody,topic < 3\n")
    few = tmp_path / "few.toml"
    few.write_text(
        scenario.read_text().partition("[index]")[0]
        + '[network]\nlinks = [["s1", "s2"]]\n[network.hosts]\na = "s1"\n'
    )
    for given, said in (
        ([scenario, "--max-sets", 2], "240 hosts in sets of 110 take 3; right is 3 or more"),
        ([scenario, "--max-sets", 0], "--max-sets is 0"),
        ([scenario, "--subscriptions", hostless], "there is no column 'host'"),
        ([scenario, "--subscriptions", stranger], "host 'nobody' is none that the network reaches"),
        ([few], "one set has room for 112: there is nothing to learn"),
    ):
        answer = flowsieve("sets", *given, "--out", out)
        assert answer.status == 2
        assert said in " ".join(answer.err.split())
        assert not out.exists()
    tight = tmp_path / "tight.toml"
    text = scenario.read_text().replace('"requests.csv"', f'"{folder}/requests.csv"')
    text = text.replace('"events.csv"', f'"{folder}/events.csv"')
    tight.write_text(text.replace("[network]\n", "[network]\ntable_capacity = 20\n"))
    answer = flowsieve("sets", tight, "--out", out)
    assert (answer.status, out.exists()) == (1, False)
    assert "table_capacity is 20" in " ".join(answer.err.split())


def test_sets_that_do_not_suit_the_network_are_named_where_the_scenario_names_them(
    folder: Path, flowsieve: Flowsieve, tmp_path: Path
) -> None:
    scenario = tmp_path / "scenario.toml"
    scenario.write_text((folder / "scenario.toml").read_text().partition("[[step]]")[0])
    for sets, said in (
        ({"sets": [["h1", "gone"]]}, "the sets have host 'gone'"),
        ({"sets": [["h1"], ["h1"]]}, "host 'h1' is in two sets"),
        ({"parts": []}, "flowsieve sets"),
    ):
        (tmp_path / "sets.json").write_text(json.dumps(sets))
        answer = flowsieve("verify", scenario)
        assert answer.status == 2
        assert said in " ".join(answer.err.split())
    assert "sets.json" in answer.err


def test_advice_reads_files_as_the_pipeline_does_and_learns_sets_where_it_takes_several(
    spark: SparkSession, folder: Path, flowsieve: Flowsieve, tmp_path: Path
) -> None:
    network = tmp_path / "network.toml"
    text = (folder / "scenario.toml").read_text().partition("[[step]]")[0]
    network.write_text(text.replace('header = "receivers"\nsets = "sets.json"\n', ""))
    for name, rows in (("wishes", 120), ("events", 400)):
        lines = (folder / f"{name}.csv").read_text().splitlines()[: rows + 1]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    files = ["--events", tmp_path / "events.csv", "--subscriptions", tmp_path / "wishes.csv"]
    answer = flowsieve("advise", network, *files, "--publishers", 2, "--json")
    assert answer.status == 0, answer.err
    found = answer.json
    assert found["recommended"] in found["headers"]
    load = found["workload"]
    assert (load["hosts"], load["publishers"]) == (HOSTS, 2)
    assert load["subscriptions"] == {"given": 120, "used": 120}
    assert sum(load["events"].values()) == 400
    row = found["headers"]["receivers"]
    assert (row["unwanted_per_wanted"], row["operations_per_request"]) == (0, 0)
    assert 3 <= row["sets"] <= 4
    assert row["filters_held"] == 120
