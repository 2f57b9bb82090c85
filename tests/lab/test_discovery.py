"""Discovery on real switches: what is plugged in is found, what is pulled is missed, and hosts cannot make it up."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from flowsieve.control.discovery.differences import DifferenceKind
from flowsieve.control.discovery.discoverer import PUNTS, Discoverer
from flowsieve.control.discovery.findings import SwitchPort
from flowsieve.control.discovery.growth import grown
from flowsieve.errors import SwitchError
from flowsieve.flow.punt import FRAMES_OF_A_PORT, Punt, host_ports, link_ports, with_ports
from flowsieve.lab.blueprint import HOST_INTERFACE
from flowsieve.lab.hosts import Hosts
from flowsieve.lab.lab import Lab, running
from flowsieve.network.lldp import ETHERTYPE, Beacon
from flowsieve.network.names import Names
from flowsieve.network.topology import Topology
from flowsieve.southbound.fabric import Connected, SwitchEvent
from flowsieve.southbound.openflow.datapath_id import switch_id
from flowsieve.southbound.openflow.fabric import OpenFlowFabric

pytestmark = pytest.mark.real

NETWORK = Topology.make(
    [("s1", "s2"), ("s2", "s3"), ("s3", "s1")], {"ann": "s1", "bob": "s2", "cy": "s3", "dee": "s3"}
)
INTERVAL = 0.2
PATIENCE = 20.0
CALL = "ff02::f10e:c0:1"  # where hosts say something that is handed over
SPOKEN = Punt.to(CALL, 9, rate=100)


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not true():
            await asyncio.sleep(INTERVAL / 10)


@asynccontextmanager
async def discovering(
    lab: Lab, described: Topology = NETWORK, *, listen: str | None = None
) -> AsyncIterator[Discoverer]:
    """Discovery on a lab's switches, which are dialled, or dial us and are told apart by their datapath ids."""
    hosts = {lab.addresses(host).mac: host for host in lab.topology.hosts}
    names = Names({switch_id(lab.datapath_id(switch)): switch for switch in lab.topology.switches}, hosts)
    tasks: set[asyncio.Task[None]] = set()

    async def punt(switch: str) -> None:
        with suppress(SwitchError):
            ports = host_ports(described, switch), link_ports(described, switch)
            await fabric.punt(switch, with_ports([*PUNTS, SPOKEN], *ports))

    def heard(event: SwitchEvent) -> None:
        if isinstance(event, Connected):
            tasks.add(asyncio.get_running_loop().create_task(punt(event.switch)))
        discoverer.heard(event)

    fabric = OpenFlowFabric(
        lab.switch_addresses if listen is None else {}, listen=listen, unknown=names.switch, report=heard
    )
    discoverer = Discoverer(fabric, names, lambda: described, interval=INTERVAL)
    async with discoverer, fabric:
        yield discoverer
    await asyncio.gather(*tasks)


def speak(lab: Lab) -> None:
    with Hosts(lab) as hosts:
        for number in range(len(lab.topology.hosts)):
            hosts.send(number, 6, int.from_bytes(socket.inet_pton(socket.AF_INET6, CALL), "big"), b"hello")


def open_wire(lab: Lab, host: str) -> socket.socket:
    """All LLDP frames at a host, and a way to send what it likes."""
    with lab.inside(host):
        wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        try:
            wire.bind((HOST_INTERFACE, ETHERTYPE))
        except OSError:
            wire.close()
            raise
    wire.settimeout(PATIENCE)
    return wire


def test_a_network_is_found_with_its_hosts_and_a_pulled_cable_is_missed_until_it_is_back() -> None:
    async def play(lab: Lab) -> None:
        async with discovering(lab) as discoverer:
            await until(lambda: not discoverer.differences)
            assert len(discoverer.findings.links) == 3
            assert discoverer.findings.hosts == ()
            speak(lab)
            await until(lambda: len(discoverer.findings.hosts) == 4)
            assert not discoverer.differences
            (ann, *_) = discoverer.findings.hosts
            assert (ann.name, ann.place) == ("ann", SwitchPort("s1", 3))
            assert ann.addresses == (lab.addresses("ann").ipv6,)
            made = grown(Topology(NETWORK.switches, (), {}), discoverer.findings)
            for switch in NETWORK.switches:
                near = NETWORK.neighbours(switch)
                assert [made.number(switch, each) for each in near] == list(range(1, len(near) + 1))
            lab.set_link("s1", "s2", up=False)
            await until(lambda: bool(discoverer.differences))
            assert [each.kind for each in discoverer.differences] == [DifferenceKind.LINK_MISSING]
            lab.set_link("s1", "s2", up=True)
            await until(lambda: not discoverer.differences)
            assert discoverer.discovery.rejected == 0, discoverer.discovery.last_rejection

    with running(NETWORK) as lab:
        asyncio.run(play(lab))


FLOOD = """
import socket, time
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
wire.bind(("eth0", 0))
frame = bytes.fromhex("0180c200000e" "020000000bad" "88cc") + bytes(60)
began, sent = time.monotonic(), 0
while time.monotonic() < began + 60:
    for _ in range(50):
        wire.send(frame)
    sent += 50
    time.sleep(max(0.0, began + sent / 13000 - time.monotonic()))
"""


def test_a_host_that_floods_is_told_of_and_disturbs_no_link(caplog: pytest.LogCaptureFixture) -> None:
    async def play(lab: Lab) -> None:
        async with discovering(lab) as discoverer:
            await until(lambda: not discoverer.differences)
            flood = lab.exec("ann", [sys.executable, "-c", FLOOD])
            try:
                place = SwitchPort("s1", 3)
                await until(lambda: place in discoverer.floods)
                missing, seen = 0, discoverer.discovery.rejected
                until_then = asyncio.get_running_loop().time() + 3
                while asyncio.get_running_loop().time() < until_then:
                    await asyncio.sleep(0.02)
                    missing += len(discoverer.findings.links) != 3
                assert flood.poll() is None
                assert missing == 0, f"{missing} looks at links that are not there"
                assert discoverer.discovery.rejected - seen <= 8 * FRAMES_OF_A_PORT
                await until(lambda: "port 3 of switch s1 floods" in caplog.text)
                assert "(ann is there)" in caplog.text
            finally:
                flood.kill()
                flood.wait(10)
            assert caplog.text.count(" floods:") == 1

    with running(NETWORK) as lab:
        asyncio.run(play(lab))


def test_what_was_described_wrongly_is_told_in_sentences() -> None:
    described = Topology.make(
        [("s2", "s3"), ("s1", "s2")], {"ann": "s2", "bob": "s1"}, ["s1", "s2", "s3", "s9"]
    )

    async def play(lab: Lab) -> None:
        async with discovering(lab, described) as discoverer:
            await until(lambda: len(discoverer.findings.links) == 3)
            speak(lab)
            await until(lambda: len(discoverer.findings.hosts) == 4)
            texts = set(map(str, discoverer.differences))
        assert "switch s9 is not connected" in texts
        assert (
            "the link s2 (port 1) - s3 (port 1) is plugged into other ports: s2 (port 2) - s3 (port 1)"
            in texts
        )
        assert "the link s1 (port 2) - s3 (port 2) is not in the configuration" in " ".join(texts)
        assert "host ann is at port 3 of switch s1; it should be at port 3 of switch s2" in texts

    with running(NETWORK) as lab:
        asyncio.run(play(lab))


def test_hosts_that_forge_or_replay_frames_make_no_link() -> None:
    async def play(lab: Lab) -> None:
        async with discovering(lab) as discoverer:
            await until(lambda: not discoverer.differences)
            loop, rejected = asyncio.get_running_loop(), discoverer.discovery.rejected
            with open_wire(lab, "ann") as ann, open_wire(lab, "cy") as cy:
                old = await loop.run_in_executor(None, ann.recv, 2000)
                forged = Beacon(switch_id(lab.datapath_id("s1")), 3, 1).frame(b"a key that somebody guessed")
                damaged = bytes([*old[:30], old[30] ^ 1, *old[31:]])
                for frame in (forged, damaged, old[:40], old + b"\0"):
                    cy.send(frame)
                await until(lambda: discoverer.discovery.rejected >= rejected + 4)
                await until(lambda: _is_stale(discoverer, old))
                cy.send(old)
                await until(lambda: discoverer.discovery.rejected >= rejected + 5)
                assert "too old" in (discoverer.discovery.last_rejection or "")
            assert not discoverer.differences
            assert discoverer.findings.one_sided == ()

    with running(NETWORK) as lab:
        asyncio.run(play(lab))


def _is_stale(discoverer: Discoverer, frame: bytes) -> bool:
    """Whether a beacon of s1's port to ann has been followed by enough others."""
    count = Beacon.parse(frame, discoverer.discovery._key).count
    return count not in [number for number, _ in discoverer.discovery._sent.get(SwitchPort("s1", 3), [])]


def test_switches_are_found_when_they_dial() -> None:
    async def play(lab: Lab) -> None:
        address = f"unix:{lab.directory / 'dialled.sock'}"
        async with discovering(lab, listen=address) as discoverer:
            for switch in lab.topology.switches:
                words = [
                    "ovs-vsctl",
                    f"--db=unix:{lab.database}",
                    "set-controller",
                    lab.bridge(switch),
                    address,
                ]
                subprocess.run(words, check=True, timeout=20)
            await until(lambda: len(discoverer.findings.links) == 3)
            speak(lab)
            await until(lambda: len(discoverer.findings.hosts) == 4)
            assert discoverer.findings.switches == NETWORK.switches

    with running(NETWORK) as lab:
        asyncio.run(play(lab))
