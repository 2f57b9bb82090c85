"""What commands read beside a scenario: filters, events without hosts, dumps of flows, words."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.errors import BadFilter, BadInput, BadScenario, BadValue
from flowsieve.flow.entry import Flow, Output
from flowsieve.header.address import Prefix
from flowsieve.header.match import PrefixMatch
from flowsieve.scenario.event_files import parse_assignments, read_events
from flowsieve.scenario.flow_files import read_flows
from flowsieve.scenario.plain import plain_flows
from flowsieve.scenario.read import Scenario, read_scenario
from flowsieve.scenario.request_files import read_filters

SCHEMA = Schema.parse(
    {
        "price": {"type": "int", "min": 0, "max": 2**53},
        "ratio": {"type": "float", "min": -1, "max": 1},
        "side": {"type": "enum", "values": ["buy", "sell"]},
        "live": {"type": "bool"},
        "name": {"type": "string"},
    }
)
SCENARIO = """\
[schema]
price = { type = "int", min = 0, max = 1023 }
[network]
links = [["s1", "s2"]]
[network.hosts]
h1 = "s1"
h2 = "s2"
"""


def has(error: pytest.ExceptionInfo[BadInput], *parts: str) -> None:
    for part in parts:
        assert part in str(error.value), f"{part!r} is not in:\n{error.value}"


# Filters


def test_filters_come_in_the_order_of_their_file(tmp_path: Path) -> None:
    path = tmp_path / "filters.csv"
    path.write_text('filter,note,id\nprice < 5,a,f2\n"side in (""buy"",)",b,f1\nprice < 5,c,f3\n')
    found = read_filters(path, SCHEMA)
    assert [(id, str(wanted)) for id, wanted in found] == [
        ("f2", "price < 5"),
        ("f1", 'side in ("buy",)'),
        ("f3", "price < 5"),
    ]
    assert found[0][1] is found[2][1]


@pytest.mark.parametrize(
    ("rows", "parts"),
    [
        ("f1,pric < 5\n", ["filters.csv line 2", "'pric'", "did you mean 'price'"]),
        ("f1,True\n\nf1,True\n", ["filters.csv line 4", "'f1'", "on line 2", "an id of its own"]),
        (",True\n", ["filters.csv line 2", "empty", "right is a name"]),
        ("f1\n", ["filters.csv line 2", "1 of 2 fields", "right are id, filter"]),
        ("f1," + "x" * 10_000_000, ["filters.csv line 2", "131,072"]),
    ],
)
def test_a_mistake_in_filters_is_told_with_its_line(tmp_path: Path, rows: str, parts: list[str]) -> None:
    path = tmp_path / "filters.csv"
    path.write_text("id,filter\n" + rows)
    with pytest.raises(BadScenario) as error:
        read_filters(path, SCHEMA)
    has(error, *parts)


def test_who_reads_filters_may_reject_some(tmp_path: Path) -> None:
    def check(wanted: Filter) -> None:
        if "5" in wanted.text:
            raise BadFilter("no fives; right are other numbers", text=wanted.text)

    path = tmp_path / "filters.csv"
    path.write_text("id,filter\nf1,price < 4\nf2,price < 5\n")
    with pytest.raises(BadScenario) as error:
        read_filters(path, SCHEMA, check)
    has(error, "filters.csv line 3: no fives")


# Events


def events(path: Path, *rows: str) -> Path:
    path.write_text("\n".join(["id,price,ratio,side,live,name", *rows]))
    return path


def test_events_need_no_host_where_there_is_no_network(tmp_path: Path) -> None:
    batch = read_events(events(tmp_path / "e.csv", "e1,7,0.5,sell,true,x"), SCHEMA)
    assert batch.hosts.tolist() == [""]
    assert batch.event(0) == {"price": 7, "ratio": 0.5, "side": "sell", "live": True, "name": "x"}


def test_csv_and_parquet_of_the_same_events_are_read_alike(tmp_path: Path) -> None:
    dice = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "id": [f"e{i}" for i in range(500)],
            "price": dice.integers(0, 2**53, 500),
            "ratio": dice.uniform(-1, 1, 500),
            "side": dice.choice(["buy", "sell"], 500),
            "live": dice.random(500) < 0.5,
            "name": dice.choice(["a", "b,c", 'say "x"', "two\nlines"], 500),
        }
    )
    frame.to_csv(tmp_path / "e.csv", index=False)
    frame.to_parquet(tmp_path / "e.parquet", index=False)
    one, two = read_events(tmp_path / "e.csv", SCHEMA), read_events(tmp_path / "e.parquet", SCHEMA)
    assert one.ids.tolist() == two.ids.tolist() == frame["id"].tolist()
    for name in SCHEMA.names:
        assert one.columns[name].tolist() == two.columns[name].tolist()
    assert one.columns["ratio"].tolist() == frame["ratio"].tolist()  # not a bit lost on the way through text


def test_numbers_are_read_exactly(tmp_path: Path) -> None:
    rows = ("a,9007199254740992,0.1,buy,1,x", "b,9007199254740993,0.1,buy,1,x", "c, 5 ,+1e-1,buy,0,x")
    batch = read_events(events(tmp_path / "e.csv", *rows), SCHEMA)
    assert batch.faults()[0].tolist() == [False, True, False]
    assert batch.event(2)["price"] == 5 and batch.event(2)["ratio"] == 0.1


def test_words_that_look_like_missing_values_stay_words(tmp_path: Path) -> None:
    batch = read_events(events(tmp_path / "e.csv", "NA,1,1,buy,1,null", "nan,1,1,buy,1,"), SCHEMA)
    assert batch.ids.tolist() == ["NA", "nan"]
    assert batch.columns["name"].tolist() == ["null", ""]


def test_a_table_may_have_no_events(tmp_path: Path) -> None:
    assert len(read_events(events(tmp_path / "e.csv"), SCHEMA)) == 0
    assert len(read_events(events(tmp_path / "f.csv", ""), SCHEMA)) == 0


def test_old_line_ends_separate_lines_too(tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    path.write_bytes(b"id,price,ratio,side,live,name\re1,7,0,buy,1,x\re2,8,0,buy,1,x\r")
    assert read_events(path, SCHEMA).ids.tolist() == ["e1", "e2"]


def test_a_cell_that_is_no_number_is_told(tmp_path: Path) -> None:
    path = events(tmp_path / "e.csv", "e1,7,0.5,buy,1,x", 'e2,8,"0,5",buy,1,x')
    with pytest.raises(BadScenario) as error:
        read_events(path, SCHEMA)
    has(error, "e.csv line 3:", "column ratio", "'0,5'", "a float from -1.0 to 1.0")


# Flows


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    path = tmp_path / "scenario.toml"
    path.write_text(SCENARIO)
    return read_scenario(path)


def dump(scenario: Scenario, entries: object) -> Path:
    path = scenario.path.with_name("flows.json")
    path.write_text(entries if isinstance(entries, str) else json.dumps(entries, indent=1))
    return path


def entry(**fields: object) -> dict[str, object]:
    return {"switch": "s1", "priority": 1003, "dst": "ff0e:c000::/19", "out": ["s2", "h1"]} | fields


def test_flows_are_read_with_ports_for_neighbours(scenario: Scenario) -> None:
    tables = read_flows(dump(scenario, [entry(), entry(priority=1004, out=[])]), scenario)
    match = PrefixMatch(Prefix.parse("ff0e:c000::/19"))
    assert tables == {
        "s1": (Flow(match, 1003, (Output(1), Output(2))), Flow(match, 1004, ())),
        "s2": (),
    }


def test_flows_are_read_with_masks_and_are_what_was_written(scenario: Scenario) -> None:
    label = entry(table=0, src="fd00::5/ffff::f", dst="ff1e::40/ffff::40")
    plain = entry(table=0, dst="ff0e:c000::/ffff:e000::", out=[])
    tables = read_flows(dump(scenario, [plain, label]), scenario)
    assert [str(flow.match) for flow in tables["s1"]] == [
        "ff0e:c000::/19",
        "src fd00::5/ffff::f dst ff1e::40/ffff::40",
    ]
    assert plain_flows(scenario.topology, tables) == [plain, label]


@pytest.mark.parametrize(
    ("fields", "parts"),
    [
        ({"table": 1}, ["table is 1", "right is 0"]),
        ({"src": "fd00::1", "dst": "ff1e::40/ffff::40"}, ["'fd00::1'", "a value and a mask"]),
        ({"src": 5}, ["src is 5", "a value and a mask"]),
        ({"dst": "ff1e::41/ffff::40"}, ["value", "no bit outside its mask"]),
        ({"switch": "s3"}, ["'s3'", "there are 's1', 's2'"]),
        ({"switch": 1}, ["switch is 1", "right is a switch's name"]),
        ({"out": ["h2"]}, ["'h2'", "no neighbour of switch 's1'"]),
        ({"out": "s2"}, ["out is 's2'", "a list of neighbours"]),
        ({"out": [2]}, ["out is [2]", "a list of neighbours"]),
        ({"dst": "ff0e:c800::/19"}, ["'ff0e:c800::/19'", "host bits"]),
        ({"dst": "somewhere"}, ["'somewhere'", "such as 'ff0e:c000::/19'"]),
        ({"dst": 5}, ["dst is 5", "such as 'ff0e:c000::/19'"]),
        ({"priority": -1}, ["-1", "from 0 to 65535"]),
        ({"priority": "1003"}, ["'1003'", "from 0 to 65535"]),
        ({"priority": True}, ["True", "from 0 to 65535"]),
        ({"in_port": 3}, ["'in_port'", "right are switch, priority, dst, out"]),
        ({}, ["second entry", "ff0e:c000::/19", "1003"]),
    ],
)
def test_a_mistake_in_flows_is_told_with_its_line(
    scenario: Scenario, fields: dict[str, object], parts: list[str]
) -> None:
    with pytest.raises(BadScenario) as error:
        read_flows(dump(scenario, [entry(), entry(**fields)]), scenario)
    has(error, "flows.json line 11:", *parts)


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("", ["flows.json line 1", "not JSON", "right is a list"]),
        ('[\n{"switch": }]', ["flows.json line 2", "not JSON", "right is a list"]),
        ('{"switch": "s1"}', ["flows.json", "right is a list"]),
        ("[5]", ["flows.json line 1", "5", "right is {switch"]),
        ('[{"switch": "s1", "priority": 1, "dts": "::/0", "out": []}]', ["'dst'", "did you mean 'dts'"]),
        ("[" * 100_000, ["flows.json", "nested too deeply"]),
        ("[" + "9" * 5000 + "]", ["flows.json", "nested too deeply"]),
    ],
)
def test_a_file_that_is_no_dump_is_told(scenario: Scenario, content: str, parts: list[str]) -> None:
    with pytest.raises(BadScenario) as error:
        read_flows(dump(scenario, content), scenario)
    has(error, *parts)


# Words


def test_words_make_an_event() -> None:
    words = ["side=buy", "price=60", "name=a=b", "ratio=-.5", "live=False"]
    event = {"price": 60, "ratio": -0.5, "side": "buy", "live": False, "name": "a=b"}
    assert parse_assignments(words, SCHEMA) == event


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        ("price", ["'price'", "price=…"]),
        ("pric=5", ["'pric'", "did you mean 'price'"]),
        ("colour=red", ["'colour'", "there are price, ratio"]),
        ("side=buy", ["side", "twice", "once"]),
        ("price=abc", ["'abc'", "an int from 0"]),
        ("price=-5", ["-5", "below 0"]),
        ("price=nan", ["price", "not a number"]),
        ("", ["''", "price=…"]),
    ],
)
def test_words_that_make_no_event_are_told(word: str, parts: list[str]) -> None:
    with pytest.raises(BadValue) as error:
        parse_assignments(["ratio=0", "side=sell", "live=1", "name=x", word], SCHEMA)
    has(error, *parts)


def test_an_event_needs_all_its_attributes() -> None:
    with pytest.raises(BadValue, match=r"price is missing; it is an int from 0 to"):
        parse_assignments(["ratio=0"], SCHEMA)
