"""Two controllers of one lab that share an etcd of three servers, each a process that is killed, stopped, continued."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
from daemonic import Daemonic, ended, free_port
from hatchery import Hatchery
from proxy import TcpProxy
from traffic import PATIENCE

from flowsieve.lab.lab import Lab, running
from flowsieve.network.generators import generate
from flowsieve.testing.etcd_servers import EtcdServers

NAMES = ("a", "b")
SHARED = """
[control]
etcd = {etcd}
name = "lab"
node = "{node}"
{more}
"""
CONFIGURATORS = "partitions = 8\nconfigurators = 2"  # of each node


class Node(Daemonic):
    """One of them."""

    def __init__(
        self, lab: Lab, folder: Path, hatchery: Hatchery, name: str, wires: Sequence[TcpProxy], more: str
    ) -> None:
        folder.mkdir()
        super().__init__(lab, folder, hatchery)
        self.name = name
        self._wires = wires
        self.port = free_port()
        self.requests = lab.requests.with_name(f"{name}-{lab.requests.name}")
        self.control = ",".join(
            f"unix:{lab.requests.with_name(f'{each}-{lab.requests.name}')}" for each in NAMES
        )
        etcd = json.dumps([each.address for each in wires])
        self.configure(SHARED.format(etcd=etcd, node=name, more=more))

    def share(self, other: Node) -> None:
        """Have the same applications, and what they logged."""
        self.sent, self.wanted, self.outages, self.apps = other.sent, other.wanted, other.outages, other.apps

    def isolate(self, cut: bool) -> None:
        """Let nothing through between it and etcd, or everything again."""
        for wire in self._wires:
            wire.block(cut)

    async def sharing(self) -> Mapping[str, Any]:
        """Who owns which partition, and what waits for whom."""
        found: Mapping[str, Any] = (await self.ask("/v1/status"))["control"]["sharing"]
        return found

    async def configurators(self) -> dict[str, int]:
        """The processes of the configurators that decide for it, by what it calls them."""
        names = (await self.sharing())["configurators"]
        return {name: pid for name in names for pid in processes_named(name.partition("#")[0], self.folder)}

    async def leads(self) -> bool:
        """Whether it takes calls and is sure that it leads."""
        try:
            async with asyncio.timeout(1.0):
                return bool((await self.ask("/v1/status")).get("control", {}).get("leads"))
        except (TimeoutError, httpx.HTTPError, ValueError):
            return False


class Nodes:
    """Both, and the servers of etcd."""

    def __init__(self, nodes: Sequence[Node], etcd: EtcdServers) -> None:
        self.nodes, self.etcd = nodes, etcd

    async def leader(self) -> Node:
        """The one that leads, once one does."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            for node in self.nodes:
                if await node.leads():
                    return node
            await asyncio.sleep(0.02)
        raise AssertionError(
            "nobody leads", {node.name: node.errors.read_text()[-2000:] for node in self.nodes}
        )

    async def taken_over(self, before: Node) -> tuple[Node, float]:
        """The one that leads after another, and how many seconds from now it took until it did."""
        start = time.monotonic()
        while (now := await self.leader()) is before:
            await asyncio.sleep(0.02)
            assert time.monotonic() < start + PATIENCE, "nobody took over"
        return now, time.monotonic() - start

    def other(self, node: Node) -> Node:
        return next(each for each in self.nodes if each is not node)


@asynccontextmanager
async def shared(
    topology: str, hatchery: Hatchery, seconds: float = 240.0, more: str = "", count: int = len(NAMES)
) -> AsyncIterator[Nodes]:
    """A lab, an etcd, and two controllers that were begun, or only one; one of them leads."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="fs-")))
        etcd = await asyncio.to_thread(stack.enter_context, EtcdServers(folder, 3))
        lab = stack.enter_context(running(generate(topology)))
        nodes = []
        for name in NAMES[:count]:
            wires = [TcpProxy(each) for each in etcd.addresses]
            for wire in wires:
                await wire.start()
                stack.push_async_callback(wire.stop)
            nodes.append(Node(lab, folder / name, hatchery, name, wires, more))
            node = nodes[-1]
            node.share(nodes[0])
            await stack.enter_async_context(ended(node, seconds))
            node.begin()
        yield Nodes(nodes, etcd)


async def frozen(node: Node, seconds: float) -> None:
    """Stop a node, and have it go on after a while."""
    node.signal(signal.SIGSTOP)
    await asyncio.sleep(seconds)
    node.signal(signal.SIGCONT)


def processes_named(name: str, folder: Path) -> list[int]:
    """The configurators of a name that serve the nodes with configurations beside a folder."""
    found = []
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            with suppress(OSError):
                words = (each / "cmdline").read_bytes().split(b"\0")
                ours = any(word.startswith(str(folder.parent).encode()) for word in words)
                if ours and b"configurator" in words and name.encode() in words:
                    found.append(int(each.name))
    return found
