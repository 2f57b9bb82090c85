"""What is acknowledged is what packets meet, on a real datapath under load."""

from __future__ import annotations

import asyncio
import mmap
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from flowsieve.flow.diff import FlowOp, OpKind
from flowsieve.flow.entry import Flow, Output
from flowsieve.header.address import Prefix
from flowsieve.header.match import PrefixMatch
from flowsieve.lab.blueprint import HOST_INTERFACE
from flowsieve.lab.lab import Lab, running
from flowsieve.network.topology import Topology
from flowsieve.southbound.openflow.fabric import OpenFlowFabric
from flowsieve.southbound.openflow.switch_session import Timing

NETWORK = Topology.make([], {"a": "s1", "b": "s1", "c": "s1", "d": "s2"}, switches=["s1", "s2"])
RATE = 20_000  # packets per second
CELLS = 64
ROUNDS = 200
WINDOW = 40  # packets that arrive, at least, between an acknowledgement and the next change
PATIENCE_S = 120.0
HEADERS = 40 + 8


class Flood:
    """Packets from host a, and which of them reached b and c."""

    def __init__(self, lab: Lab, counter: mmap.mmap) -> None:
        self._counter = counter
        self._wires = {host: _wire(lab, host) for host in ("b", "c")}
        self.got: dict[str, set[int]] = {"b": set(), "c": set()}

    @property
    def last(self) -> int:
        """The number of the last packet that may have been sent."""
        return int(struct.unpack("=Q", self._counter[:8])[0])

    def collect(self) -> None:
        for host, wire in self._wires.items():
            while True:
                try:
                    packet = wire.recv(2048)
                except BlockingIOError:
                    break
                if len(packet) == HEADERS + 8:
                    self.got[host].add(int.from_bytes(packet[HEADERS:]))

    def close(self) -> None:
        for wire in self._wires.values():
            wire.close()


def _wire(lab: Lab, host: str) -> socket.socket:
    with lab.inside(host):
        wire = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM)
        wire.setsockopt(socket.SOL_SOCKET, 33, 32 << 20)  # SO_RCVBUFFORCE
        wire.bind((HOST_INTERFACE, 0x86DD))
    wire.setblocking(False)
    return wire


@contextmanager
def flooded(lab: Lab, place: Path) -> Iterator[Flood]:
    place.write_bytes(bytes(8))
    words = [sys.executable, str(Path(__file__).parent / "flood.py")]
    words += [str(place), str(RATE), "ff0e::", str(CELLS)]
    descriptor = os.open(place, os.O_RDWR)
    with mmap.mmap(descriptor, 8) as counter:
        flood = Flood(lab, counter)
        with lab.exec("a", words, stdin=subprocess.PIPE) as sender:
            try:
                yield flood
            finally:
                assert sender.stdin is not None
                sender.stdin.close()
                sender.wait(10)
                flood.close()
                os.close(descriptor)


def sent_to(port: int, kind: OpKind) -> list[FlowOp]:
    """All cells go to one port."""
    bits = (CELLS - 1).bit_length()
    return [
        FlowOp(
            kind, Flow(PrefixMatch(Prefix(6, 0xFF0E << bits | i, 16 + bits)), 1000 + bits, (Output(port),))
        )
        for i in range(CELLS)
    ]


async def hammer(lab: Lab, fabric: OpenFlowFabric, flood: Flood) -> list[tuple[str, int, int]]:
    """Change the table back and forth.

    Returns for whom each change was, the first packet sent after it was acknowledged, and the last that had arrived
    before the next change.
    """
    ports = {host: NETWORK.port("s1", host) for host in ("b", "c")}
    await fabric.apply("s1", sent_to(ports["b"], OpKind.INSTALL))
    windows = []
    for number in range(ROUNDS):
        host = "cb"[number % 2]
        elsewhere = asyncio.create_task(fabric.apply("s2", sent_to(1, OpKind.INSTALL)[:1]))
        await asyncio.sleep(number % 10 / 1000)  # so that the datapath is at work already, or not yet
        await fabric.apply("s1", sent_to(ports[host], OpKind.MODIFY))
        first = flood.last + 1
        while (last := max(flood.got[host], default=0)) < first + WINDOW:  # later ones may wait at the switch
            await asyncio.sleep(0.001)
            flood.collect()
        windows.append((host, first, last))
        await elsewhere
    return windows


@pytest.mark.real
@pytest.mark.slow
def test_no_packet_meets_an_older_table_after_the_acknowledgement(tmp_path):
    async def main(lab: Lab, flood: Flood) -> list[tuple[str, int, int]]:
        async with (
            OpenFlowFabric(
                lab.switch_addresses, control=f"unix:{lab.control}", timing=Timing(lag=0.0)
            ) as fabric,
            asyncio.timeout(PATIENCE_S),
        ):
            await fabric.wait_connected()
            return await hammer(lab, fabric, flood)

    with running(NETWORK) as lab, flooded(lab, tmp_path / "counter") as flood:
        windows = asyncio.run(main(lab, flood))
        flood.collect()
        got = flood.got
    assert len(windows) == ROUNDS
    astray = [
        (host, number)
        for host, first, last in windows
        for number in range(first, last + 1)
        if number in got["b" if host == "c" else "c"]
    ]
    assert astray == []
    arrived = sum(number in got[host] for host, first, last in windows for number in range(first, last + 1))
    assert arrived > 0.5 * sum(last + 1 - first for _, first, last in windows)
