"""Labs on the machine itself."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from flowsieve.errors import BadInput, LabError
from flowsieve.lab import machine
from flowsieve.lab.lab import Lab, down, find, labs, running, up
from flowsieve.lab.machine import check_machine
from flowsieve.lab.place import BASE
from flowsieve.lab.process import PRECEDENCE, arguments, held
from flowsieve.network.generators import generate, line
from flowsieve.network.topology import Topology

pytestmark = pytest.mark.real
PATIENCE_SECONDS = 20


def eventually(condition: Callable[[], bool]) -> bool:
    """Whether a condition comes to hold within a bounded time."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (holds := condition()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return holds


def ofctl(lab: Lab, command: str, switch: str, *words: str) -> str:
    target = f"unix:{lab.management(switch)}"
    done = subprocess.run(
        ["ovs-ofctl", "-O", "OpenFlow14", command, target, *words], capture_output=True, text=True, check=True
    )
    return done.stdout


def ports(lab: Lab, switch: str) -> dict[str, int]:
    """The interfaces of a switch and their ports, as the switch says."""
    return {name: int(port) for port, name in re.findall(r"(?m)^ (\d+)\((.+)\):", ofctl(lab, "show", switch))}


def namespaces(lab: Lab) -> set[int]:
    return {path.stat().st_ino for path in (lab.switch_namespace, *map(lab.namespace, lab.topology.hosts))}


def processes(directory: Path, inside: set[int]) -> list[int]:
    """Those that are in one of the namespaces, hold it open, or were started for the directory."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            files = [entry / "ns" / "net", *(entry / "fd").iterdir()]
            touched = any(_inode(file) in inside for file in files)
        except OSError:
            continue
        if touched or any(str(directory) in word for word in arguments(int(entry.name))):
            found.append(int(entry.name))
    return found


def _inode(file: Path) -> int | None:
    try:
        match = re.fullmatch(r"net:\[(\d+)\]", str(file.readlink()))
    except OSError:  # closed meanwhile
        return None
    return int(match[1]) if match else None


@pytest.fixture
def pair() -> Iterator[Lab]:
    """Two switches with a host each."""
    with running(line(2)) as lab:
        yield lab


@pytest.mark.parametrize("text", ["ring:3", "fat-tree:4"])
def test_a_lab_has_the_ports_of_its_topology_and_leaves_nothing(text: str) -> None:
    topology = generate(text)
    lab = up(topology)
    try:
        assert lab.is_up
        for switch in topology.switches:
            expected = {
                lab.interface(switch, near): topology.port(switch, near)
                for near in topology.neighbours(switch)
            }
            assert ports(lab, switch) == expected
        shown = ofctl(lab, "show", topology.switches[-1])
        assert f"dpid:{len(topology.switches):016x}" in shown
        inside = namespaces(lab)
        assert len(inside) == 1 + len(topology.hosts)
        assert lab.keeper in processes(lab.directory, inside)
        assert len(processes(lab.directory, inside)) == 3  # the keeper and two daemons
    finally:
        down(lab)
    assert eventually(lambda: not processes(lab.directory, inside))
    assert not lab.directory.exists()
    assert not lab.is_up


def test_names_that_the_machine_cannot_use_do_not_matter() -> None:
    topology = Topology.make([("São Paulo", "0")], {"a host": "São Paulo", "../b": "0"})
    with running(topology) as lab:
        assert ports(lab, "0") == {"b1.1": 1, "b1.2": 2}
        with lab.exec("../b", ["ip", "-6", "address"], stdout=subprocess.PIPE, text=True) as process:
            assert "fd00:f::2/64" in process.communicate()[0]


def test_labs_live_side_by_side() -> None:
    with running(line(2)) as one:
        with running(line(2)) as other:
            ofctl(one, "add-flow", "s0", "priority=7,actions=drop")
            assert "priority=7" in ofctl(one, "dump-flows", "s0")
            assert "priority=7" not in ofctl(other, "dump-flows", "s0")
            assert not namespaces(one) & namespaces(other)
        assert not other.is_up
        assert "priority=7" in ofctl(one, "dump-flows", "s0")


def test_a_lab_is_found_from_its_directory() -> None:
    with running(generate("ring:3")) as lab:
        assert find(lab.name) == lab
        assert lab in labs()


class Wire:
    """Sends from h0 and receives on h1, over group addresses of one family."""

    def __init__(self, lab: Lab, version: int) -> None:
        self.lab, self.version = lab, version
        self.own = lab.addresses("h1")
        self.address = self.own.ipv6 if version == 6 else self.own.ipv4
        family = socket.AF_INET6 if version == 6 else socket.AF_INET
        with lab.inside("h0"):
            self.sender = socket.socket(family, socket.SOCK_DGRAM)
        with lab.inside("h1"):
            self.receiver = socket.socket(family, socket.SOCK_DGRAM)
        self.receiver.bind((self.address, 7000))
        self.receiver.settimeout(0.2)
        if version == 6:
            self.sender.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 64)
        else:
            self.sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 64)

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.sender.close()
        self.receiver.close()

    def forward(self, prefix: str) -> None:
        """Flows over both switches; the last one gives packets the host's own address."""
        kind, field, target = (
            ("ipv6", "ipv6_dst", "ipv6_dst") if self.version == 6 else ("ip", "nw_dst", "ip_dst")
        )
        match = f"{kind},{field}={prefix}"
        ofctl(self.lab, "add-flow", "s0", f"{match},actions=output:1")
        rewrite = f"set_field:{self.address}->{target},set_field:{self.own.mac}->eth_dst"
        ofctl(self.lab, "add-flow", "s1", f"{match},actions={rewrite},output:2")

    def send(self, group: str, payload: bytes) -> None:
        self.sender.sendto(payload, (group, 7000))

    def first_of(self, group: str, payload: bytes) -> bytes:
        """The first that arrives, if the payload is sent again and again."""
        for _ in range(50):
            self.send(group, payload)
            with contextlib.suppress(TimeoutError):
                return self.receiver.recv(100)
        raise AssertionError("nothing arrives")


@pytest.mark.parametrize(
    ("version", "prefix", "group", "elsewhere"),
    [
        (6, "ff0e:c000::/19", "ff0e:c800::", "ff0e:4000::"),
        (4, "225.168.0.0/13", "225.170.0.1", "225.128.0.1"),
    ],
)
def test_packets_cross_switches_where_flows_send_them_and_nowhere_else(
    pair: Lab, version: int, prefix: str, group: str, elsewhere: str
) -> None:
    with Wire(pair, version) as wire:
        wire.send(elsewhere, b"no flow at all")
        wire.forward(prefix)
        wire.send(elsewhere, b"no flow for this")
        # One wire keeps the order: whatever was sent before would have come before. A host takes no UDP
        # packet whose checksum is wrong. The datapath may follow the tables only after a while.
        assert wire.first_of(group, b"wanted") == b"wanted"


def test_a_command_runs_on_its_host_and_ends_with_the_lab() -> None:
    with running(line(2)) as lab:
        sleeper = lab.exec("h1", ["sleep", "1000"])
        with lab.exec("h1", ["ip", "-o", "address"], stdout=subprocess.PIPE, text=True) as process:
            shown = process.communicate()[0]
        assert "fd00:f::2/64" in shown
        assert "10.0.0.2/8" in shown
        assert "fe80" not in shown
    assert sleeper.wait(PATIENCE_SECONDS) == -signal.SIGKILL
    with pytest.raises(LabError, match="is not up any more"):
        lab.exec("h1", ["true"])


def test_a_pulled_cable_is_seen_at_both_ends(pair: Lab) -> None:
    def link_down(switch: str) -> bool:
        port = re.search(r"(?ms)^ 1\(.*?current:", ofctl(pair, "show", switch))
        assert port is not None
        return "LINK_DOWN" in port[0]

    assert not link_down("s0")
    pair.set_link("s0", "s1", up=False)
    assert eventually(lambda: link_down("s0") and link_down("s1"))
    pair.set_link("s0", "s1", up=True)
    assert eventually(lambda: not link_down("s0") and not link_down("s1"))


def test_restarted_switches_have_their_ports_and_no_flows(pair: Lab) -> None:
    ofctl(pair, "add-flow", "s1", "priority=7,actions=drop")
    before = ports(pair, "s1")
    pair.kill_vswitchd()
    with pytest.raises(LabError, match="not running"):
        pair.signal_vswitchd(signal.SIGSTOP)
    pair.restart_vswitchd()
    assert ports(pair, "s1") == before
    assert "priority=7" not in ofctl(pair, "dump-flows", "s1")


OWNER = """
import sys
from flowsieve.lab.lab import running
from flowsieve.network.generators import line
with running(line(2)) as lab:
    print(lab.name, flush=True)
    sys.stdin.read()
"""


def test_a_lab_whose_owner_is_killed_takes_itself_down() -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with owner:
        assert owner.stdout is not None
        lab = find(owner.stdout.readline().strip())
        inside = namespaces(lab)
        assert lab.owner == owner.pid
        owner.kill()
    assert eventually(lambda: not lab.is_up and not processes(lab.directory, inside))
    assert not lab.directory.exists()


def test_of_a_lab_whose_keeper_is_killed_only_a_directory_is_left() -> None:
    lab = up(line(2))
    inside = namespaces(lab)
    with held(lab.keeper, str(lab.directory)) as keeper:
        assert keeper is not None
        signal.pidfd_send_signal(keeper, signal.SIGKILL)
    assert eventually(lambda: not processes(lab.directory, inside))
    assert not lab.is_up
    assert lab in labs()
    again = up(line(3), lab.name)  # a dead lab does not hold its name
    down(again)
    down(lab)  # nor does it harm to take it down
    assert lab not in labs()


def test_a_lab_goes_down_when_its_daemons_are_dead(pair: Lab) -> None:
    inside = namespaces(pair)
    pair.kill_vswitchd()
    down(pair)
    assert eventually(lambda: not processes(pair.directory, inside))
    assert not pair.directory.exists()


def test_a_lab_that_fails_on_the_way_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"broken-{os.getpid()}"
    broken = tmp_path / "ovs-vswitchd"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(LabError, match="did not come up: ovs-vswitchd ended with status 3"):
        up(line(2), name)
    directory = BASE / name
    assert eventually(lambda: not processes(directory, set()))
    assert not directory.exists()


def test_a_name_is_taken_once(pair: Lab) -> None:
    with pytest.raises(BadInput, match=f"there is a lab '{pair.name}' already"):
        up(line(2), pair.name)
    assert pair.is_up
    with pytest.raises(BadInput, match=r"right are up to 32"):
        up(line(2), "../x")
    with pytest.raises(BadInput, match="there is no lab 'nowhere'"):
        find("nowhere")


def test_without_root_the_error_says_so() -> None:
    os.seteuid(65534)
    try:
        with pytest.raises(LabError, match="a lab needs root"):
            check_machine()
    finally:
        os.seteuid(0)


def test_without_open_vswitch_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(machine, "SYSTEM_PATH", str(tmp_path))
    with pytest.raises(LabError, match="apt-get install iproute2 openvswitch-switch util-linux"):
        check_machine()


def test_switches_get_the_processor_before_others_also_after_a_restart(pair: Lab) -> None:
    """Without that, programs that use all of it keep packets waiting for seconds, and queues of ports overflow."""
    for restart in (False, True):
        if restart:
            pair.restart_vswitchd()
        pid = int((pair.directory / "ovs-vswitchd.pid").read_text())
        threads = [int(each.name) for each in Path(f"/proc/{pid}/task").iterdir()]
        assert {os.getpriority(os.PRIO_PROCESS, thread) for thread in threads} == {PRECEDENCE}
        session = Path(f"/proc/{pid}/autogroup")
        assert not session.exists() or session.read_text().split()[-1] == str(PRECEDENCE)
