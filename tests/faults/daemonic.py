"""A lab under `flowsieve controller`, a process of its own that is killed, stopped and started while events flow."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import httpx
from hatchery import Hatched, Hatchery
from traffic import PATIENCE, Traffic

from flowsieve.client.matcher_socket import found, process_of
from flowsieve.lab.lab import Lab, running
from flowsieve.lab.machine import environment
from flowsieve.network.generators import generate
from flowsieve.serving.calls.tokens import Tokens

MARGIN = 0.3  # seconds around a fault in which a packet may be under way
START_SECONDS = 60.0  # on a machine that has more to do
CONFIG = """\
[schema]
a = {{ type = "int", min = 0, max = 255 }}
b = {{ type = "int", min = 0, max = 255 }}
[index]
{index}
{network}
[controller]
state = "state"
http = ["tcp:127.0.0.1:{port}"]
{more}
"""
# What packets say.
DZ, RECEIVERS, BLOOM = "max_dz_per_filter = 8", 'header = "receivers"', 'header = "bloom"'
CHANGE = re.compile(r"event=(ADDED|DELETED|MODIFIED)")


class Daemonic(Traffic):
    """A controller's process over a lab, and the applications that it serves."""

    def __init__(self, lab: Lab, folder: Path, hatchery: Hatchery) -> None:
        super().__init__(lab)
        self.folder = folder
        self.config = folder / "config.toml"
        self.state = folder / "state"
        self.port = free_port()
        self.requests = lab.requests
        self.starts = 0
        self.index = DZ
        self._hatchery = hatchery
        self._running: Hatched | None = None
        self.configure()

    # The process.

    def configure(self, more: str = "", capacity: int | None = None) -> None:
        """Write its configuration."""
        network = ""
        if capacity is not None:
            links = json.dumps([[link.a, link.b] for link in self.lab.topology.links])
            hosts = "".join(f"{host} = {json.dumps(at)}\n" for host, at in self.lab.topology.hosts.items())
            network = f"[network]\nlinks = {links}\ntable_capacity = {capacity}\n[network.hosts]\n{hosts}"
        self.config.write_text(CONFIG.format(index=self.index, network=network, port=self.port, more=more))

    def command(self, *options: str) -> list[str]:
        return ["controller", str(self.config), "--lab", self.lab.name, *options]

    async def start(self, *options: str) -> Mapping[str, Any]:
        """Start it; what it tells when it is ready."""
        self.begin(*options)
        return await self.started()

    async def started(self) -> Mapping[str, Any]:
        """Wait until one that was begun is ready; what it tells then."""
        assert self._running is not None
        out, end = self.folder / f"out-{self.starts}", time.monotonic() + START_SECONDS
        while not (out.exists() and out.read_text().endswith("}\n")):
            assert not self._running.ended(0), f"it did not start: {self.errors.read_text()[-2000:]}"
            assert time.monotonic() < end, f"it is not ready: {self.errors.read_text()[-2000:]}"
            await asyncio.sleep(0.01)
        told: Mapping[str, Any] = json.loads(out.read_text())
        return told

    def begin(self, *options: str) -> None:
        """Start it, and do not wait until it is ready."""
        assert self._running is None
        self.starts += 1
        words = self.command("--json", "--log-format", "json", *options)
        self._running = self._hatchery.start(words, self.folder / f"out-{self.starts}", self.errors)

    @property
    def errors(self) -> Path:
        """Where its log is."""
        return self.folder / f"err-{self.starts}"

    def log(self) -> list[Mapping[str, Any]]:
        """What it has logged since it was started."""
        return [json.loads(line) for line in self.errors.read_text().splitlines() if line.endswith("}")]

    async def logged(self, text: str, times: int = 1) -> None:
        """Wait until it has said something so often."""
        async with asyncio.timeout(PATIENCE):
            while sum(text in each["text"] for each in self.log()) < times:
                await asyncio.sleep(0.01)

    async def stop_it(self, how: signal.Signals) -> None:
        """Kill it, or ask it to end; returns when it is gone."""
        assert self._running is not None
        self._running.signal(how)
        assert await asyncio.to_thread(self._running.ended, PATIENCE), f"it does not end on {how.name}"
        self._running.close()
        self._running = None

    async def failed_to_start(self) -> str:
        """Start it and wait until it has given up; what it said last."""
        self.begin()
        assert self._running is not None
        assert await asyncio.to_thread(self._running.ended, START_SECONDS), "it started"
        self._running.close()
        self._running = None
        return self.errors.read_text().splitlines()[-1]

    def signal(self, what: signal.Signals) -> None:
        assert self._running is not None
        self._running.signal(what)

    # What it tells.

    async def ask(self, path: str) -> Any:
        """What it says at an address, a JSON value."""
        transport = httpx.AsyncHTTPTransport(uds=str(self.requests))
        async with httpx.AsyncClient(transport=transport, timeout=PATIENCE) as client:
            return (await client.get(f"http://controller{path}")).json()

    async def operate(self, path: str, asked: Mapping[str, Any]) -> Any:
        """What it answers an operator who asks for something at an address."""
        transport = httpx.AsyncHTTPTransport(uds=str(self.requests))
        shown = {"Authorization": f"Bearer {self.lab.operator_token}"}
        async with httpx.AsyncClient(transport=transport, timeout=PATIENCE) as client:
            return (await client.post(f"http://controller{path}", json=dict(asked), headers=shown)).json()

    async def index_came(self, version: int, phase: str | None = None) -> Mapping[str, Any]:
        """Wait until an index is in force, or the network is in some phase of its way there; what it tells of it."""
        async with asyncio.timeout(PATIENCE):
            while True:
                told: Mapping[str, Any] = await self.ask("/v1/index")
                crossing = told["crossing"]
                if phase is None and crossing is None and told["version"] == version:
                    return told
                if phase is not None and crossing is not None and crossing["phase"] == phase:
                    return told
                await asyncio.sleep(0.005)

    async def became_ready(self, ready: bool = True) -> Mapping[str, Any]:
        """Wait until it says that it is ready, or that it is not."""
        async with asyncio.timeout(PATIENCE):
            while (told := await self.ask("/v1/ready"))["ready"] is not ready:
                await asyncio.sleep(0.02)
        found: Mapping[str, Any] = told
        return found

    async def came_to_rest(self) -> None:
        """Wait until publishers and tables have followed all that is wanted."""
        async with asyncio.timeout(PATIENCE):
            while True:
                publishers = (await self.ask("/v1/status"))["publishers"]
                if not publishers["behind"] and not publishers.get("under_way"):
                    return
                await asyncio.sleep(0.05)

    async def down(self, edge: Sequence[str]) -> None:
        """Wait until it does without a link."""
        async with asyncio.timeout(PATIENCE):
            while sorted(edge) not in (await self.ask("/v1/topology"))["down"]:
                await asyncio.sleep(0.02)

    @asynccontextmanager
    async def outage(self) -> AsyncIterator[None]:
        """Packets may be lost in here."""
        start = time.monotonic()
        await self._count_dropped()
        yield
        self.outages.append((start - MARGIN, time.monotonic() + MARGIN))
        await self._count_anew()

    async def judge(self) -> int:
        """What is installed does what is asked for, and the logs agree; how many events were lost."""
        await self.became_ready()
        verdict = await self.ask("/v1/verify")
        assert verdict["holds"], verdict
        return await self.compare()

    def token(self, host: str) -> str:
        return (self.lab.directory / "tokens" / host).read_text()

    # The matchers of hosts, where packets name their receivers.

    def matcher_of(self, host: str) -> int | None:
        """The process that matches for a host, if there is one."""
        if not (self.state / "secret").exists():
            return None
        network = Tokens((self.state / "secret").read_bytes(), self.lab.topology).network
        with self.lab.inside(host):
            peer = found(network, host)
        if peer is None:
            return None
        with peer:
            return process_of(peer)[0]

    def kill_matchers(self) -> None:
        """End all of them."""
        for host in self.lab.topology.hosts:
            if pid := self.matcher_of(host):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    # The switches.

    @contextmanager
    def watched(self) -> Iterator[Watch]:
        """Every change of every table from here on, whoever makes it."""
        watch = Watch(self.lab, self.folder / f"watch-{time.monotonic_ns()}")
        try:
            yield watch
        finally:
            watch.close()

    def tables(self) -> dict[str, list[str]]:
        """All entries of all switches, without what changes by itself."""
        return {
            switch: sorted(ofctl(self.lab, switch, "--no-stats", "dump-flows").splitlines()[1:])
            for switch in self.lab.topology.switches
        }


class Watch:
    """Flow monitors on all switches of a lab."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        folder.mkdir()
        self._files = {switch: folder / str(number) for number, switch in enumerate(lab.topology.switches)}
        self._processes = []
        for switch, path in self._files.items():
            words = [
                "ovs-ofctl",
                "-O",
                "OpenFlow14",
                "monitor",
                f"unix:{lab.management(switch)}",
                "watch:!initial",
            ]
            with path.open("wb") as file:
                own = environment() | {"OVS_RUNDIR": str(folder)}
                self._processes.append(
                    subprocess.Popen(words, stdout=file, stderr=subprocess.STDOUT, env=own)
                )
        end = time.monotonic() + PATIENCE
        while not all("FLOW_MONITOR reply" in self._read(each) for each in self._files):
            assert time.monotonic() < end, {each: self._read(each) for each in self._files}
            time.sleep(0.01)

    @property
    def changes(self) -> dict[str, list[str]]:
        """What was changed since the watch began."""
        found = {
            switch: [line.strip() for line in self._read(switch).splitlines() if CHANGE.search(line)]
            for switch in self._files
        }
        return {switch: some for switch, some in found.items() if some}

    def _read(self, switch: str) -> str:
        return self._files[switch].read_text()

    def close(self) -> None:
        for process in self._processes:
            with process:
                process.kill()


def ofctl(lab: Lab, switch: str, *words: str, flow: str | None = None) -> str:
    """What ovs-ofctl says; the command stands last."""
    *options, command = words
    line = ["ovs-ofctl", "-O", "OpenFlow14", *options, command, f"unix:{lab.management(switch)}"]
    done = subprocess.run(
        [*line, flow] if flow is not None else line, capture_output=True, text=True, env=environment()
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


D = TypeVar("D", bound=Daemonic)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


@asynccontextmanager
async def daemonic(topology: str, hatchery: Hatchery, seconds: float = 240.0) -> AsyncIterator[Daemonic]:
    """A lab and a folder for its controller, which is to be started; for not more than so many seconds."""
    with running(generate(topology)) as lab, TemporaryDirectory(prefix="fs-") as folder:
        async with ended(Daemonic(lab, Path(folder), hatchery), seconds) as made:
            yield made


@asynccontextmanager
async def ended(made: D, seconds: float) -> AsyncIterator[D]:
    """What is ended with the block, whatever happens in it, and after so many seconds."""
    try:
        async with asyncio.timeout(seconds):
            yield made
    finally:
        await asyncio.to_thread(made.stop)
        await asyncio.to_thread(made.kill_matchers)
        if made._running is not None:
            made._running.close()
