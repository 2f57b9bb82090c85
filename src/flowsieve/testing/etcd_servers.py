"""Real servers of etcd on loopback, in a folder of their own: killed, stopped and started again as a story wants it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Self

START_SECONDS = 60.0
LOOK_SECONDS = 0.05
HEARTBEAT_MS, ELECTION_MS = 50, 500  # so that a dead leader is replaced within a second


def etcd_installed() -> bool:
    """Whether there is an etcd to run."""
    return shutil.which("etcd") is not None


class EtcdServers:
    """So many servers that know each other, for the time of a `with` block."""

    def __init__(self, folder: Path, count: int = 1) -> None:
        self._folder = folder
        ports = _free_ports(2 * count)
        self._ports = [ports[2 * n : 2 * n + 2] for n in range(count)]  # for clients, for each other
        self._running: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def addresses(self) -> list[str]:
        """Where clients reach them."""
        return [f"127.0.0.1:{client}" for client, _ in self._ports]

    def start(self, n: int) -> None:
        """Start a server, with what it had before if it ran already."""
        client, peer = (f"http://127.0.0.1:{port}" for port in self._ports[n])
        everybody = ",".join(f"n{k}=http://127.0.0.1:{port}" for k, (_, port) in enumerate(self._ports))
        data = self._folder / f"etcd-{n}"
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        told = {
            "name": f"n{n}",
            "data-dir": data / "data",
            "listen-client-urls": client,
            "advertise-client-urls": client,
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "initial-cluster": everybody,
            "initial-cluster-state": "new",
            "heartbeat-interval": HEARTBEAT_MS,
            "election-timeout": ELECTION_MS,
            "auto-compaction-mode": "revision",
            "auto-compaction-retention": 1000,
        }
        with (data / "log").open("ab") as log:
            self._running[n] = subprocess.Popen(
                ["etcd", *(f"--{name}={value}" for name, value in told.items())],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "ETCD_UNSUPPORTED_ARCH": "arm64"},
            )

    def signal(self, n: int, number: int) -> None:
        """Send a server a signal; one that is killed is waited for."""
        self._running[n].send_signal(number)
        if number == signal.SIGKILL:
            self._running.pop(n).wait()

    @property
    def leader(self) -> int:
        """The server that leads the others; any of them if that is not known."""
        leading = (
            n for n in self._running if b"etcd_server_is_leader 1" in _told(self.addresses[n], "metrics")
        )
        return next(leading, next(iter(self._running)))

    def wait(self) -> None:
        """Until all that run take part."""
        end = time.monotonic() + START_SECONDS
        for n in tuple(self._running):
            while b"true" not in _told(self.addresses[n], "health"):
                if time.monotonic() > end or self._running[n].poll() is not None:
                    raise TimeoutError(f"server {n} of etcd did not come up: {self._folder}")
                time.sleep(LOOK_SECONDS)

    def __enter__(self) -> Self:
        for n in range(len(self._ports)):
            self.start(n)
        try:
            self.wait()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for n in tuple(self._running):
            self.signal(n, signal.SIGKILL)


def _told(address: str, what: str) -> bytes:
    try:
        with urllib.request.urlopen(f"http://{address}/{what}", timeout=1.0) as answer:
            return bytes(answer.read())
    except OSError:
        return b""


def _free_ports(count: int) -> list[int]:
    """Ports that nobody listens at, all different."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        return [int(each.getsockname()[1]) for each in held]
    finally:
        for each in held:
            each.close()
