"""The commands on a scenario whose packets name their receivers."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]
MANY = 120  # hosts, more than an address has bits


@pytest.fixture
def labels(scene: Any) -> Any:
    scene.replace("bits = 11\nmax_dz_per_filter = 0", 'header = "receivers"')
    return scene


@pytest.fixture
def out(flowsieve: Command, labels: Any, tmp_path: Path) -> Path:
    """What a run has left."""
    answer = flowsieve("run", labels.scenario, "--out", tmp_path / "out", "--json")
    assert (answer.status, answer.err) == (0, "")
    return tmp_path / "out"


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def flows(out: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((out / "flows.json").read_text())
    return found


def test_a_run_sends_labels_and_delivers_what_is_wanted_and_nothing_else(out: Path) -> None:
    report = json.loads((out / "report.json").read_text())
    assert (report["deliveries"], report["wanted"], report["false_positives"]) == (4, 4, 0)
    assert (report["false_negatives"], report["duplicates"], report["repeats"], report["fpr"]) == (0, 0, 0, 0)
    assert (report["rejected"], report["bits"], report["sets"]) == (2, 4, 1)
    assert report["flow_ops"] == report["flows"] == len(flows(out))
    sent = rows(out / "packets.csv")
    assert list(sent[0]) == ["event", "host", "src", "dst"]
    assert {row["src"] for row in sent} == {""}
    assert [row["event"] for row in sent] == ["e1", "e2", "e3", "e6"]
    got = rows(out / "deliveries.csv")
    assert list(got[0]) == ["event", "host", "src", "dst"]
    assert {(row["event"], row["host"]) for row in got} == {
        ("e1", "bob"),
        ("e2", "cy"),
        ("e3", "ann"),
        ("e6", "cy"),
    }
    assert {(row["event"], row["dst"]) for row in got} == {(row["event"], row["dst"]) for row in sent}


def test_the_entries_of_a_run_name_their_tables_and_masks(out: Path) -> None:
    found = flows(out)
    assert all(list(flow) == ["switch", "table", "priority", "dst", "out"] for flow in found)
    assert {flow["table"] for flow in found} == {0, 16, 17, 18, 19}
    assert {flow["dst"].partition("/")[0] for flow in found} == {"ff1e::"}


def test_people_read_of_labels_and_sets(flowsieve: Command, labels: Any, tmp_path: Path) -> None:
    answer = flowsieve("run", labels.scenario, "--out", tmp_path / "out")
    words = " ".join(answer.out.split())
    assert "labels, of hosts in 1 set, of up to 4 bits" in words


def test_requests_change_no_table(flowsieve: Command, labels: Any, out: Path, tmp_path: Path) -> None:
    text = (labels.folder / "requests.csv").read_text()
    labels.write("requests.csv", text + "".join(f"sub,x{n},dee,price == {n}\n" for n in range(600)))
    answer = flowsieve("run", labels.scenario, "--out", tmp_path / "more", "--json")
    assert answer.json["flow_ops"] == len(flows(out))
    assert flows(tmp_path / "more") == flows(out)


def test_more_hosts_than_bits_are_in_sets(flowsieve: Command, labels: Any, tmp_path: Path) -> None:
    hosts = "".join(f'x{n} = "s{n % 3 + 1}"\n' for n in range(MANY))
    labels.replace("[[step]]\nrequests", f"{hosts}[[step]]\nrequests")
    text = (labels.folder / "requests.csv").read_text()
    more = "".join(f"sub,x{n},x{n},price < {8 * n}\n" for n in range(1, MANY))
    labels.write("requests.csv", text + more)
    report = flowsieve("run", labels.scenario, "--out", tmp_path / "out", "--json").json
    assert (report["sets"], report["false_positives"], report["false_negatives"]) == (2, 0, 0)
    assert report["deliveries"] == report["wanted"] > 300
    assert report["repeats"] == report["duplicates"] == 0
    sent = [row["event"] for row in rows(tmp_path / "out" / "packets.csv")]
    assert len(sent) > len(set(sent))  # one for each set that has a receiver
    answer = flowsieve("verify", labels.scenario, "--flows", tmp_path / "out" / "flows.json", "--json")
    assert (answer.status, answer.json["holds"]) == (0, True)


def test_a_dump_is_proved_and_one_without_an_entry_is_not(
    flowsieve: Command, labels: Any, out: Path, tmp_path: Path
) -> None:
    for dump in ((), ("--flows", out / "flows.json")):
        answer = flowsieve("verify", labels.scenario, *dump, "--json")
        assert (answer.status, answer.json["holds"], answer.json["false_positive_share"]) == (0, True, 0.0)
    whole, less = flows(out), tmp_path / "less.json"
    for gone in whole:
        less.write_text(json.dumps([flow for flow in whole if flow is not gone]))
        answer = flowsieve("verify", labels.scenario, "--flows", less, "--json")
        assert (answer.status, answer.json["holds"]) == (1, False)
        assert answer.json["witness"]["where"]
    less.write_text("[]")
    answer = flowsieve("verify", labels.scenario, "--flows", less, "--json")
    assert answer.json["false_negatives"] == 4
    assert answer.json["witness"]["publisher"] == "ann"


def test_an_entry_that_sends_too_much_is_priced(
    flowsieve: Command, labels: Any, out: Path, tmp_path: Path
) -> None:
    wide = [{**flow, "priority": 999} if flow["priority"] == 1002 else flow for flow in flows(out)]
    (tmp_path / "wide.json").write_text(json.dumps(wide))
    answer = flowsieve("verify", labels.scenario, "--flows", tmp_path / "wide.json", "--json")
    assert (answer.status, answer.json["false_negatives"]) == (1, 0)
    assert answer.json["strays"] > 0
    assert answer.json["false_positive_share"] > 0.5
    assert answer.json["witness"]["kind"] == "stray"


def test_an_explanation_names_the_table(flowsieve: Command, labels: Any) -> None:
    command = ("explain", labels.scenario, "--host", "ann", "price=60", "side=buy")
    found = flowsieve(*command, "--json").json
    assert (found["delivered"], found["matches"], found["published"]) == (["bob"], ["cheap"], True)
    assert [hop["subscriptions"] for hop in found["hops"]] == [["cheap"]] * len(found["hops"])
    assert all(hop["flow"]["table"] >= 16 and hop["dst"].startswith("ff1e:") for hop in found["hops"])
    assert found["hops"][-1]["out"] == ["bob"]
    assert "(table 1" in flowsieve(*command).out


def test_a_quote_costs_no_entry_and_names_who_learns_of_the_filter(flowsieve: Command, labels: Any) -> None:
    found = flowsieve("quote", labels.scenario, "--host", "dee", "price > 600", "--json")
    assert found.status == 0
    assert (found.json["entries"], found.json["fits"], found.json["false_positive_share"]) == ({}, True, 0.0)
    assert found.json["told"] == ["ann"]
    assert "told to ann" in " ".join(
        flowsieve("quote", labels.scenario, "--host", "dee", "price > 600").out.split()
    )
    assert flowsieve("quote", labels.scenario, "--host", "ann", "price < 5", "--json").json["told"] == ["bob"]


def test_there_are_no_dz_to_encode_or_to_replay(flowsieve: Command, labels: Any, tmp_path: Path) -> None:
    events = labels.folder / "events.csv"
    answer = flowsieve("encode", labels.scenario, "--events", events, "--out", tmp_path)
    assert answer.status == 2
    assert "a scenario with header 'receivers' has no dz" in answer.err
    answer = flowsieve("replay", labels.scenario, "--events", events)
    assert answer.status == 2
    assert "labels name receivers, and there are no dz to be followed" in answer.err


@pytest.mark.parametrize(
    ("old", "new", "wrong"),
    [
        ("[network]\n", "bits = 4\n[network]\n", "bits means nothing with header 'receivers'"),
        ("[network]\n", 'dimensions = ["price"]\n[network]\n', "dimensions means nothing with header"),
        ("[network]\n", 'plan = "plan.json"\n[network]\n', "plan means nothing with header"),
        ("[network]\n", "max_dz_per_filter = 3\n[network]\n", "max_dz_per_filter means nothing"),
        ("[network]\n", 'sample = "events.csv"\n[network]\n', "sample means nothing with header"),
        ("[network]\n", "[network]\ntrees = 2\n", "trees is 2; labels that name receivers go along one tree"),
        ("[network]\n", '[network]\ntables = "free"\n', "tables means nothing with labels"),
        (
            "[network]\n",
            "[network]\ntable_capacity = 8\n",
            "table_capacity is 8; labels that name receivers take 9 entries at switch 's3'",
        ),
        ('"receivers"', '"reciever"', "header is 'reciever'; right is 'ipv6' or 'ipv4' or 'receivers'"),
        (
            'dee = "s3"\n',
            "".join(f'y{n} = "s3"\n' for n in range(240)),
            "switch s3 sends out of 243 ports, and each takes a table for labels; a switch has room for 238",
        ),
    ],
)
def test_what_labels_cannot_be_is_told(
    flowsieve: Command, labels: Any, tmp_path: Path, old: str, new: str, wrong: str
) -> None:
    labels.replace(old, new)
    answer = flowsieve("run", labels.scenario, "--out", tmp_path / "out")
    assert answer.status == 2
    assert wrong in " ".join(answer.err.split())
    assert not (tmp_path / "out").exists()


def test_a_capacity_that_labels_fit_is_kept(flowsieve: Command, labels: Any, tmp_path: Path) -> None:
    labels.replace("[network]\n", "[network]\ntable_capacity = 9\n")
    assert flowsieve("run", labels.scenario, "--out", tmp_path, "--json").json["flows_max"] == 9


@pytest.mark.parametrize("table", [1, 15, 254, -1, True, "16"])
def test_a_dump_with_a_table_that_is_none_is_bad_input(
    flowsieve: Command, labels: Any, tmp_path: Path, table: object
) -> None:
    entry = {"switch": "s1", "table": table, "priority": 1, "dst": "ff1e::/ffff::", "out": []}
    (tmp_path / "dump.json").write_text(json.dumps([entry]))
    answer = flowsieve("verify", labels.scenario, "--flows", tmp_path / "dump.json")
    assert answer.status == 2
    assert "right is 0, or 16 to 253, those for labels" in " ".join(answer.err.split())
