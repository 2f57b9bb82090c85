"""Configurators end to end: requests over HTTP to a controller over a fat-tree of 20 real switches.

What is asked is decided by the controller itself, or by two configurators beside it; all of them share this machine's
cores with the switches and the clients. The leader's processor time is what is left for it to do: taking
calls, writing the journal (in etcd, for all of them), cutting requests, and bringing what was decided to switches.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.bench import Result, rounded
from benchmarks.campus import BUDGET, CLIENTS, SCHEMA, advertisements, topology
from benchmarks.churning import Churner, LeanHttp, Tally, as_fast
from benchmarks.configurators import processor_seconds
from benchmarks.control_plane import squares
from benchmarks.takeover import SHARED, SharedProcess, decides, remember
from flowsieve.lab.lab import running
from flowsieve.testing.etcd_servers import EtcdServers

SECONDS, WARM_SECONDS, ROUNDS = 4.0, 2.0, 2
PARTITIONS = 16
ARMS = {
    "the controller decides": "",
    f"the controller decides, {PARTITIONS} partitions": f"partitions = {PARTITIONS}\n",
    "2 configurators": f"partitions = {PARTITIONS}\nconfigurators = 2\n",
}


@dataclass(frozen=True)
class Kind:
    """What is asked for: filters, and how many dz each may have."""

    filters: Callable[[], list[str]]
    budget: int


def broad() -> list[str]:
    """Boxes that touch many cells: a request changes several times as many entries."""
    return [
        f"{a} <= a0 <= {a + 150} and {b} <= a1 <= {b + 150}"
        for a, b in ((37 * i % 870, 61 * i % 870) for i in range(2_000))
    ]


KINDS = {
    "small": Kind(lambda: squares(2_000).texts(), BUDGET),
    "broad": Kind(broad, 32),
}


async def served(kind: Kind, sharing: str) -> dict[str, float]:
    """As many requests as can be had; what each takes of the leader and of its configurators."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="fs-")))
        etcd = stack.enter_context(EtcdServers(folder, 1))
        lab = stack.enter_context(running(topology()))
        (folder / "a").mkdir()
        node = SharedProcess(lab, folder / "a")
        shared = SHARED.format(etcd=str(etcd.addresses).replace("'", '"'), node="a")
        node.configure(SCHEMA, f"max_dz_per_filter = {kind.budget}", shared + sharing)
        stack.push_async_callback(node.end, signal.SIGTERM)
        hosts = list(lab.topology.hosts)
        await remember(node, advertisements(hosts))
        node.begin()
        await node.started()
        if "configurators" in sharing:
            await decides(node)
        filters, tally, churners = kind.filters(), Tally(), list[Churner]()
        for number in range(CLIENTS):
            way, host = LeanHttp(str(node.socket)), hosts[number % len(hosts)]
            stack.push_async_callback(way.close)
            churners.append(Churner(way, host, node.token(host), filters, tally, number))
        await as_fast(churners, tally, WARM_SECONDS)
        tally.seconds.clear()
        leader, others = node.processor_seconds(), sum(map(processor_seconds, node.children()))
        await as_fast(churners, tally, SECONDS)
        leader = node.processor_seconds() - leader
        others = sum(map(processor_seconds, node.children())) - others
        operations = int((await node.status())["operations"])
        await asyncio.gather(*(churner.leave() for churner in churners))
    n = max(1, len(tally.seconds))
    return tally.figures() | {
        "leader's processor ms each": rounded(1e3 * leader / n),
        "configurators' processor ms each": rounded(1e3 * others / n),
        "flow operations in all": operations,
    }


def run() -> Result:
    figures: dict[str, Any] = {"cores": os.cpu_count()}
    for name, kind in KINDS.items():
        rounds = [{arm: asyncio.run(served(kind, told)) for arm, told in ARMS.items()} for _ in range(ROUNDS)]
        figures[name] = {arm: [each[arm] for each in rounds] for arm in ARMS}
    return Result("configured_service", figures)
