"""`flowsieve controller` as a process of its own over a lab, to be asked, killed and started."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx

from benchmarks.loads import TOP
from flowsieve.content.schema import Schema
from flowsieve.control.memory.journal import Asked
from flowsieve.control.memory.sqlite_journal import SqliteJournal
from flowsieve.control.request import Request
from flowsieve.lab.lab import Lab
from flowsieve.lab.machine import environment
from flowsieve.serving.config import read_config

START_SECONDS = 120.0
COMMAND = Path(sys.executable).with_name("flowsieve")


@dataclass
class ControllerProcess:
    """A controller's configuration in a folder, and its process while it runs."""

    lab: Lab
    folder: Path
    _process: subprocess.Popen[str] | None = field(default=None, repr=False)

    @property
    def config(self) -> Path:
        return self.folder / "config.toml"

    def configure(self, schema: Schema, index: str, more: str = "") -> None:
        lines = [
            "[schema]",
            *(f'{each.name} = {{ type = "int", min = 0, max = {TOP} }}' for each in schema),
            f"[index]\n{index}",
            '[controller]\nstate = "state"\ninband_rate = 20000\nlease = 600',
            more,
        ]
        self.config.write_text("\n".join(lines) + "\n")

    async def remember(self, requests: Sequence[Request]) -> None:
        """Have it know of requests that it never got, as if it had."""
        base = read_config(self.config).base(self.lab.topology)
        journal = SqliteJournal(self.folder / "state" / "journal.db", base)
        try:
            await journal.append([Asked(request) for request in requests])
        finally:
            await journal.close()

    async def start(self) -> tuple[float, Mapping[str, Any]]:
        """Start it; seconds from the command until it serves, and what it tells then."""
        begin = time.perf_counter()
        self.begin()
        told = await self.started()
        return time.perf_counter() - begin, told

    def begin(self) -> None:
        """Start it, and do not wait."""
        words = [str(COMMAND), "controller", str(self.config), "--lab", self.lab.name, "--json"]
        with (self.folder / "err").open("a") as errors:
            self._process = subprocess.Popen(
                words, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment()
            )

    async def started(self) -> Mapping[str, Any]:
        """What it tells when it serves."""
        assert self._process is not None and self._process.stdout is not None
        async with asyncio.timeout(START_SECONDS):
            line = await asyncio.to_thread(self._process.stdout.readline)
        if not line:
            raise RuntimeError(f"the controller did not start: {(self.folder / 'err').read_text()[-500:]}")
        told: Mapping[str, Any] = json.loads(line)
        return told

    def signal(self, what: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(what)

    async def end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(how)
            await asyncio.to_thread(process.wait)
            assert process.stdout is not None
            process.stdout.close()

    async def ask(self, path: str) -> Any:
        """What it says at an address."""
        transport = httpx.AsyncHTTPTransport(uds=str(self.lab.requests))
        async with httpx.AsyncClient(transport=transport, timeout=START_SECONDS) as client:
            return (await client.get(f"http://controller{path}")).json()

    def processor_seconds(self) -> float:
        """What it has taken of a core since it was started."""
        assert self._process is not None
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def token(self, host: str) -> str:
        return (self.lab.directory / "tokens" / host).read_text()


@asynccontextmanager
async def controller_of(lab: Lab, schema: Schema, index: str) -> AsyncIterator[ControllerProcess]:
    """A controller that is to be started, for the time of an `async with` block."""
    with TemporaryDirectory(prefix="fs-") as folder:
        made = ControllerProcess(lab, Path(folder))
        made.configure(schema, index)
        try:
            yield made
        finally:
            await made.end(signal.SIGKILL)
