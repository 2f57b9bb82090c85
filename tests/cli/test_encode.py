"""`flowsieve encode`: the dz of filters and events, in the input's order."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

Command = Callable[..., Any]

# No network and no steps: encoding needs neither.
SQUARE = """\
[schema]
A = { type = "int", min = 0, max = 99 }
B = { type = "int", min = 0, max = 99 }
[index]
bits = 6
max_dz_per_filter = 0
"""
WORDS = """\
[schema]
name = { type = "string" }
code = { type = "string", prefix = true }
[index]
bits = 16
"""


@pytest.fixture
def encode(flowsieve: Command, tmp_path: Path) -> Command:
    """Encode filters or events under a scenario; what was written, by file."""

    def call(scenario: str, **inputs: str | pd.DataFrame) -> dict[str, Any]:
        (tmp_path / "scenario.toml").write_text(scenario)
        arguments: list[object] = []
        for kind, content in inputs.items():
            path = tmp_path / f"{kind}.csv"
            if isinstance(content, str):
                path.write_text(content)
            else:
                path = path.with_suffix(".parquet")
                content.to_parquet(path)
            arguments += [f"--{kind}", path]
        out = tmp_path / "out"
        answer = flowsieve("encode", tmp_path / "scenario.toml", *arguments, "--out", out, "--json")
        assert answer.status == 0, answer
        found: dict[str, Any] = {"answer": answer, "files": {path.name for path in out.iterdir()}}
        if "filters" in inputs:
            lines = (out / "filters.jsonl").read_text().splitlines()
            found["filters"] = [(each["id"], each["dz"]) for each in map(json.loads, lines)]
        if "events" in inputs:
            with (out / "events.csv").open(newline="") as file:
                found["events"] = [tuple(row) for row in csv.reader(file)]
        return found

    return call


def test_filters_have_the_dz_of_the_design_in_the_order_of_the_file(encode: Command) -> None:
    rows = "A < 50 and B >= 50", "25 <= A < 50", "True", "A == 65 and B == 55", "A < 50 or B < 50"
    found = encode(
        SQUARE, filters="filter,id\n" + "".join(f"{text},f{9 - n}\n" for n, text in enumerate(rows))
    )
    assert found["filters"] == [
        ("f9", ["01"]),
        ("f8", ["001", "011"]),
        ("f7", [""]),
        ("f6", ["110010"]),
        ("f5", ["0", "10"]),
    ]
    assert found["files"] == {"filters.jsonl"}
    assert found["answer"].json == {"filters": 5, "bits": 6}


@pytest.mark.parametrize("parquet", [False, True])
def test_events_have_the_dz_of_the_design_in_the_order_of_the_file(encode: Command, parquet: bool) -> None:
    frame = pd.DataFrame(
        [("e2", 1, 65, 55), ("e1", 2, 0, 0), ("é,1", 3, 99, 99)], columns=["id", "other", "A", "B"]
    )
    found = encode(SQUARE, events=frame if parquet else frame.to_csv(index=False))
    assert found["events"] == [("id", "dz"), ("e2", "110010"), ("e1", "000000"), ("é,1", "111111")]
    assert found["files"] == {"events.csv"}
    assert found["answer"].json == {"events": 3, "rejected": 0, "bits": 6}


def test_events_outside_the_space_have_no_dz_and_are_told_beside_it(encode: Command) -> None:
    found = encode(
        SQUARE, events="id,A,B\ne1,100,0\ne2,,0\ne3,0,0\ne4,nan,1\n", filters="id,filter\nf,A < 50\n"
    )
    assert found["events"][1:] == [("e1", ""), ("e2", ""), ("e3", "000000"), ("e4", "")]
    assert found["answer"].json == {"filters": 1, "events": 4, "rejected": 3, "bits": 6}
    assert "rejected: e1: A = 100 is above 99" in found["answer"].err


def test_strings_stand_by_their_hash_or_by_their_first_bytes(encode: Command) -> None:
    found = encode(
        WORDS,
        events="id,name,code\ne1,ACME,AB\ne2,,AC\n",
        filters="id,filter\nf1,\"name == 'ACME' and code == 'AB'\"\nf2,\"'AB' <= code < 'AC'\"\n",
    )

    def interleaved(name: str, code: str) -> str:
        digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
        words = [f"{int.from_bytes(part.ljust(8, bytes(1))):064b}" for part in (digest, code.encode())]
        return "".join(a + b for a, b in zip(*words, strict=True))[:16]

    assert found["events"][1:] == [("e1", interleaved("ACME", "AB")), ("e2", interleaved("", "AC"))]
    (_, exact), (_, between) = found["filters"]
    assert exact == [interleaved("ACME", "AB")]
    # Of a code the first byte fits into the bits: all that begin with A are alike, whatever the name.
    assert all(dz[1::2] == "01000001"[: len(dz) // 2] for dz in between)
    assert any(interleaved("ACME", "AB").startswith(dz) for dz in between)


def test_a_filter_has_no_more_dz_than_its_budget(encode: Command) -> None:
    limited = SQUARE.replace("max_dz_per_filter = 0", "max_dz_per_filter = 3")
    ((_, dz),) = encode(limited, filters="id,filter\nf,13 <= A < 77 and 13 <= B < 77\n")["filters"]
    ((_, all_of_it),) = encode(SQUARE, filters="id,filter\nf,13 <= A < 77 and 13 <= B < 77\n")["filters"]
    assert 1 <= len(dz) <= 3 < len(all_of_it)
    assert all(any(part.startswith(cell) for cell in dz) for part in all_of_it)


def test_people_are_told_what_was_encoded(flowsieve: Command, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SQUARE)
    (tmp_path / "e.csv").write_text("id,A,B\ne1,1,2\ne2,1,200\n")
    answer = flowsieve(
        "encode", tmp_path / "s.toml", "--events", tmp_path / "e.csv", "--out", tmp_path / "out"
    )
    assert answer.status == 0
    assert "2 events encoded in up to 6 bits, 1 rejected" in answer.out
    assert "rejected: e2: B = 200 is above 99" in answer.err


@pytest.mark.parametrize(
    ("inputs", "told"),
    [
        ({}, ["nothing to encode", "--filters", "--events"]),
        ({"filters": "id,filter\nf1,A < 3\nf2,C < 3\n"}, ["filters.csv line 3", "'C'"]),
        ({"events": "id,A\ne1,3\n"}, ["events.csv line 1", "'B'"]),
        (
            {"filters": "id,filter\nf1,A < 3\n", "events": "id,A,B\ne1,3,four\n"},
            ["events.csv line 2", "'four'"],
        ),
    ],
)
def test_bad_input_writes_nothing(
    flowsieve: Command, tmp_path: Path, inputs: dict[str, str], told: list[str]
) -> None:
    (tmp_path / "s.toml").write_text(SQUARE)
    arguments: list[object] = []
    for kind, content in inputs.items():
        (tmp_path / f"{kind}.csv").write_text(content)
        arguments += [f"--{kind}", tmp_path / f"{kind}.csv"]
    answer = flowsieve("encode", tmp_path / "s.toml", *arguments, "--out", tmp_path / "out")
    assert (answer.status, answer.out) == (2, "")
    assert all(part in answer.err for part in told), answer.err
    assert not (tmp_path / "out").exists()


def test_an_exact_cover_too_long_to_be_listed_is_bad_input(flowsieve: Command, tmp_path: Path) -> None:
    fine = SQUARE.replace("max = 99", "max = 1048575").replace("bits = 6", "bits = 40")
    (tmp_path / "s.toml").write_text(fine)
    (tmp_path / "f.csv").write_text("id,filter\nf1,A < 3\nf2,1 <= A < 1048575 and 1 <= B < 1048575\n")
    answer = flowsieve(
        "encode", tmp_path / "s.toml", "--filters", tmp_path / "f.csv", "--out", tmp_path / "out"
    )
    assert answer.status == 2
    assert "f.csv line 3" in answer.err
    assert "max_dz_per_filter = 32" in answer.err


def test_covers_that_follow_the_room_of_a_network_are_encoded_with_32_dz(encode: Command) -> None:
    wide = SQUARE.replace("max = 99", "max = 4095").replace("bits = 6", "bits = 24")
    auto, explicit = (wide.replace("filter = 0", f"filter = {number}") for number in ('"auto"', "32"))
    filters = 'id,filter\nf,"11 <= A <= 3333 and 77 <= B <= 2222"\n'
    ((_, covered),) = found = encode(auto, filters=filters)["filters"]
    assert len(covered) == 32
    assert encode(explicit, filters=filters)["filters"] == found
