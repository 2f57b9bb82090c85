"""Hosts that call a controller over a network that loses, doubles, reorders and truncates packets."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from flowsieve.client.inband_transport import InbandTransport
from flowsieve.header.frame import UdpFrame, build, parse
from flowsieve.protocol.addresses import CONTROL_ADDRESSES, CONTROL_PORT
from flowsieve.serving.inband.inband_server import InbandServer
from flowsieve.southbound.fabric import PuntedPacket

SWITCH = "s1"
CONTROL_MACS = {4: bytes.fromhex("01005e00ff01"), 6: bytes.fromhex("333300c00001")}


def message(
    n: int = 1, host: str = "h1", session: str = "ab" * 16, op: str = "renew", **more: object
) -> dict[str, Any]:
    return {"session": session, "n": n, "host": host, "token": "t", "op": op, **more}


class CountingHandler:
    """Echoes; a call is carried out once and then remembered."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.executed: Counter[tuple[str, int]] = Counter()
        self.calls = 0
        self.hosts: set[str | None] = set()
        self._seconds = seconds
        self._done: dict[tuple[str, int], Mapping[str, Any]] = {}

    async def call(self, message: Mapping[str, Any], host: str | None) -> Mapping[str, Any]:
        self.calls += 1
        self.hosts.add(host)
        key = message["session"], message["n"]
        if key not in self._done:
            self.executed[key] += 1
            self._done[key] = {"ok": {"n": message["n"], "long": "x" * message.get("size", 0)}}
        if self._seconds:
            await asyncio.sleep(self._seconds)
        return self._done[key]


@dataclass(frozen=True)
class Weather:
    """How likely it is that a packet gets lost, comes twice, is cut off; how long it takes at most."""

    loss: float = 0.0
    double: float = 0.0
    cut: float = 0.0
    delay: float = 0.001


class Network:
    """A switch with hosts h1, h2, … at ports 1, 2, …, or with others."""

    def __init__(
        self,
        handler: Any,
        weather: Weather,
        seed: int = 0,
        family: int = 6,
        hosts: Mapping[int, str] | None = None,
        **bounds: int,
    ) -> None:
        self._hosts = {port: f"h{port}" for port in range(1, 100)} if hosts is None else hosts
        self.server = InbandServer(handler.call, self._out, self._host_at, **bounds)
        self.sent: list[bytes] = []  # packets to hosts, before anything happens to them
        self._weather, self._draw, self._family = weather, random.Random(seed), family
        self._hear: dict[int, Callable[[bytes], None]] = {}

    def transport(self, port: int) -> InbandTransport:
        """The client of the host at a port."""
        return InbandTransport(HostWire(self, port), self._draw.random)

    def frame(self, port: int, payload: bytes) -> bytes:
        """A host's datagram to the controller."""
        address = CONTROL_ADDRESSES[self._family]
        destination = address.first.to_bytes(address.width // 8)
        source = bytes([10, 0, 0, port]) if self._family == 4 else bytes([0xFD, *bytes(14), port])
        mac = bytes([2, 0, 0, 0, 0, port])
        return build(
            UdpFrame(mac, CONTROL_MACS[self._family], source, destination, 5000 + port, CONTROL_PORT, payload)
        )

    def _host_at(self, switch: str, port: int) -> str | None:
        return self._hosts.get(port) if switch == SWITCH else None

    async def _out(self, switch: str, port: int, packet: bytes) -> None:
        assert switch == SWITCH
        self.sent.append(packet)
        self.carry(packet, lambda data: self._arrive(port, data))

    def _arrive(self, port: int, data: bytes) -> None:
        try:
            frame = parse(data)
        except Exception:
            return  # a host's kernel drops it
        assert frame.destination_mac == bytes([2, 0, 0, 0, 0, port])
        assert frame.destination_port == 5000 + port
        if port in self._hear:
            self._hear[port](frame.payload)

    def carry(self, data: bytes, to: Callable[[bytes], None]) -> None:
        draw, weather = self._draw, self._weather
        for _ in range(2 if draw.random() < weather.double else 1):
            if draw.random() >= weather.loss:
                whole = draw.random() >= weather.cut
                arrived = data if whole else data[: draw.randrange(len(data))]
                delay = weather.delay * draw.random()
                asyncio.get_running_loop().call_later(delay, to, arrived)


class HostWire:
    """What carries a host's datagrams to the switch and back."""

    def __init__(self, network: Network, port: int) -> None:
        self._network, self._port = network, port

    def send(self, datagram: bytes) -> None:
        packet = self._network.frame(self._port, datagram)
        self._network.carry(
            packet, lambda data: self._network.server.heard(PuntedPacket(SWITCH, self._port, data))
        )

    def listen(self, hear: Callable[[bytes], None]) -> None:
        self._network._hear[self._port] = hear

    def close(self) -> None:
        self._network._hear.pop(self._port, None)
