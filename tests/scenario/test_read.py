"""Scenarios are read whole; each mistake is told with file, line, value and what would be right."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from flowsieve.content.schema import Schema
from flowsieve.control.request import Op
from flowsieve.errors import BadScenario
from flowsieve.flow.tables.compiler import Tables
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.scenario.read import EventStep, RequestStep, Scenario, read_scenario

SCHEMA = """\
[schema]
price = { type = "int", min = 0, max = 1023 }
side = { type = "enum", values = ["buy", "sell"] }
"""
INDEX = """\
[index]
bits = 8
"""
NETWORK = """\
[network]
links = [["s1", "s2"], ["s2", "s3"]]
[network.hosts]
h1 = "s1"
h3 = "s3"
"""
REQUEST_STEP = '[[step]]\nrequests = "requests-1.csv"\n'
STEPS = REQUEST_STEP + '[[step]]\nevents = "events-1.csv"\n'
REQUESTS = "op,id,host,filter\nadv,p1,h1,True\nsub,s1,h3,price < 50\n"
EVENTS = "id,host,price,side\ne1,h1,7,buy\ne2,h1,700,sell\n"
ISLANDS = NETWORK.replace('["s2", "s3"]]', '["s2", "s3"], ["x1", "x2"]]') + 'hx = "x1"\n'


class Folder:
    """A folder with a scenario that is right, until a test spoils one of its files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.write("requests-1.csv", REQUESTS)
        self.write("events-1.csv", EVENTS)

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def read(
        self, schema: str = SCHEMA, index: str = INDEX, network: str = NETWORK, steps: str = STEPS
    ) -> Scenario:
        return read_scenario(self.write("scenario.toml", schema + index + network + steps))

    def mistake(self, **parts: str) -> str:
        with pytest.raises(BadScenario) as caught:
            self.read(**parts)
        return str(caught.value)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def has(text: str, *parts: str) -> None:
    for part in parts:
        assert part in text, f"{part!r} is not in:\n{text}"


def requests(*rows: str) -> str:
    return "\n".join(["op,id,host,filter", *rows, ""])


# What is right


def test_a_scenario_is_read_with_its_defaults(folder: Folder) -> None:
    scenario = folder.read(index="")
    assert scenario.schema.names == ("price", "side")
    assert (scenario.index.header, str(scenario.index.encoding.tag.group)) == ("ipv6", "ff0e::/16")
    assert scenario.index.plan.bits == 11  # all that the attributes need
    assert (scenario.index.budget, scenario.capacity, scenario.tables, scenario.trees) == (
        "auto",
        None,
        None,
        1,
    )
    assert scenario.index.sample is None
    asked, published = scenario.steps
    assert isinstance(asked, RequestStep) and isinstance(published, EventStep)
    assert [(r.op, r.id, r.endpoint) for r in asked.requests] == [
        (Op.ADVERTISE, "p1", "h1"),
        (Op.SUBSCRIBE, "s1", "h3"),
    ]
    assert asked.lines == (2, 3)
    assert asked.source == folder.path / "requests-1.csv"
    assert published.events.ids.tolist() == ["e1", "e2"]
    assert published.events.hosts.tolist() == ["h1", "h1"]


def test_every_setting_is_taken(folder: Folder) -> None:
    index = '[index]\nheader = "ipv4"\nbits = 9\ndimensions = ["price"]\nmax_dz_per_filter = 0\n'
    index += 'sample = "events-1.csv"\n'
    network = NETWORK.replace("[network]\n", '[network]\ntable_capacity = 0\ntables = "free"\ntrees = 4\n')
    scenario = folder.read(index=index, network=network)
    assert scenario.index.header == "ipv4" and str(scenario.index.encoding.tag.group) == "225.128.0.0/9"
    assert scenario.index.plan == RegularPlan.make(scenario.schema, 9, ["price"])
    assert (scenario.index.budget, scenario.capacity, scenario.tables, scenario.trees) == (
        0,
        0,
        Tables.FREE,
        4,
    )
    assert scenario.index.sample is not None and len(scenario.index.sample) == 2


def test_a_plan_is_read_from_its_file(folder: Folder) -> None:
    plan = RegularPlan.make(folder.read().schema, 5, ["side", "price"])
    folder.write("plan.json", json.dumps(plan.to_json()))
    assert folder.read(index='[index]\nplan = "plan.json"\n').index.plan == plan


def test_a_generated_topology_brings_its_hosts_unless_the_scenario_names_others(folder: Folder) -> None:
    network = '[network]\ntopology = "ring:4,hosts=8"\n'
    own = folder.read(network=network).topology
    assert len(own.hosts) == 8 and len(own.switches) == 4
    folder.write("events-1.csv", EVENTS.replace("h1", "h3"))
    named = folder.read(network=network + '[network.hosts]\nh1 = "s2"\nh3 = "s0"\n').topology
    assert dict(named.hosts) == {"h1": "s2", "h3": "s0"}


def test_a_file_comes_before_a_generator_of_the_same_name(folder: Folder) -> None:
    nodes = '<node id="s1"/><node id="s3"/><edge source="s1" target="s3"/>'
    folder.write("ring", f'<graphml><graph edgedefault="undirected">{nodes}</graph></graphml>')
    network = '[network]\ntopology = "ring"\n[network.hosts]\nh1 = "s1"\nh3 = "s3"\n'
    assert folder.read(network=network).topology.switches == ("s1", "s3")


def test_bom_and_windows_line_ends_are_no_mistakes(folder: Folder) -> None:
    bom = b"\xef\xbb\xbf"
    folder.write("requests-1.csv", bom + REQUESTS.replace("\n", "\r\n").encode())
    folder.write("events-1.csv", bom + EVENTS.replace("\n", "\r\n").encode())
    path = folder.write(
        "scenario.toml", bom + (SCHEMA + INDEX + NETWORK + STEPS).replace("\n", "\r\n").encode()
    )
    asked, published = read_scenario(path).steps
    assert isinstance(asked, RequestStep) and isinstance(published, EventStep)
    assert asked.lines == (2, 3) and len(published.events) == 2


def test_a_scenario_may_have_no_steps(folder: Folder) -> None:
    assert folder.read(steps="").steps == ()


def test_encoding_needs_neither_network_nor_steps(folder: Folder) -> None:
    encoding = read_scenario(folder.write("encode.toml", SCHEMA + INDEX), network=False)
    assert encoding.plan.bits == 8
    path = folder.write("encode.toml", SCHEMA + INDEX + STEPS.replace("1.csv", "2.csv"))
    assert read_scenario(path, network=False).schema == encoding.schema


def test_an_id_may_be_used_again_after_its_end_and_on_the_other_side(folder: Folder) -> None:
    folder.write(
        "requests-1.csv", requests("adv,x,h1,True", "sub,x,h3,True", "unsub,x,h3,", "sub,x,h1,price < 9")
    )
    asked, _ = folder.read().steps
    assert isinstance(asked, RequestStep)
    assert [r.op.value for r in asked.requests] == ["adv", "sub", "unsub", "sub"]


def test_the_filter_of_an_ending_request_is_passed_over(folder: Folder) -> None:
    folder.write("requests-1.csv", requests("sub,s1,h3,True", "unsub,s1,h3,no filter at all ("))
    asked, _ = folder.read().steps
    assert isinstance(asked, RequestStep) and asked.requests[1].filter is None


def test_equal_filter_texts_are_one_filter(folder: Folder) -> None:
    folder.write("requests-1.csv", requests("sub,s1,h3,price < 9", "sub,s2,h1,price < 9"))
    asked, _ = folder.read().steps
    assert isinstance(asked, RequestStep)
    assert asked.requests[0].filter is asked.requests[1].filter


def test_columns_may_stand_in_any_order_with_others_between(folder: Folder) -> None:
    folder.write("requests-1.csv", 'filter,why,id,op,host\n"side in (""buy"", ""sell"")",x,s1,sub,h3\n')
    folder.write("events-1.csv", "side,note,price,host,id\nbuy,?,3,h1,e1\n")
    asked, published = folder.read().steps
    assert isinstance(asked, RequestStep) and isinstance(published, EventStep)
    assert asked.requests[0].filter is not None and asked.requests[0].filter.text == 'side in ("buy", "sell")'
    assert published.events.event(0) == {"price": 3, "side": "buy"}


def test_events_come_from_parquet_too(folder: Folder) -> None:
    frame = pd.DataFrame({"id": [1, 2], "host": "h1", "price": [7, 8], "side": ["buy", "sell"], "more": 0})
    frame.to_parquet(folder.path / "events.parquet")
    _, published = folder.read(steps=STEPS.replace("events-1.csv", "events.parquet")).steps
    assert isinstance(published, EventStep)
    assert published.events.ids.tolist() == ["1", "2"]


def test_events_outside_the_schema_are_read_and_left_to_be_rejected(folder: Folder) -> None:
    folder.write("events-1.csv", "id,host,price,side\na,h1,-5,buy\nb,h1,nan,buy\nc,h1,inf,keep\nd,h1,,\n")
    _, published = folder.read().steps
    assert isinstance(published, EventStep)
    assert published.events.faults()[0].all()


@pytest.mark.parametrize(
    "name", ["fat-tree-rich", "geant-capacity", "random-zipf-budget", "ring-exact", "tree-ipv4-strays"]
)
def test_the_acceptance_scenario_is_read(name: str, shared: Path) -> None:
    scenario = read_scenario(shared / "acceptance" / name / "scenario.toml")
    for step, kind in zip(scenario.steps, [RequestStep, EventStep] * 2, strict=True):
        assert isinstance(step, kind)
        rows = len(step.source.read_text().splitlines()) - 1
        assert rows == len(step.requests if isinstance(step, RequestStep) else step.events)


# Mistakes in the scenario's own file


def test_broken_toml_is_told_with_its_line(folder: Folder) -> None:
    text = folder.mistake(index="[index]\nbits = = 8\n")
    has(text, "scenario.toml line 5", "bits = = 8", "not TOML", "right is")
    has(folder.mistake(steps="[[step]\n"), "scenario.toml line 11", "[[step]")
    has(folder.mistake(network="[network]\nlinks = [", steps=""), "scenario.toml line 7", "links = [")


@pytest.mark.parametrize("deep", ["x = " + "[" * 5000 + "]" * 5000, "x = " + "9" * 5000])
def test_toml_nested_too_deeply_is_no_traceback(folder: Folder, deep: str) -> None:
    has(folder.mistake(index=deep + "\n"), "scenario.toml", "TOML")


@pytest.mark.parametrize(
    ("part", "line", "value", "right"),
    [
        ({"index": "[indx]\nbits = 8\n"}, 4, "'indx'", "did you mean 'index'"),
        ({"index": "[index]\nbit = 8\n"}, 5, "'bit'", "did you mean 'bits'"),
        ({"index": "[index]\nsize = 8\n"}, 5, "'size'", "right are header, bits"),
        ({"index": "[index]\nbits = 113\n"}, 5, "113", "from 0 to 112"),
        ({"index": '[index]\nheader = "ipv4"\nbits = 24\n'}, 6, "24", "from 0 to 23"),
        ({"index": "[index]\nbits = -1\n"}, 5, "-1", "from 0 to 112"),
        ({"index": "[index]\nbits = true\n"}, 5, "True", "whole number"),
        ({"index": '[index]\nbits = "8"\n'}, 5, "'8'", "whole number"),
        ({"index": "[index]\nbits = 8.0\n"}, 5, "8.0", "whole number"),
        ({"index": '[index]\nheader = "ipv5"\n'}, 5, "'ipv5'", "'ipv6' or 'ipv4'"),
        ({"index": "[index]\nheader = 6\n"}, 5, "6", "'ipv6' or 'ipv4'"),
        ({"index": '[index]\ndimensions = ["pric"]\n'}, 5, "'pric'", "did you mean 'price'"),
        ({"index": '[index]\ndimensions = ["price", "price"]\n'}, 5, "'price'", "right is once"),
        ({"index": '[index]\ndimensions = "price"\n'}, 5, "'price'", "a list of attributes"),
        ({"index": "[index]\ndimensions = []\n"}, 5, "[]", "a list of attributes"),
        ({"index": "[index]\ndimensions = [[1]]\n"}, 5, "[[1]]", "a list of attributes"),
        ({"index": "[index]\nmax_dz_per_filter = -1\n"}, 5, "-1", "from 0 to 100000"),
        ({"index": '[index]\nmax_dz_per_filter = "most"\n'}, 5, "'most'", "or 'auto'"),
        ({"index": "[index]\nmax_dz_per_filter = 999999999\n"}, 5, "999999999", "from 0 to 100000"),
        ({"index": '[index]\nplan = "plan.json"\nbits = 8\n'}, 6, "bits", "one or the other"),
        ({"index": '[index]\nplan = "none.json"\n'}, 5, "none.json", "no such file"),
        ({"index": '[index]\nsample = "event-1.csv"\n'}, 5, "event-1.csv", "did you mean 'events-1.csv'"),
        ({"index": "index = 5\n", "schema": ""}, 1, "5", "[index]"),
        ({"schema": '[schema]\nprice = { type = "itn" }\n'}, 2, "'itn'", "did you mean 'int'"),
        ({"schema": "[schema]\nprice = 5\n"}, 2, "5", "not a table such as"),
        ({"schema": "[schema.price]\ntype = 'int'\nmin = 5\nmax = 1\n"}, 1, "min = 5", "max = 1"),
        ({"steps": "[[steps]]\n"}, 11, "'steps'", "did you mean 'step'"),
        ({"steps": "[step]\nrequests = 'requests-1.csv'\n"}, 11, "requests", "[[step]]"),
        ({"steps": "[[step]]\n\n[[step]]\nrequest = 'requests-1.csv'\n"}, 14, "'request'", "'requests'"),
        ({"steps": "[[step]]\n"}, 11, "neither", "right is one file"),
        ({"steps": "[[step]]\nrequests = 'x.csv'\nevents = 'y.csv'\n"}, 11, "both", "right is one file"),
        ({"steps": "[[step]]\nrequests = 5\n"}, 12, "5", "such as 'requests.csv'"),
        ({"steps": "[[step]]\nrequests = ''\n"}, 12, "''", "such as 'requests.csv'"),
        ({"steps": "[[step]]\nrequests = 'quests-1.csv'\n"}, 12, "quests-1.csv", "mean 'requests-1.csv'"),
        ({"steps": "[[step]]\nrequests = '.'\n"}, 12, "is a directory", "right is a file"),
        ({"steps": "[[step]]\nrequests = \"a\\u0000b\"\n"}, 12, "a\\x00b", "no such file"),
        ({"steps": f"[[step]]\nrequests = '{'x' * 5000}'\n"}, 12, "xxx", "no file that can be read"),
    ],
)  # fmt: skip
def test_a_mistake_in_the_file_is_told_with_its_line(
    folder: Folder, part: dict[str, str], line: int, value: str, right: str
) -> None:
    has(folder.mistake(**part), f"scenario.toml line {line}:", value, right)


@pytest.mark.parametrize(
    ("network", "line", "value", "right"),
    [
        ("links = 5", 7, "5", "pairs of switches"),
        ("links = []", 7, "[]", "pairs of switches"),
        ('links = [\n["s1", "s2"],\n["s1"],\n]', 9, "['s1']", "pairs of switches"),
        ('links = [["s1", "s2"],\n["s1", 5]]', 8, "5", "right is a name"),
        ('links = [\n# a comment [\n["s1", "s2"],\n["s3", "s3"]]', 10, "'s3'", "joins two switches"),
        ('links = [["s1", "s2"]]\ntopology = "ring:4"', 8, "both", "right is one of them"),
        ("table_capacity = 5", 6, "neither", "right is one of them"),
        ('topology = "ring:2"', 7, "2", "at least 3"),
        ('topology = "rng:4"', 7, "'rng'", "did you mean 'ring'"),
        ('topology = "fattree"', 7, "'fattree'", "did you mean 'fat-tree'"),
        ('topology = "geant.graphml"', 7, "geant.graphml", "no such file"),
        ("topology = 5", 7, "5", "such as 'net.graphml'"),
        ('links = [["s1", "s2"]]\ntable_capacity = -1', 8, "-1", "from 0 to"),
        ('links = [["s1", "s2"]]\ntable_capacity = true', 8, "True", "from 0 to"),
        ('links = [["s1", "s2"]]\ntable_capacity = 1.5', 8, "1.5", "from 0 to"),
        ('links = [["s1", "s2"]]\ntables = "small"', 8, "'small'", "'overlay' or 'smallest' or 'free'"),
        ('links = [["s1", "s2"]]\ntrees = 3', 8, "3", "a power of two"),
        ('links = [["s1", "s2"]]\ntrees = 0', 8, "0", "a power of two"),
        ('links = [["s1", "s2"]]\ntrees = 512', 8, "512 trees need 9 bits", "right are 256 trees"),
        ('links = [["s1", "s2"]]', 6, "[network.hosts]", 'h1 = "s1"'),
        ('links = [["s1", "s2"]]\nhosts = 5', 8, "5", "[network.hosts]"),
        ('links = [["s1", "s2"]]\n[network.hosts]\nh1 = "s1"\nh3 = "s9"', 10, "'s9'", "there are s1, s2"),
        ('links = [["s1", "s2"]]\n[network.hosts]\nh1 = "elsewhere"', 9, "'elsewhere'", "there are s1, s2"),
        ('links = [["s1", "s2"]]\n[network.hosts]\ns1 = "s1"', 9, "'s1'", "another name"),
        ('links = [["s1", "s2"]]\n[network.hosts]\nh1 = 1', 9, "1", "the name of a switch"),
        ('links = [["s1", "s2"]]\nhost = { h1 = "s1" }', 8, "'host'", "did you mean 'hosts'"),
    ],
)
def test_a_mistake_in_the_network_is_told_with_its_line(
    folder: Folder, network: str, line: int, value: str, right: str
) -> None:
    has(folder.mistake(network=f"[network]\n{network}\n"), f"scenario.toml line {line}:", value, right)


def test_missing_parts_are_told(folder: Folder) -> None:
    has(folder.mistake(schema=""), "scenario.toml", "right is a [schema]")
    has(folder.mistake(network=""), "scenario.toml", "there is no [network]")


def test_broken_graphml_is_told_with_its_line(folder: Folder) -> None:
    folder.write("net.graphml", "<graphml>\n<graph>\n<node id='a'>\n</graph></graphml>")
    network = '[network]\ntopology = "net.graphml"\n[network.hosts]\nh1 = "a"\nh3 = "a"\n'
    has(folder.mistake(network=network), "net.graphml", "line 4", "not XML")


@pytest.mark.parametrize(
    ("plan", "parts"),
    [
        ("{", ["plan.json line 1", "not JSON"]),
        ("[1]", ["plan.json", "kind"]),
        ('{"kind": "regulra"}', ["plan.json", "'regulra'", "did you mean 'regular'"]),
        ('{"kind": "regular", "schema": "00"}', ["plan.json", "'00'", "digest"]),
        ("[" * 100_000, ["plan.json", "nested too deeply"]),
    ],
)
def test_a_plan_that_does_not_fit_is_told(folder: Folder, plan: str, parts: list[str]) -> None:
    folder.write("plan.json", plan)
    has(folder.mistake(index='[index]\nplan = "plan.json"\n'), *parts)


def test_a_plan_with_more_bits_than_the_header_is_told(folder: Folder) -> None:
    wide = SCHEMA.replace("1023", "1073741823")
    plan = RegularPlan.make(Schema.parse(folder.read(schema=wide).schema.to_json()), 30)
    folder.write("plan.json", json.dumps(plan.to_json()))
    index = '[index]\nplan = "plan.json"\nheader = "ipv4"\n'
    has(folder.mistake(schema=wide, index=index), "plan.json", "30", "23")


def test_several_mistakes_are_told_at_once_but_not_all_of_very_many(folder: Folder) -> None:
    folder.write("requests-1.csv", requests("sub,s1,h3,pric < 5", "sbu,s2,h3,True", "sub,s3,h4,True"))
    text = folder.mistake()
    has(text, "line 2: there is no attribute 'pric'", "line 3: op is 'sbu'", "line 4: there is no host 'h4'")
    folder.write("requests-1.csv", requests(*(f"sub,s{i},h4,True" for i in range(1000))))
    text = folder.mistake()
    assert len(re.findall(r"^.*requests-1\.csv line \d+:", text, re.MULTILINE)) == 5
    has(text, "first 5 mistakes")


# Mistakes in requests


@pytest.mark.parametrize(
    ("rows", "line", "value", "right"),
    [
        (["sbu,s1,h3,True"], 2, "'sbu'", "did you mean 'sub'"),
        ([",s1,h3,True"], 2, "''", "one of adv, sub, unadv, unsub"),
        (["sub,,h3,True"], 2, "empty", "right is a name"),
        (["sub,s1,h3,True", "sub,s1,h1,True"], 3, "'s1'", "an id of its own"),
        (["adv,p1,h3,True", "", "adv,p1,h1,True"], 4, "'p1' is there already, from", "an id of its own"),
        (["unsub,s9,h3,"], 2, "'s9'", "0 that are active"),
        (["sub,sub1,h3,True", "unsub,sub2,h3,"], 3, "'sub2'", "did you mean 'sub1'"),
        (["adv,x,h3,True", "unsub,x,h3,"], 3, "no subscription 'x'", "active"),
        (["sub,x,h3,True", "unadv,x,h3,"], 3, "no advertisement 'x'", "active"),
        (["sub,x,h3,True", "unsub,x,h3,", "unsub,x,h3,"], 4, "ended already, at", "active"),
        (["sub,x,h3,True", "unsub,x,h1,"], 3, "'h1'", "'h3'"),
        (["sub,s1,h4,True"], 2, "'h4'", "there are 'h1', 'h3'"),
        (["sub,s1,,True"], 2, "''", "there are 'h1', 'h3'"),
        (["sub,s1,h3,pric < 5"], 2, "'pric'", "did you mean 'price'"),
        (["sub,s1,h3,price <"], 2, "price <", "syntax error"),
        (["sub,s1,h3,price < 'x'"], 2, "'x'", "a number"),
        (["sub,s1,h3,side == 'by'"], 2, "'by'", "did you mean 'buy'"),
        (["sub,s1,h3,price < 0"], 2, "match nothing", "requests-1.csv"),
        (["sub,s1,h3,"], 2, "empty", "True matches every event"),
        (["sub,s1,h3"], 2, "3 of 4 fields", "right are op, id, host, filter"),
        (["sub,s1,h3,price in (1,2)"], 2, "5 fields", "quotes around one"),
        (["sub,s0,h3,True", 'sub,s1,h3,"True', "sub,s2,h3,True"], 3, "never closed", "a second one"),
        (['sub,s1,h3,"True"x'], 2, "after a closing quote", "a comma"),
        (["sub,s1,h3,Tr\0ue"], 2, "NUL", "text file"),
    ],
)
def test_a_mistake_in_requests_is_told_with_its_line(
    folder: Folder, rows: list[str], line: int, value: str, right: str
) -> None:
    folder.write("requests-1.csv", requests(*rows))
    has(folder.mistake(), f"requests-1.csv line {line}:", value, right)


def test_lines_are_those_of_the_file_even_after_quoted_newlines(folder: Folder) -> None:
    folder.write("requests-1.csv", requests('sub,s1,h3,"price < 5\nor\nprice > 9"', "sub,s2,h9,True"))
    has(folder.mistake(), "requests-1.csv line 5:")


def test_a_host_that_is_cut_off_cannot_ask(folder: Folder) -> None:
    folder.write("requests-1.csv", requests("sub,s1,hx,True"))
    has(
        folder.mistake(network=ISLANDS), "requests-1.csv line 2:", "'hx'", "'x1'", "cut off", "a link to them"
    )


def test_a_bad_filter_does_not_make_the_end_of_its_subscription_a_mistake(folder: Folder) -> None:
    folder.write("requests-1.csv", requests("sub,s1,h3,price <", "unsub,s1,h3,"))
    assert "line 3" not in folder.mistake()


def test_ids_are_followed_over_all_files_of_requests(folder: Folder) -> None:
    folder.write("requests-2.csv", requests("unadv,p1,h1,", "sub,s1,h1,True"))
    text = folder.mistake(steps=STEPS + '[[step]]\nrequests = "requests-2.csv"\n')
    has(text, "requests-2.csv line 3:", "'s1'", "requests-1.csv line 3")
    assert "line 2:" not in text


def test_an_exact_cover_too_long_to_be_listed_is_told_at_the_filter(folder: Folder) -> None:
    schema = "[schema]\n" + "".join(f'{name} = {{ type = "int", min = 0, max = 4095 }}\n' for name in "abc")
    folder.write(
        "requests-1.csv", requests("sub,s1,h3,a < 9", "sub,s2,h3,1 <= a < 4094 and 1 <= b < 4094 and c > 0")
    )
    index = "[index]\nmax_dz_per_filter = 0\n"
    has(
        folder.mistake(schema=schema, index=index, steps=REQUEST_STEP),
        "requests-1.csv line 3:",
        "100,000",
        "budget",
    )


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        (b"", ["requests-1.csv", "is empty", "op, id, host, filter"]),
        (b"\n\n", ["requests-1.csv", "is empty", "op, id, host, filter"]),
        (b"id,host,filter\n", ["requests-1.csv line 1", "'op'", "needed are op, id, host, filter"]),
        (b"op,id,host,fliter\n", ["requests-1.csv line 1", "'filter'", "did you mean 'fliter'"]),
        (b"op,id,id,host,filter\n", ["requests-1.csv line 1", "'id'", "twice", "once"]),
        (b"op,id,host,filter\nsub,\xff,h1,True\n", ["requests-1.csv line 2", "0xff", "UTF-8"]),
        ("op,id,host,filter\n".encode("utf-16"), ["requests-1.csv line 1", "UTF-8"]),
        (b"\x7fELF\x00\x00\x01\xf0", ["requests-1.csv line 1", "UTF-8"]),
        (b"op,id,host,filter\nsub,s1,h3," + b"x" * 10_000_000 + b"\n", ["requests-1.csv line 2", "131,072"]),
        (b'op,id,host,filter\nsub,s1,h3,"' + b"x" * 10_000_000 + b'"\n', ["line 2", "131,072"]),
        (b"op,id,host,filter\nsub,s1,h3,price < 5" + b" or side" * 9000 + b"\n", ["line 2", "longer than"]),
        (b"op,id,host,filter\nsub,s1,h3," + b"(" * 9000 + b"\n", ["requests-1.csv line 2", "nested"]),
    ],
)  # fmt: skip
def test_a_file_that_is_no_table_of_requests_is_told(
    folder: Folder, content: bytes, parts: list[str]
) -> None:
    folder.write("requests-1.csv", content)
    text = folder.mistake()
    has(text, *parts)
    assert len(text) < 1000


# Mistakes in events


@pytest.mark.parametrize(
    ("rows", "line", "value", "right"),
    [
        (["e1,h1,7,buy", "e2,h1,abc,buy"], 3, "column price: price = 'abc'", "an int from 0 to 1023"),
        (["e1,h1,7,buy", "", "e2,h1,1_0,buy"], 4, "'1_0'", "an int from 0 to 1023"),
        (["e1,h1,7,buy", "e1,h1,7,buy"], 3, "'e1' is there already, at", "an id of its own"),
        (["e1,h1,7,buy", ",h1,7,buy"], 3, "id is missing", "right is a name"),
        (["e1,h1,7,buy", "e2,,7,buy"], 3, "host is missing", "right is a name"),
        (["e1,h1,7,buy", "e2,h2,7,buy"], 3, "'h2'", "there are 'h1', 'h3'"),
        (["e1,h1,7,buy", "e2,h1,7"], 3, "3 of 4 fields", "right are id, host, price, side"),
        (["e1,h1,7,buy", "e2,h1,1,000,buy"], 3, "5 fields", "quotes around one"),
        (['e1,h1,7,"buy', "e2,h1,7,buy"], 2, "never closed", "a second one"),
        (["e1,h1,7,bu\0y"], 2, "NUL", "text file"),
        (['e1,h1,7,"bu', 'y"', "e2,h1,seven,buy"], 4, "'seven'", "an int from 0 to 1023"),
    ],
)
def test_a_mistake_in_events_is_told_with_its_line(
    folder: Folder, rows: list[str], line: int, value: str, right: str
) -> None:
    folder.write("events-1.csv", "\n".join(["id,host,price,side", *rows, ""]))
    has(folder.mistake(), f"events-1.csv line {line}:", value, right)


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        (b"", ["events-1.csv", "is empty", "id, host, price, side"]),
        (b"id,host,pric,side\n", ["events-1.csv line 1", "'price'", "did you mean 'pric'"]),
        (b"\n\nid,host,pric,side\n", ["events-1.csv line 3", "'price'"]),
        (b"id,price,side\n", ["events-1.csv line 1", "'host'", "needed are id, host, price, side"]),
        (b"id,host,price,side,id\n", ["events-1.csv line 1", "'id'", "once"]),
        (b"id,host,price,side\ne1,h1,7,b\xe9y\n", ["events-1.csv line 2", "0xe9", "UTF-8"]),
        (b"id,host,price,side\ne1,h1,7," + b"x" * 10_000_000 + b"\n", ["events-1.csv line 2", "131,072"]),
        (b"PAR1\x00\x01\x02", ["events-1.csv line 1", "text file"]),
    ],
)
def test_a_file_that_is_no_table_of_events_is_told(folder: Folder, content: bytes, parts: list[str]) -> None:
    folder.write("events-1.csv", content)
    text = folder.mistake()
    has(text, *parts)
    assert len(text) < 1000


def test_event_ids_are_unique_over_all_files(folder: Folder) -> None:
    folder.write("events-2.csv", "id,host,price,side\ne3,h1,7,buy\ne2,h1,7,buy\n")
    text = folder.mistake(steps=STEPS + '[[step]]\nevents = "events-2.csv"\n')
    has(text, "events-2.csv line 3:", "'e2'", "events-1.csv line 3")


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + b"\0" * 100 + b"PAR1", EVENTS.encode()])
def test_broken_parquet_is_told(folder: Folder, content: bytes) -> None:
    folder.write("events.parquet", content)
    text = folder.mistake(steps=STEPS.replace("events-1.csv", "events.parquet"))
    has(text, "events.parquet", "not Parquet", "right are the columns id, host, price, side")


@pytest.mark.parametrize(
    ("column", "cells", "parts"),
    [
        ("price", ["7", "abc"], ["events.parquet row 2", "'abc'", "an int from 0 to 1023"]),
        ("price", [[7], [8]], ["events.parquet", "price", "an int from 0 to 1023"]),
        (
            "price",
            pd.to_datetime(["2020-01-01", "2020-01-02"]),
            ["events.parquet", "datetime", "an int from"],
        ),
        ("id", ["e1", None], ["events.parquet row 2", "id is missing", "right is a name"]),
        ("id", ["e1", "e1"], ["events.parquet row 2", "'e1'", "an id of its own"]),
        ("host", ["h1", "h9"], ["events.parquet row 2", "'h9'", "there are 'h1', 'h3'"]),
        ("side", [["buy"], ["sell"]], ["events.parquet", "side", "one of buy, sell"]),
        ("side", None, ["events.parquet", "no column 'side'"]),
    ],
)
def test_a_mistake_in_parquet_is_told_with_its_row(
    folder: Folder, column: str, cells: object, parts: list[str]
) -> None:
    frame = pd.DataFrame({"id": ["e1", "e2"], "host": "h1", "price": [7, 8], "side": ["buy", "sell"]})
    frame = frame.drop(columns=column) if cells is None else frame.assign(**{column: cells})
    frame.to_parquet(folder.path / "events.parquet")
    has(folder.mistake(steps=STEPS.replace("events-1.csv", "events.parquet")), *parts)


# Files that are none


def test_a_scenario_that_is_not_there_is_told(tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text("")
    with pytest.raises(
        BadScenario, match=r"scenari.toml: there is no such file; did you mean 'scenario.toml'"
    ):
        read_scenario(tmp_path / "scenari.toml")
    with pytest.raises(BadScenario, match="is a directory; right is a file"):
        read_scenario(tmp_path)
    with pytest.raises(BadScenario, match="no regular file"):
        read_scenario(Path("/dev/null"))
    (tmp_path / "scenario.toml").write_bytes(b"[schema]\n\xff")
    with pytest.raises(BadScenario, match=r"scenario.toml line 2: byte 0xff is not UTF-8"):
        read_scenario(tmp_path / "scenario.toml")
