"""The commands on a scenario in which packets of some hosts name their receivers, and those of others go by dz."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]


@pytest.fixture
def mixed(scene: Any) -> Any:
    scene.replace("bits = 11", 'bits = 9\nlabels = ["a*", "dee"]')
    return scene


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def run(flowsieve: Command, scene: Any, out: Path, *options: str) -> Any:
    answer = flowsieve("run", scene.scenario, "--out", out, "--json", *options)
    assert (answer.status, answer.err) == (0, "")
    return answer.json


def test_each_host_sends_what_it_is_said_to_send(flowsieve: Command, mixed: Any, tmp_path: Path) -> None:
    report = run(flowsieve, mixed, tmp_path / "out")
    assert (report["deliveries"], report["wanted"], report["false_negatives"]) == (4, 4, 0)
    assert (report["duplicates"], report["repeats"], report["sets"], report["label_hosts"]) == (0, 0, 1, 2)
    assert report["bits"] == 9
    sent = {
        (row["event"], row["host"], row["src"], row["dst"][:4]) for row in rows(tmp_path / "out/packets.csv")
    }
    assert sent == {
        ("e1", "ann", "", "ff1e"),
        ("e2", "ann", "", "ff1e"),
        ("e6", "ann", "", "ff1e"),
        ("e3", "bob", "", "ff0e"),
    }
    flows = json.loads((tmp_path / "out/flows.json").read_text())
    assert {tuple(flow) for flow in flows} == {("switch", "table", "priority", "dst", "out")}
    assert report["flow_ops"] == report["flows"] == len(flows)
    assert {flow["dst"][:4] for flow in flows} == {"ff0e", "ff1e"}
    assert all(flow["table"] == 0 for flow in flows if flow["dst"].startswith("ff0e"))


@pytest.mark.real
def test_real_switches_do_the_same(flowsieve: Command, mixed: Any, tmp_path: Path) -> None:
    embedded, real = (
        run(flowsieve, mixed, tmp_path / kind, "--network", kind) for kind in ("embedded", "ovs")
    )
    for name in ("deliveries.csv", "matches.csv", "packets.csv"):
        assert sorted((tmp_path / "ovs" / name).read_text().splitlines()) == sorted(
            (tmp_path / "embedded" / name).read_text().splitlines()
        )
    assert (tmp_path / "ovs/flows.json").read_text() == (tmp_path / "embedded/flows.json").read_text()
    assert embedded.keys() == real.keys()
    for key in ("flow_ops", "link_packets", "false_positives", "deliveries"):
        assert real[key] == embedded[key]


def test_a_dump_is_proved_for_both_and_one_without_an_entry_is_not(
    flowsieve: Command, mixed: Any, tmp_path: Path
) -> None:
    run(flowsieve, mixed, tmp_path / "out")
    whole, less = json.loads((tmp_path / "out/flows.json").read_text()), tmp_path / "less.json"
    answer = flowsieve("verify", mixed.scenario, "--flows", tmp_path / "out/flows.json", "--json")
    assert (answer.status, answer.json["holds"]) == (0, True)
    for group, publisher in (("ff0e", "bob"), ("ff1e", "ann")):
        less.write_text(json.dumps([flow for flow in whole if not flow["dst"].startswith(group)]))
        answer = flowsieve("verify", mixed.scenario, "--flows", less, "--json")
        assert (answer.status, answer.json["holds"]) == (1, False)
        assert answer.json["witness"]["publisher"] == publisher
    stray = {"switch": "s1", "table": 16, "priority": 5, "dst": "ff0e::/ffff::", "out": ["s2"]}
    less.write_text(json.dumps([*whole, stray]))
    answer = flowsieve("verify", mixed.scenario, "--flows", less, "--json")
    assert (answer.status, "is one of several tables" in answer.err) == (2, True)


def test_explain_and_quote_follow_the_publisher(flowsieve: Command, mixed: Any) -> None:
    for host, group in (("ann", "ff1e"), ("bob", "ff0e")):
        answer = flowsieve("explain", mixed.scenario, "--host", host, "price=30", "side=sell", "--json")
        assert (answer.status, answer.json["missed"]) == (0, [])
        assert {hop["dst"][:4] for hop in answer.json["hops"]} == {group}
    quoted = flowsieve("quote", mixed.scenario, "--host", "dee", "price < 40", "--json").json
    assert (quoted["told"], set(quoted["entries"])) == (["ann"], {"s2", "s3"})
    assert 0 <= quoted["false_positive_share"] < 1
    assert flowsieve("quote", mixed.scenario, "--host", "bob", "price < 40", "--json").json["entries"] == {}


def test_dz_make_do_with_the_room_that_labels_leave(flowsieve: Command, mixed: Any, tmp_path: Path) -> None:
    text = (mixed.folder / "requests.csv").read_text()
    more = "".join(f"sub,x{n},dee,price == {16 * n}\n" for n in range(30))
    mixed.write("requests.csv", text + more)
    free = run(flowsieve, mixed, tmp_path / "free")
    mixed.replace("[network]\n", "[network]\ntable_capacity = 16\n")
    tight = run(flowsieve, mixed, tmp_path / "tight")
    assert free["flows_max"] > 16 >= tight["flows_max"]
    assert (tight["refused"], tight["false_negatives"]) == (0, 0)
    mixed.replace("table_capacity = 16", "table_capacity = 5")
    answer = flowsieve("run", mixed.scenario, "--out", tmp_path / "out")
    assert answer.status == 2
    assert "labels that name receivers take 9 entries" in answer.err


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('["a*", "dee"]', '["amn"]', "there is no host 'amn' to send labels; did you mean 'ann'?"),
        ('["a*", "dee"]', '"ann"', "labels is 'ann'; right is a list of hosts"),
        ('["a*", "dee"]', "[]", "labels is []; right is a list of hosts"),
        (
            "bits = 9",
            'bits = 9\nheader = "ipv4"',
            "labels are IPv6 addresses, and events go by header 'ipv4'",
        ),
        ("bits = 9", 'header = "receivers"', "labels"),
    ],
)
def test_who_sends_labels_is_checked(
    flowsieve: Command, mixed: Any, tmp_path: Path, old: str, new: str, message: str
) -> None:
    mixed.replace(old, new)
    answer = flowsieve("run", mixed.scenario, "--out", tmp_path / "out")
    assert answer.status == 2
    assert message in " ".join(answer.err.split())


def test_hosts_that_want_the_same_may_share_a_set(flowsieve: Command, mixed: Any, tmp_path: Path) -> None:
    mixed.write("sets.json", '{"sets": [["cy"], ["bob", "ann"]]}')
    mixed.replace("labels =", 'sets = "sets.json"\nlabels =')
    report = run(flowsieve, mixed, tmp_path / "out")
    assert (report["sets"], report["deliveries"], report["false_negatives"]) == (2, 4, 0)
    answer = flowsieve("replay", mixed.scenario, "--json")
    assert answer.status == 2
    mixed.replace('labels = ["a*", "dee"]\n', "")
    answer = flowsieve("run", mixed.scenario, "--out", tmp_path / "out")
    assert (answer.status, "sets" in answer.err) == (2, True)
