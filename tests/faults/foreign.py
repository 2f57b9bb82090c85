"""A network that the controller did not bring up: it knows datapath ids and where to listen, and perhaps the cables."""

from __future__ import annotations

import asyncio
import json
import random
import socket
import subprocess
from collections.abc import AsyncIterator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
from daemonic import Daemonic, ended
from hatchery import Hatchery
from traffic import PATIENCE

from flowsieve.client.control_session import ControlConnection
from flowsieve.client.inband_transport import InbandTransport
from flowsieve.header.address import address_text
from flowsieve.lab.lab import Lab, running
from flowsieve.lab.machine import environment
from flowsieve.lab.namespace import entered
from flowsieve.network.generators import generate
from flowsieve.network.topology import Topology
from flowsieve.protocol.addresses import CONTROL_ADDRESSES, CONTROL_PORT
from flowsieve.serving.calls.tokens import Tokens, kept_secret
from flowsieve.serving.config import read_config
from flowsieve.serving.preview import known_topology
from flowsieve.serving.site.site import OwnSite

BACKOFF_MS = 1000  # the shortest that Open vSwitch takes; 8 s unless it is said
CONFIG = """\
[schema]
a = { type = "int", min = 0, max = 255 }
b = { type = "int", min = 0, max = 255 }
[index]
"""


class Foreign(Daemonic):
    """The switches of a lab as if they were nobody's: they have been told to connect to a socket, and that is all."""

    def __init__(
        self,
        lab: Lab,
        folder: Path,
        hatchery: Hatchery,
        *,
        described: bool = False,
        left_out: frozenset[str] = frozenset(),
        dialled: frozenset[str] = frozenset(),
    ) -> None:
        self.described = described  # whether links and hosts are in the configuration
        self.left_out = left_out  # switches whose datapath ids are not in it
        self.dialled = dialled  # switches that do not connect by themselves
        # Open vSwitch dials no socket outside its own directory.
        self.listen = f"unix:{lab.directory / 'switches.sock'}"
        self.away: frozenset[str] = frozenset()  # switches that are dialled where nobody answers
        self.numbers: dict[str, dict[str, int]] = {}
        super().__init__(lab, folder, hatchery)

    # What it knows.

    def configure(self, more: str = "", capacity: int | None = None, http: bool = True) -> None:
        lab, topology = self.lab, self.lab.topology
        parts = [CONFIG, self.index]
        for switch in topology.switches:
            if switch not in self.left_out:
                parts.append(f"[switches.{switch}]\ndatapath_id = '{lab.datapath_id(switch):016x}'")
                if switch in self.dialled:
                    there = lab.management(switch) if switch not in self.away else self.folder / "nobody"
                    parts.append(f"address = 'unix:{there}'")
                if self.described and switch in self.numbers:
                    row = ", ".join(f"{near} = {number}" for near, number in self.numbers[switch].items())
                    parts.append(f"ports = {{ {row} }}")
        if self.described:
            parts.append(f"[network]\nlinks = {json.dumps([[link.a, link.b] for link in topology.links])}")
            parts.append("[network.hosts]")
            parts += [f"{host} = {json.dumps(at)}" for host, at in topology.hosts.items()]
        else:
            parts.append("[names]")
            parts += [f"'{lab.addresses(host).mac}' = {json.dumps(host)}" for host in topology.hosts]
        parts.append("[controller]\nstate = 'state'")
        parts.append(f"listen = '{self.listen}'\nvswitchd = 'unix:{lab.control}'\ninterface = 'eth0'")
        addresses = [f"unix:{self.requests}", *([f"tcp:127.0.0.1:{self.port}"] if http else [])]
        parts.append(f"http = {json.dumps(addresses)}")
        self.config.write_text("\n".join([*parts, more, ""]))

    def command(self, *options: str) -> list[str]:
        return ["controller", str(self.config), *options]

    def token(self, host: str) -> str:
        config = read_config(self.config)
        with ThreadPoolExecutor(1) as apart:  # from the loop that this may be called on
            known = apart.submit(asyncio.run, known_topology(config, OwnSite(config))).result()
        return Tokens(kept_secret(self.state / "secret"), known).of(host)

    # What its operator and its hosts do.

    def point(self) -> None:
        """Have every switch connect to where the controller will listen."""
        for switch in self.lab.topology.switches:
            if switch not in self.dialled:
                self._connect(switch, self.listen)

    def strand(self, switch: str) -> None:
        """Leave a switch without management, as if its way to the controller was cut: it goes on forwarding."""
        self._connect(switch, f"unix:{self.lab.directory / 'nobody.sock'}")

    def regain(self, switch: str) -> None:
        """Give a switch its way to the controller back."""
        self._connect(switch, self.listen)

    def _connect(self, switch: str, where: str) -> None:
        """Have a switch connect to a controller; where none answers, it tries again each second."""
        bridge = self.lab.bridge(switch)
        self.vsctl(
            "set-controller", bridge, where, "--", "set", "controller", bridge, f"max_backoff={BACKOFF_MS}"
        )

    async def met(self, switches: Iterable[str]) -> None:
        """Wait until these switches are connected to the controller, which need not be ready."""
        bridges = {self.lab.bridge(switch) for switch in switches}
        async with asyncio.timeout(PATIENCE):
            while not all(self._connected(bridge) for bridge in bridges):
                await asyncio.sleep(0.05)

    def _connected(self, bridge: str) -> bool:
        controller = self.vsctl("get", "bridge", bridge, "controller").strip().strip("[]")
        return self.vsctl("get", "controller", controller, "is_connected").strip() == "true"

    def renumber(self, seed: int) -> None:
        """Give the switches' ports numbers in no order, with gaps."""
        dice = random.Random(seed)
        for switch in self.lab.topology.switches:
            near = self.lab.topology.neighbours(switch)
            numbers = dice.sample(range(20, 500), len(near))
            self.numbers[switch] = dict(zip(near, numbers, strict=True))
            for other, number in self.numbers[switch].items():
                interface = self.lab.interface(switch, other)
                self.vsctl("set", "interface", interface, f"ofport_request={number}")
                told = self.vsctl("get", "interface", interface, "ofport").strip()
                assert told == str(number), f"{interface} is {told}"
        self.configure()

    def vsctl(self, *words: str) -> str:
        line = ["ovs-vsctl", f"--db=unix:{self.lab.database}", "--timeout=20", *words]
        done = subprocess.run(line, capture_output=True, text=True, env=environment(), check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    async def speak(self, *hosts: str) -> None:
        """Have hosts say something to the controller, and wait until it knows them."""
        for host in hosts:
            with self.lab.inside(host), socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as plug:
                where = address_text(6, CONTROL_ADDRESSES[6].first)
                plug.sendto(b"hello", (where, CONTROL_PORT, 0, socket.if_nametoindex("eth0")))
        async with asyncio.timeout(PATIENCE):
            while not set(hosts) <= set((await self.ask("/v1/topology"))["hosts"]):
                await asyncio.sleep(0.02)

    async def hello(self, host: str, token: str, name: str | None = None) -> str:
        """Say hello in band from a host; what the controller calls it."""
        transport = InbandTransport.open("eth0", inside=lambda: self.lab.inside(host))
        connection = ControlConnection(transport, name or host, token)
        try:
            return str((await connection.ask("hello", PATIENCE))["host"])
        finally:
            await connection.close()

    def add_cable(self, a: str, b: str, numbers: tuple[int, int]) -> None:
        """Plug a new cable in between two switches."""
        lab = self.lab
        ends = [f"new{number}" for number in numbers]
        with entered(lab.switch_namespace):
            for words in (
                ["link", "add", ends[0], "type", "veth", "peer", "name", ends[1]],
                ["link", "set", ends[0], "up"],
                ["link", "set", ends[1], "up"],
            ):
                subprocess.run(["ip", *words], check=True, env=environment(), timeout=20)
        for switch, end, number in zip((a, b), ends, numbers, strict=True):
            self.vsctl(
                *("add-port", lab.bridge(switch), end),
                *("--", "set", "interface", end, f"ofport_request={number}"),
            )

    async def linked(self, a: str, b: str) -> None:
        """Wait until the controller has taken in a link."""
        async with asyncio.timeout(PATIENCE):
            while sorted((a, b)) not in map(sorted, (await self.ask("/v1/topology"))["links"]):
                await asyncio.sleep(0.05)

    async def difference(self, kind: str) -> float:
        """How many differences of a kind the metrics tell."""
        transport = httpx.AsyncHTTPTransport(uds=str(self.requests))
        async with httpx.AsyncClient(transport=transport, timeout=PATIENCE) as client:
            text = (await client.get("http://controller/metrics")).text
        (line,) = [
            each for each in text.splitlines() if each.startswith(f'flowsieve_differences{{kind="{kind}"}}')
        ]
        return float(line.rpartition(" ")[2])


@asynccontextmanager
async def foreign(
    network: str | Topology, hatchery: Hatchery, seconds: float = 240.0, **knows: Any
) -> AsyncIterator[Foreign]:
    """A foreign network and a folder for its controller, which is to be started; for not more than so many seconds."""
    topology = generate(network) if isinstance(network, str) else network

    with running(topology) as lab, TemporaryDirectory(prefix="fs-") as folder:
        async with ended(Foreign(lab, Path(folder), hatchery, **knows), seconds) as made:
            yield made
