"""`flowsieve lab`, as people type it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from flowsieve.cli.lab import read_topology
from flowsieve.errors import BadTopology
from flowsieve.lab.lab import down, labs

Command = Callable[..., Any]
NAME = f"commands-{os.getpid()}"  # tests may run beside each other

GRAPHML = """\
<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="undirected">
<node id="0"/><node id="1"/><node id="2"/><edge source="0" target="1"/><edge source="1" target="2"/>
</graph></graphml>
"""


@pytest.fixture
def clean() -> Iterator[None]:
    """No lab of the test's name afterwards, whatever happened."""
    yield
    for lab in labs():
        if lab.name == NAME:
            down(lab)


def test_a_topology_is_a_generator_a_graphml_file_or_a_scenario(scene: Any) -> None:
    assert str(read_topology("tree:3,2")) == "15 switches, 14 links, 8 hosts"
    assert dict(read_topology(str(scene.scenario)).hosts) == {
        "ann": "s1",
        "bob": "s2",
        "cy": "s3",
        "dee": "s3",
    }
    graph = scene.write("net.graphml", GRAPHML)
    assert dict(read_topology(str(graph)).hosts) == {"h0": "0", "h1": "1", "h2": "2"}
    with pytest.raises(BadTopology, match="did you mean 'ring'"):
        read_topology("rng:4")


@pytest.mark.real
@pytest.mark.usefixtures("clean")
def test_up_list_exec_and_down(flowsieve: Command, tmp_path: Path) -> None:
    made = flowsieve("lab", "up", "ring:3", "--name", NAME, "--json").json
    assert made["switches"]["s1"]["datapath_id"] == 2
    assert made["switches"]["s0"]["ports"] == {"s1": 1, "s2": 2, "h0": 3}
    assert Path(made["switches"]["s2"]["management"]).is_socket()
    assert made["hosts"]["h2"]["ipv6"] == "fd00:f::3"

    listed = flowsieve("lab", "list", "--json").json["labs"]
    assert [lab["up"] for lab in listed if lab["name"] == NAME] == [True]
    assert NAME in flowsieve("lab", "list").out

    file = tmp_path / "out"
    shell = f"ip -o -6 address show dev eth0 > {file}; exit 7"
    assert flowsieve("lab", "exec", "--lab", NAME, "h2", "sh", "-c", shell).status == 7
    assert "fd00:f::3/64" in file.read_text()
    missing = flowsieve("lab", "exec", "--lab", NAME, "h9", "true")
    assert missing.status == 2
    assert "there is no host 'h9'" in missing.err

    taken = flowsieve("lab", "up", "ring:3", "--name", NAME)
    assert (taken.status, taken.out) == (2, "")

    assert flowsieve("lab", "down", NAME, "--json").json == {"down": [NAME]}
    gone = flowsieve("lab", "down", NAME)
    assert gone.status == 2
    assert f"there is no lab '{NAME}'" in gone.err
