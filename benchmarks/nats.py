"""A NATS broker and its clients on hosts of one switch: what brokers carry, as bytes into the subscribers' hosts.

The switch forwards as any Ethernet switch does. The broker, the publisher and each subscriber have a host of their
own. The clients speak the plain text protocol; subscribers read and count all that they are sent.
"""

from __future__ import annotations

import re
import selectors
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from benchmarks.wire import received
from flowsieve.lab.blueprint import HOST_INTERFACE
from flowsieve.lab.lab import Lab, running
from flowsieve.lab.machine import environment
from flowsieve.network.topology import Topology

PORT = 4222
BROKER, PUBLISHER = "broker", "publisher"
PATIENCE_SECONDS = 10.0
NAP_SECONDS = 50e-6
_MESSAGE = re.compile(rb"MSG \S+ \d+ (\d+)\r\n")


def is_installed() -> bool:
    return shutil.which("nats-server", path=environment()["PATH"]) is not None


class Client:
    """A connection to the broker from a host; it answers the broker's signs of life."""

    def __init__(self, lab: Lab, host: str) -> None:
        self.messages = 0
        self._unread = b""
        with lab.inside(host):
            self.socket = socket.create_connection((lab.addresses(BROKER).ipv4, PORT), PATIENCE_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.sendall(b'CONNECT {"verbose":false}\r\nPING\r\n')
        while b"PONG\r\n" not in self._unread:
            self._unread += self.socket.recv(1 << 16)
        self._unread = b""

    def subscribe(self, subjects: Sequence[str]) -> None:
        """Returns when the broker knows all subjects."""
        self.socket.sendall(b"".join(f"SUB {each} {i}\r\n".encode() for i, each in enumerate(subjects, 1)))
        self.socket.sendall(b"PING\r\n")
        while b"PONG\r\n" not in self._unread:
            self._unread += self.socket.recv(1 << 16)
        self._unread = b""

    def take(self) -> None:
        """Read what has come, and count the messages in it."""
        self._unread += self.socket.recv(1 << 16)
        at = 0
        while (line := self._unread.find(b"\r\n", at)) >= 0:
            head = _MESSAGE.match(self._unread, at)
            end = line + 2 + (int(head[1]) + 2 if head else 0)
            if end > len(self._unread):
                break
            if head:
                self.messages += 1
            elif self._unread.startswith(b"PING", at):
                self.socket.sendall(b"PONG\r\n")
            at = end
        self._unread = self._unread[at:]


class Broker:
    """A broker that is up, with a publisher and subscribers; each has its subjects."""

    def __init__(self, lab: Lab, subjects: Sequence[Sequence[str]], stack: ExitStack) -> None:
        self._lab = lab
        self._hosts = _hosts(len(subjects))
        self._publisher = Client(lab, PUBLISHER)
        stack.callback(self._publisher.socket.close)
        self._clients = []
        for host, wanted in zip(self._hosts, subjects, strict=True):
            client = Client(lab, host)
            stack.callback(client.socket.close)
            client.subscribe(wanted)
            self._clients.append(client)

    def bytes_of(self, subjects: Sequence[str], payload: bytes, per_second: float, copies: int) -> int:
        """Publish an event on each subject at a rate; bytes into the subscribers' hosts until all copies came."""
        before = self._received()
        ended = threading.Event()
        reader = threading.Thread(target=self._read, args=(ended,), daemon=True)
        reader.start()
        try:
            self._publish(subjects, payload, per_second)
            deadline = time.monotonic() + PATIENCE_SECONDS
            while self._messages() < copies and time.monotonic() < deadline:
                time.sleep(0.01)
        finally:
            ended.set()
            reader.join()
        if self._messages() != copies:
            raise RuntimeError(f"subscribers of the broker got {self._messages()} messages, not {copies}")
        return self._received() - before

    def _publish(self, subjects: Sequence[str], payload: bytes, per_second: float) -> None:
        begin, sent = time.perf_counter(), 0
        while sent < len(subjects):
            due = min(int((time.perf_counter() - begin) * per_second) + 1, len(subjects))
            for subject in subjects[sent:due]:
                self._publisher.socket.sendall(
                    f"PUB {subject} {len(payload)}\r\n".encode() + payload + b"\r\n"
                )
            sent = due
            time.sleep(NAP_SECONDS)

    def _read(self, ended: threading.Event) -> None:
        with selectors.DefaultSelector() as selector:
            for client in self._clients:
                selector.register(client.socket, selectors.EVENT_READ, client)
            while not ended.is_set():
                for key, _ in selector.select(0.05):
                    key.data.take()

    def _messages(self) -> int:
        return sum(client.messages for client in self._clients)

    def _received(self) -> int:
        return sum(received(self._lab.namespace(host), HOST_INTERFACE)[0] for host in self._hosts)


@contextmanager
def broker(subjects: Sequence[Sequence[str]]) -> Iterator[Broker]:
    """A broker and a subscriber per list of subjects, on a lab of their own, for the time of a `with` block."""
    hosts = [BROKER, PUBLISHER, *_hosts(len(subjects))]
    topology = Topology.make([], dict.fromkeys(hosts, "s1"), switches=["s1"])
    with ExitStack() as stack:
        lab = stack.enter_context(running(topology))
        _forward_normally(lab)
        server = lab.exec(
            BROKER,
            ["nats-server", "--addr", lab.addresses(BROKER).ipv4, "--port", str(PORT)],
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        stack.callback(server.wait)
        stack.callback(server.terminate)
        _await(lab)
        yield Broker(lab, subjects, stack)


def _hosts(count: int) -> list[str]:
    return [f"subscriber{number}" for number in range(count)]


def _forward_normally(lab: Lab) -> None:
    words = ["ovs-ofctl", "-O", "OpenFlow14", "add-flow", f"unix:{lab.management('s1')}", "actions=normal"]
    subprocess.run(words, check=True, capture_output=True, env=environment())


def _await(lab: Lab) -> None:
    """Until the broker takes connections."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            Client(lab, PUBLISHER).socket.close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
