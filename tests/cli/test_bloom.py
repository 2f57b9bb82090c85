"""The commands on a scenario whose packets are labelled with Bloom filters."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]


@pytest.fixture
def bloom(scene: Any) -> Any:
    scene.replace("bits = 11\nmax_dz_per_filter = 0", 'header = "bloom"')
    return scene


@pytest.fixture
def out(flowsieve: Command, bloom: Any, tmp_path: Path) -> Path:
    """What a run has left."""
    answer = flowsieve("run", bloom.scenario, "--out", tmp_path / "out", "--json")
    assert (answer.status, answer.err) == (0, "")
    return tmp_path / "out"


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def flows(out: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((out / "flows.json").read_text())
    return found


def test_a_run_sends_bits_in_both_addresses_and_delivers_what_is_wanted(out: Path) -> None:
    report = json.loads((out / "report.json").read_text())
    assert (report["deliveries"], report["wanted"], report["false_positives"]) == (4, 4, 0)
    assert (report["false_negatives"], report["duplicates"], report["repeats"], report["rejected"]) == (
        0,
        0,
        0,
        2,
    )
    assert (report["bits"], report["bits_per_filter"], report["filters"]) == (224, 9, 4)
    assert report["packets_per_event"] == report["filters_per_packet"] == 1
    assert 0 <= report["predicted_false_positives"] < 0.01
    assert report["flow_ops"] == report["flows"] == len(flows(out))
    sent = rows(out / "packets.csv")
    assert list(sent[0]) == ["event", "host", "src", "dst"]
    assert all(row["src"].startswith("fd1d:") and row["dst"].startswith("ff1d:") for row in sent)
    got = rows(out / "deliveries.csv")
    assert {(row["event"], row["host"]) for row in got} == {
        ("e1", "bob"),
        ("e2", "cy"),
        ("e3", "ann"),
        ("e6", "cy"),
    }
    assert {(row["event"], row["src"], row["dst"]) for row in got} == {
        (row["event"], row["src"], row["dst"]) for row in sent
    }


def test_an_entry_asks_for_the_bits_of_a_filter_in_both_addresses(out: Path) -> None:
    asked = [flow for flow in flows(out) if flow["out"]]
    assert all(len(flow["out"]) == 1 and flow["priority"] == 1001 and flow["table"] >= 16 for flow in asked)
    for flow in asked:
        masks = [int(part.partition("/")[2].replace(":", "") != "") for part in (flow["src"], flow["dst"])]
        assert masks == [1, 1]
    # Three switches on a tree, all of which know four filters; but bob's need not know what he does not publish.
    assert len(asked) == 3 * 4 - 1


def test_identical_and_covered_filters_stand_in_no_table(
    flowsieve: Command, bloom: Any, out: Path, tmp_path: Path
) -> None:
    text = (bloom.folder / "requests.csv").read_text()
    bloom.write("requests.csv", text + "sub,same,bob,not price >= 100\nsub,less,bob,price < 40\n")
    answer = flowsieve("run", bloom.scenario, "--out", tmp_path / "more", "--json")
    assert flows(tmp_path / "more") == flows(out)
    assert {row["subscription"] for row in rows(tmp_path / "more" / "matches.csv")} >= {"cheap", "same"}
    bloom.write("requests.csv", text + "sub,wide,dee,price < 800\n")
    answer = flowsieve("run", bloom.scenario, "--out", tmp_path / "wide", "--json")
    assert answer.json["false_negatives"] == 0
    assert answer.json["filters"] == 5


def test_what_is_unsubscribed_leaves_the_tables(flowsieve: Command, bloom: Any, tmp_path: Path) -> None:
    text = (bloom.folder / "requests.csv").read_text()
    made = [line.split(",") for line in text.splitlines() if line.startswith("sub,")]
    bloom.write(
        "last.csv", "op,id,host,filter\n" + "".join(f"unsub,{id},{host},\n" for _, id, host, _ in made)
    )
    bloom.replace('events = "events.csv"\n', 'events = "events.csv"\n[[step]]\nrequests = "last.csv"\n')
    answer = flowsieve("run", bloom.scenario, "--out", tmp_path / "out", "--json")
    assert (answer.status, answer.json["false_negatives"]) == (0, 0)
    assert all(not flow["out"] for flow in flows(tmp_path / "out"))


@pytest.mark.parametrize(("copies", "packets"), [("1", 1), ("2", 2), ("50", 8), ('"adaptive"', 2)])
def test_an_event_that_matches_much_is_sent_in_copies(
    flowsieve: Command, bloom: Any, tmp_path: Path, copies: str, packets: int
) -> None:
    bloom.replace("[network]\n", f"copies = {copies}\nfilters_per_packet = 4\n[network]\n")
    text = (bloom.folder / "requests.csv").read_text()
    # Eight filters that overlap, none of which covers another.
    more = "".join(f"sub,x{n},dee,{n + 1} <= price < {500 + n}\n" for n in range(7))
    bloom.write("requests.csv", text + more)
    report = flowsieve("run", bloom.scenario, "--out", tmp_path / "out", "--json").json
    assert (report["false_negatives"], report["duplicates"]) == (0, 0)
    sent = [row["event"] for row in rows(tmp_path / "out" / "packets.csv")]
    assert sent.count("e1") == packets
    to_dee = [
        row
        for row in rows(tmp_path / "out" / "deliveries.csv")
        if (row["event"], row["host"]) == ("e1", "dee")
    ]
    assert 1 <= len(to_dee) <= packets
    assert report["repeats"] >= len(to_dee) - 1


def test_a_dump_is_proved_and_one_without_a_filter_is_not(
    flowsieve: Command, bloom: Any, out: Path, tmp_path: Path
) -> None:
    for dump in ((), ("--flows", out / "flows.json")):
        answer = flowsieve("verify", bloom.scenario, *dump, "--json")
        assert (answer.status, answer.json["holds"], answer.json["false_positive_share"]) == (0, True, 0.0)
    whole, less = flows(out), tmp_path / "less.json"
    for gone in (flow for flow in whole if flow["out"]):
        less.write_text(json.dumps([flow for flow in whole if flow is not gone]))
        answer = flowsieve("verify", bloom.scenario, "--flows", less, "--json")
        assert (answer.status, answer.json["strays"]) == (1, 1)
        assert answer.json["witness"]["where"]
    less.write_text("[]")
    answer = flowsieve("verify", bloom.scenario, "--flows", less, "--json")
    assert answer.json["false_negatives"] == 4
    assert answer.json["witness"]["publisher"] == "ann"


def test_an_entry_that_sends_what_nobody_wants_is_told(
    flowsieve: Command, bloom: Any, out: Path, tmp_path: Path
) -> None:
    wide = [
        {**flow, "out": ["dee"]} if flow["switch"] == "s3" and flow["out"] == ["cy"] else flow
        for flow in flows(out)
    ]
    (tmp_path / "wide.json").write_text(json.dumps(wide))
    answer = flowsieve("verify", bloom.scenario, "--flows", tmp_path / "wide.json", "--json")
    assert (answer.status, answer.json["false_negatives"], answer.json["strays"]) == (1, 2, 2)


def test_an_entry_that_asks_for_other_bits_leaves_its_switch_undecided(
    flowsieve: Command, bloom: Any, out: Path, tmp_path: Path
) -> None:
    found = flows(out)
    odd = next(flow for flow in found if flow["out"])
    odd["src"] = "fd00::/ff00::"
    (tmp_path / "odd.json").write_text(json.dumps(found))
    answer = flowsieve("verify", bloom.scenario, "--flows", tmp_path / "odd.json", "--json")
    assert (answer.status, len(answer.json["undecided"])) == (1, 1)
    assert "asks for other than bits of labels" in answer.json["undecided"][0]


def test_an_explanation_names_the_table(flowsieve: Command, bloom: Any) -> None:
    command = ("explain", bloom.scenario, "--host", "ann", "price=60", "side=buy")
    found = flowsieve(*command, "--json").json
    assert (found["delivered"], found["matches"], found["published"]) == (["bob"], ["cheap"], True)
    assert [hop["subscriptions"] for hop in found["hops"]] == [["cheap"]] * len(found["hops"])
    assert all(hop["flow"]["table"] >= 16 and hop["dst"].startswith("ff1d:") for hop in found["hops"])
    assert found["hops"][-1]["out"] == ["bob"]


def test_a_quote_tells_entries_and_who_learns_of_the_filter(flowsieve: Command, bloom: Any) -> None:
    found = flowsieve("quote", bloom.scenario, "--host", "dee", "price > 600", "--json")
    assert (found.status, found.json["fits"], found.json["told"]) == (0, True, ["ann"])
    # Elsewhere it takes the place of `price >= 900`, which it covers; bob, at s2, publishes no such thing.
    assert found.json["entries"] == {"s1": 0, "s3": 1}
    assert found.json["operations"] == {"s1": 2, "s3": 1}
    none = flowsieve("quote", bloom.scenario, "--host", "bob", "price < 50", "--json").json
    assert (none["entries"], none["operations"]) == ({}, {})


def test_what_does_not_fit_is_merged_and_the_proof_takes_it_for_that(
    flowsieve: Command, bloom: Any, tmp_path: Path
) -> None:
    bloom.replace('header = "bloom"\n', 'header = "bloom"\nsample = "events.csv"\n')
    bloom.replace("[network]\n", "[network]\ntable_capacity = 9\n")
    text = (bloom.folder / "requests.csv").read_text()
    bloom.write("requests.csv", text + "".join(f"sub,x{n},dee,price == {n}\n" for n in range(9)))
    answer = flowsieve("run", bloom.scenario, "--out", tmp_path / "out", "--json")
    report = answer.json
    assert (answer.status, report["refused"], report["false_negatives"], report["duplicates"]) == (0, 0, 0, 0)
    assert report["flows_max"] <= 8  # one is kept free
    assert report["merged_entries"] > 0
    dump = tmp_path / "out" / "flows.json"
    answer = flowsieve("verify", bloom.scenario, "--flows", dump, "--json")
    assert (answer.status, answer.json["holds"]) == (0, True)
    # An entry that asks for a bit that nobody's filters share, or for too few, is no merged one.
    found = flows(tmp_path / "out")
    merged = next(flow for flow in found if flow["out"] == ["dee"])
    merged["src"], merged["dst"] = "::/::", "ff1d::1:0/ffff::1:0"
    dump.write_text(json.dumps(found))
    answer = flowsieve("verify", bloom.scenario, "--flows", dump, "--json")
    assert (answer.status, answer.json["holds"], answer.json["strays"] > 0) == (1, False, True)


def test_what_does_not_even_fit_merged_is_refused_and_the_rest_is_served(
    flowsieve: Command, bloom: Any, tmp_path: Path
) -> None:
    bloom.replace("[network]\n", "[network]\ntable_capacity = 6\n")
    answer = flowsieve("run", bloom.scenario, "--out", tmp_path / "out", "--json")
    assert (answer.status, answer.json["false_negatives"]) == (1, 0)
    assert answer.json["flows_max"] <= 6
    assert 0 < answer.json["refused"] < 4
    assert "entries and has room for 6" in answer.json["first_refused"][0]
    quoted = flowsieve("quote", bloom.scenario, "--host", "dee", "price == 20", "--json")
    assert (quoted.status, quoted.json["fits"], quoted.json["entries"]) == (1, False, {})


def test_people_read_of_filters_and_of_what_was_predicted(
    flowsieve: Command, bloom: Any, tmp_path: Path
) -> None:
    words = " ".join(flowsieve("run", bloom.scenario, "--out", tmp_path / "out").out.split())
    assert "4 filters, 9 bits each, in labels of up to 224 bits" in words
    assert "1.00 packets an event" in words


@pytest.mark.parametrize(
    ("old", "new", "wrong"),
    [
        ("[network]\n", "bits = 4\n[network]\n", "bits means nothing with header 'bloom'"),
        (
            "[network]\n",
            "copies = 0\n[network]\n",
            "copies is 0; right is a whole number from 1 to 1,000, or 'adaptive'",
        ),
        ("[network]\n", 'copies = "many"\n[network]\n', "copies is 'many'; right is a whole number"),
        ("[network]\n", "copies = true\n[network]\n", "copies is True; right is a whole number"),
        (
            "[network]\n",
            "filters_per_packet = 0\n[network]\n",
            "filters_per_packet is 0; right is a whole number",
        ),
        (
            "[network]\n",
            "[network]\ntrees = 2\n",
            "trees is 2; labels that are Bloom filters go along one tree",
        ),
        (
            "[network]\n",
            '[network]\ntables = "free"\n',
            "tables means nothing with labels that are Bloom filters",
        ),
        (
            "[network]\n",
            "[network]\ntable_capacity = 3\n",
            "labels that are Bloom filters take 4 entries at switch 's3'",
        ),
        ('header = "bloom"', 'header = "receivers"\ncopies = 2', "copies"),
        ('header = "bloom"', 'header = "ipv6"\ncopies = 2', "copies"),
    ],
)
def test_what_labels_cannot_be_is_told(
    flowsieve: Command, bloom: Any, tmp_path: Path, old: str, new: str, wrong: str
) -> None:
    bloom.replace(old, new)
    answer = flowsieve("run", bloom.scenario, "--out", tmp_path / "out")
    assert answer.status == 2
    assert wrong in " ".join(answer.err.split())
    assert not (tmp_path / "out").exists()
