"""Whatever bytes a scenario's files hold, reading them gives a scenario or says what is wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowsieve.errors import BadScenario
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.scenario.flow_files import read_flows
from flowsieve.scenario.read import read_scenario

FILES = {
    "scenario.toml": """\
[schema]
price = { type = "int", min = 0, max = 1023 }
side = { type = "enum", values = ["buy", "sell"] }
[index]
plan = "plan.json"
sample = "events-1.csv"
[network]
topology = "net.graphml"
[network.hosts]
h1 = "s1"
h2 = "s2"
[[step]]
requests = "requests-1.csv"
[[step]]
events = "events-1.csv"
[[step]]
events = "events-2.parquet"
""",
    "requests-1.csv": 'op,id,host,filter\nadv,p1,h1,True\nsub,s1,h2,"side in (""buy"",)"\nunsub,s1,h2,\n',
    "events-1.csv": 'id,host,price,side\ne1,h1,7,"buy"\ne2,h1,700,sell\n',
    "net.graphml": '<graphml><graph edgedefault="undirected"><node id="s1"/><node id="s2"/>'
    '<edge source="s1" target="s2"/></graph></graphml>',
    "flows.json": '[{"switch": "s1", "priority": 1000, "dst": "ff0e::/16", "out": ["s2", "h1"]}]',
}
MORSELS = [
    b'"',
    b"'",
    b"\n",
    b"\r",
    b"\0",
    b",",
    b"[",
    b"]",
    b"{",
    b"}",
    b"=",
    b"#",
    b"\\",
    b"\xff",
    b"/",
    b"..",
    b'"""',
]
WORDS = [
    b"9" * 20,
    b"-1",
    b"nan",
    b"inf",
    b"1e400",
    b"true",
    b"h1",
    b"1979-05-27",
    b"\xef\xbb\xbf",
    b"\xc3\xa9",
]
EDITS = st.tuples(
    st.integers(0, 3000), st.integers(0, 20), st.sampled_from([b"", *MORSELS, *WORDS]) | st.binary(max_size=3)
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("scenario")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    frame = pd.DataFrame({"id": ["e3", "e4"], "host": "h1", "price": [7, 8], "side": ["buy", "sell"]})
    frame.to_parquet(folder / "events-2.parquet")
    (folder / "schema.toml").write_text(FILES["scenario.toml"].partition("[index]")[0])
    schema = read_scenario(folder / "schema.toml", network=False).schema
    (folder / "plan.json").write_text(json.dumps(RegularPlan.make(schema, 5).to_json()))
    yield folder


@given(name=st.sampled_from([*FILES, "plan.json", "events-2.parquet"]), edits=st.lists(EDITS, max_size=3))
def test_a_spoilt_file_is_read_or_told(folder: Path, name: str, edits: list[tuple[int, int, bytes]]) -> None:
    path = folder / name
    whole = path.read_bytes()
    data = bytearray(whole)
    for at, length, new in edits:
        start = at % (len(data) + 1)
        data[start : start + length] = new
    path.write_bytes(data)
    try:
        scenario = read_scenario(folder / "scenario.toml")
        read_flows(folder / "flows.json", scenario)
    except BadScenario as error:
        assert edits and len(str(error)) < 4000
    finally:
        path.write_bytes(whole)
