"""Scenarios on a lab of real switches: the same arrives as on the embedded network."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from flowsieve.errors import LabError, SwitchError, TableFull
from flowsieve.flow.diff import FlowOp, OpKind
from flowsieve.flow.entry import Flow, Output
from flowsieve.header.address import Prefix
from flowsieve.header.match import PrefixMatch
from flowsieve.lab import counters, machine
from flowsieve.lab.hosts import Hosts
from flowsieve.lab.lab import Lab, labs, running
from flowsieve.lab.real_network import RealNetwork, real_network
from flowsieve.network.generators import line, ring
from flowsieve.network.topology import Topology
from flowsieve.southbound.embedded.batch import Batch
from flowsieve.southbound.embedded.network import EmbeddedNetwork
from flowsieve.southbound.openflow.fabric import OpenFlowFabric
from flowsieve.southbound.openflow.threaded_switches import OpenFlowSwitches

Command = Callable[..., Any]
GROUP = 0xFF0E << 48  # the upper half of an address of the group ff0e
real = pytest.mark.real


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    """No lab of this process is there afterwards."""
    yield
    assert [lab.name for lab in labs() if lab.owner == os.getpid()] == []


def copies(path: Path) -> Counter[str]:
    """The rows of a table, however ordered."""
    return Counter(path.read_text().splitlines())


def assert_same_on_both(flowsieve: Command, scenario: Path, out: Path) -> dict[str, Any]:
    """Play a scenario on both networks; returns the report."""
    reports = {}
    for network in ("embedded", "ovs"):
        answer = flowsieve("run", scenario, "--out", out / network, "--network", network, "--json")
        assert answer.status == 0, answer.err
        reports[network] = {name: value for name, value in answer.json.items() if name != "seconds"}
    assert reports["ovs"] == reports["embedded"]
    for table in ("deliveries.csv", "matches.csv", "packets.csv"):
        assert copies(out / "ovs" / table) == copies(out / "embedded" / table)
    flows = [json.loads((out / network / "flows.json").read_text()) for network in reports]
    assert flows[0] == flows[1]
    assert reports["ovs"]["deliveries"] > 0
    assert reports["ovs"]["link_packets"] > 0
    return reports["ovs"]


@real
def test_a_scenario_gives_the_same_on_real_switches(flowsieve: Command, scene: Any, tmp_path: Path) -> None:
    assert_same_on_both(flowsieve, scene.scenario, tmp_path)


@real
def test_a_scenario_in_ipv4_with_small_tables_and_long_names_gives_the_same(
    flowsieve: Command, scene: Any, tmp_path: Path
) -> None:
    scene.replace("bits = 11", 'bits = 11\nheader = "ipv4"')
    scene.replace("[network]\n", "[network]\ntable_capacity = 6\n")
    scene.replace('"s1"', '"a switch in Zürich"')
    report = assert_same_on_both(flowsieve, scene.scenario, tmp_path)
    assert report["flows_max"] <= 6


@real
@pytest.mark.parametrize("name", ["ring-exact", "tree-ipv4-strays", "fat-tree-rich", "geant-capacity"])
def test_an_acceptance_scenario_gives_the_same_and_holds(
    flowsieve: Command, shared: Path, tmp_path: Path, name: str
) -> None:
    oracle, scenario = shared / "acceptance" / "oracle.py", shared / "acceptance" / name / "scenario.toml"
    assert_same_on_both(flowsieve, scenario, tmp_path)
    command = [sys.executable, str(oracle), str(scenario), "--out", str(tmp_path / "ovs")]
    verdict = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert verdict.returncode == 0, verdict.stdout + verdict.stderr
    assert verdict.stdout.startswith("holds: ")


@real
def test_a_scenario_of_labels_gives_the_same_and_holds(
    flowsieve: Command, shared: Path, scene: Any, tmp_path: Path
) -> None:
    hosts = "".join(f'x{n} = "s{n % 3 + 1}"\n' for n in range(120))  # so that there are two sets
    scene.replace("bits = 11\nmax_dz_per_filter = 0", 'header = "receivers"')
    scene.replace("[[step]]\nrequests", f"{hosts}[[step]]\nrequests")
    more = "".join(f"sub,x{n},x{n},price < {8 * n}\n" for n in range(1, 120))
    scene.write("requests.csv", (scene.folder / "requests.csv").read_text() + more)
    report = assert_same_on_both(flowsieve, scene.scenario, tmp_path)
    assert (report["sets"], report["false_positives"], report["deliveries"]) == (2, 0, report["wanted"])
    oracle = shared / "acceptance" / "oracle.py"
    command = [sys.executable, str(oracle), str(scene.scenario), "--out", str(tmp_path / "ovs")]
    verdict = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert verdict.stdout.startswith("holds: "), verdict.stdout + verdict.stderr


@real
@pytest.mark.parametrize("capacity", [1000, 11])
def test_a_scenario_of_bloom_filters_gives_the_same_and_holds(
    flowsieve: Command, shared: Path, scene: Any, tmp_path: Path, capacity: int
) -> None:
    """Also where entries have to be merged, in the end those that slices of requests before have left in the tables."""
    scene.replace("bits = 11\nmax_dz_per_filter = 0", 'header = "bloom"\nfilters_per_packet = 4')
    scene.replace("[network]\n", f"[network]\ntable_capacity = {capacity}\n")
    more = "".join(f"sub,x{n},{'cy' if n % 2 else 'dee'},{n} <= price < {500 + n}\n" for n in range(12))
    rows = more.splitlines(keepends=True)
    for number, some in enumerate((rows[:6], rows[6:])):
        scene.write(f"more{number}.csv", "op,id,host,filter\n" + "".join(some))
    steps = "".join(f'requests = "more{number}.csv"\n[[step]]\n' for number in range(2))
    scene.replace('events = "events.csv"\n', f'{steps}events = "events.csv"\n')
    report = assert_same_on_both(flowsieve, scene.scenario, tmp_path)
    assert (report["refused"], report["false_negatives"], report["duplicates"]) == (0, 0, 0)
    assert report["packets_per_event"] > 1
    assert report["flows_max"] < capacity
    assert (report["merged_entries"] > 0) == (capacity == 11)
    oracle = shared / "acceptance" / "oracle.py"
    command = [sys.executable, str(oracle), str(scene.scenario), "--out", str(tmp_path / "ovs")]
    verdict = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert verdict.stdout.startswith("holds: "), verdict.stdout + verdict.stderr


def outcome(batch: Batch) -> list[list[int]]:
    """The hosts that each packet reached, once for each copy."""
    return [sorted(part.tolist()) for part in np.split(batch.host, batch.rows[1:-1])]


def install(length: int, bits: int, *ports: int) -> FlowOp:
    flow = Flow(
        PrefixMatch(Prefix(6, 0xFF0E << length | bits, 16 + length)), 1000 + length, tuple(map(Output, ports))
    )
    return FlowOp(OpKind.INSTALL, flow)


@real
def test_every_copy_counts_also_those_of_tables_that_loop() -> None:
    random = Random(7)
    topology = Topology.make(
        [("s1", "s2"), ("s2", "s3"), ("s3", "s1")], {"a": "s1", "b": "s2", "c": "s3", "d": "s3"}
    )
    embedded = EmbeddedNetwork(topology)
    publishers = np.array([random.randrange(4) for _ in range(60)])
    hi = np.array([GROUP | random.getrandbits(4) << 44 for _ in publishers], dtype=np.uint64)
    with real_network(topology) as network:
        for switch in topology.switches:
            ports = range(1, len(topology.neighbours(switch)) + 1)
            ops = [
                install(length, bits, *sorted(random.sample(ports, random.randint(1, len(ports)))))
                for length in (1, 3)
                for bits in range(2**length)
            ]
            for each in (embedded, network):
                each.apply(switch, ops)
        for _ in range(2):
            network.settle()
            expected = embedded.deliver(publishers, hi, np.zeros_like(hi))
            got = network.deliver(publishers, hi, np.zeros_like(hi))
            assert outcome(got) == outcome(expected)
            assert network.link_packets == embedded.link_packets
    assert expected.expired > 0
    assert len(got.host) > 4 * len(publishers)


@real
def test_a_switch_takes_no_more_entries_than_its_capacity() -> None:
    with real_network(line(2), capacity=3) as network:
        kept = network.apply("s0", [install(2, bits, 1) for bits in range(3)])
        over = network.apply("s0", [install(2, 3, 1)])
        network.settle()
        assert (kept.error, kept.done) == (None, 3)
        assert isinstance(over.error, TableFull)
        assert len(network.read("s0")) == 3


@contextmanager
def parts(topology: Topology) -> Iterator[tuple[Lab, Hosts, RealNetwork]]:
    with (
        running(topology) as lab,
        Hosts(lab) as hosts,
        OpenFlowSwitches(OpenFlowFabric(lab.switch_addresses)) as switches,
    ):
        switches.wait_connected()
        yield lab, hosts, RealNetwork(lab, switches, hosts)


@real
def test_packets_that_the_switches_lose_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "PATIENCE_SECONDS", 0.3)
    hi = np.full(5, GROUP, dtype=np.uint64)
    with parts(line(2)) as (lab, hosts, network):
        lab.signal_vswitchd(signal.SIGSTOP)
        for _ in range(3000):  # more than a port's queue has room for
            hosts.send(0, 6, GROUP << 64, b"")
        lab.signal_vswitchd(signal.SIGCONT)
        with pytest.raises(SwitchError, match=r"the switches lost \d+ packets"):
            network.deliver(np.zeros(5, np.int64), hi, np.zeros_like(hi))


@real
def test_what_others_send_is_passed_over() -> None:
    hi = np.full(3, GROUP, dtype=np.uint64)
    with parts(ring(3)) as (lab, hosts, network):
        port = lab.topology.port("s0", "h0")
        network.apply("s0", [install(0, 0, port)])
        network.apply("s1", [install(0, 0, lab.topology.port("s1", "s0"))])
        network.settle()
        for payload in (b"", b"hello", b"12345678123412345678"):
            hosts.send(1, 6, GROUP << 64, payload)
        batch = network.deliver(np.ones(3, np.int64), hi, np.zeros_like(hi))
        assert outcome(batch) == [[0], [0], [0]]


@real
def test_switches_that_die_are_an_error_and_the_lab_goes() -> None:
    hi = np.full(1, GROUP, dtype=np.uint64)
    with parts(line(2)) as (lab, _, network):
        lab.kill_vswitchd()
        with pytest.raises(LabError, match="do not answer"):
            network.deliver(np.zeros(1, np.int64), hi, np.zeros_like(hi))


def test_where_there_can_be_no_lab_the_command_says_why(
    flowsieve: Command, scene: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(machine, "SYSTEM_PATH", str(tmp_path))
    answer = flowsieve("run", scene.scenario, "--out", tmp_path / "out", "--network", "ovs", "--json")
    assert (answer.status, answer.out) == (2, "")
    assert "there is no network 'ovs' here: a lab needs" in answer.err
    assert not (tmp_path / "out").exists()
