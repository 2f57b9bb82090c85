"""Two controllers that share an etcd of three servers, over a fat-tree of 20 real switches: how long until one goes on.

With 10,000 subscriptions in force, the one that leads is killed, killed together with the leader of etcd, and stopped,
while two applications talk. At that moment somebody subscribes: that is what clients notice. Once they decide on tables
themselves, and once configurators do, two beside each of them; then one of these is killed as well.
"""

from __future__ import annotations

import asyncio
import os
import signal
import statistics
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx

from benchmarks.bench import Goal, Result, at_most, rounded
from benchmarks.campus import BUDGET, SCHEMA, advertisements, began, talking, topology
from benchmarks.daemon import ControllerProcess
from benchmarks.loads import narrow
from benchmarks.network import subscriptions
from benchmarks.restart import changed, installed
from flowsieve.client.control_session import Transport, transport_to
from flowsieve.control.memory.journal import Asked
from flowsieve.control.request import Request
from flowsieve.errors import ControlLost
from flowsieve.lab.lab import Lab, running
from flowsieve.lab.lab_site import LabSite
from flowsieve.protocol.version import VERSION
from flowsieve.serving.config import read_config
from flowsieve.serving.memory import memory_of
from flowsieve.testing.dropped import dropped
from flowsieve.testing.etcd_servers import EtcdServers

SUBSCRIPTIONS, ROUNDS = 10_000, 3
NAMES = ("a", "b")
SLICE = 1_000
PATIENCE_SECONDS = 60.0
WAYS = ("killed", "killed with the leader of etcd", "stopped")
SHARED = """[control]
etcd = {etcd}
name = "campus"
node = "{node}"
"""
SHARING = "partitions = 16\nconfigurators = 2\n"


class SharedProcess(ControllerProcess):
    """One of the controllers."""

    @property
    def socket(self) -> Path:
        return self.lab.requests.with_name(f"{self.folder.name}-{self.lab.requests.name}")

    async def status(self) -> dict[str, Any]:
        """How it stands; nothing if it does not say."""
        transport = httpx.AsyncHTTPTransport(uds=str(self.socket))
        try:
            async with httpx.AsyncClient(transport=transport, timeout=1.0) as client:
                return dict((await client.get("http://controller/v1/status")).json())
        except (httpx.HTTPError, ValueError):
            return {}

    def children(self) -> list[int]:
        """The processes that it started: its configurators."""
        assert self._process is not None
        pid = self._process.pid
        return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))

    async def leads(self) -> bool:
        return bool((await self.status()).get("control", {}).get("leads"))


async def began_to_lead(node: SharedProcess) -> float:
    """When a node leads, by this machine's clock."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not await node.leads():
            await asyncio.sleep(0.02)
    return time.monotonic()


def asked_for(lab: Lab) -> list[Request]:
    """What hosts have asked for when it begins."""
    hosts = list(lab.topology.hosts)
    return advertisements(hosts) + subscriptions(narrow(SUBSCRIPTIONS, 0).filters(), hosts)


async def remember(node: SharedProcess, there: Sequence[Request]) -> None:
    """Have etcd hold requests as if they had been made."""
    config = read_config(node.config)
    site = LabSite(config, node.lab)
    memory = memory_of(config, site)
    await memory.win()
    opened = await memory.open(config.base(site.topology), lambda entries, seconds: None, False)
    for at in range(0, len(there), SLICE):
        await opened.journal.append([Asked(request) for request in there[at : at + SLICE]])
    await opened.journal.close()
    await memory.leave()


async def subscribed(way: Transport, lab: Lab, known: Request) -> float:
    """Subscribe to what a host has subscribed to already, by a client that knows both controllers; how long it took."""
    host = known.endpoint
    token = (lab.directory / "tokens" / host).read_text()
    who = {"session": os.urandom(16).hex(), "host": host, "token": token, "version": VERSION}
    begin = time.monotonic()
    for number, more in enumerate(({"op": "sub", "filter": known.told}, {"op": "bye"}), 1):
        if number == 2:
            took = time.monotonic() - begin
        while True:
            try:
                answer = await way.call({**who, "n": number, "deadline": 30.0, **more})
                if "ok" in answer:
                    break
                if answer["error"]["kind"] != "busy":
                    raise RuntimeError(str(answer))
            except ControlLost:
                pass
            await asyncio.sleep(0.02)
    return took


async def decides(node: SharedProcess, after: int = -1) -> float:
    """When a node's configurators own all partitions, after more than so many of them were lost."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            sharing = (await node.status()).get("control", {}).get("sharing")
            if sharing and sharing["trouble"] is None and sharing["takeovers"] > after:
                return time.monotonic()
            await asyncio.sleep(0.02)


async def lost_one(node: SharedProcess) -> float:
    """Kill one of a node's configurators; seconds until others own what it owned."""
    before = (await node.status())["control"]["sharing"]["takeovers"]
    at = time.monotonic()
    os.kill(node.children()[0], signal.SIGKILL)
    return await decides(node, before) - at


async def taken_over(sharing: str = "") -> dict[str, Any]:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="fs-")))
        etcd = stack.enter_context(EtcdServers(folder, 3))
        lab = stack.enter_context(running(topology()))
        nodes = []
        for name in NAMES:
            (folder / name).mkdir()
            node = SharedProcess(lab, folder / name)
            shared = SHARED.format(etcd=str(etcd.addresses).replace("'", '"'), node=name)
            node.configure(SCHEMA, f"max_dz_per_filter = {BUDGET}", shared + sharing)
            stack.push_async_callback(node.end, signal.SIGKILL)
            nodes.append(node)
        leader, other = nodes
        await remember(leader, asked_for(lab))
        leader.begin()
        await leader.started()
        other.begin()
        way = transport_to(",".join(f"unix:{node.socket}" for node in nodes))
        stack.push_async_callback(way.close)
        known = asked_for(lab)[-1]
        took: dict[str, list[dict[str, float]]] = {name: [] for name in WAYS}
        lost: list[float] = []
        other_flows, dropped_before = 0, dropped(lab)
        with talking(lab) as pair:
            start = await began(pair)
            await asyncio.sleep(10)  # until the other one stands by
            for _ in range(ROUNDS):
                for name in WAYS:
                    before = await asyncio.to_thread(installed, lab)
                    hit = etcd.leader if "etcd" in name else None
                    at = time.monotonic()
                    if hit is not None:
                        etcd.signal(hit, signal.SIGKILL)
                    if name == "stopped":
                        leader.signal(signal.SIGSTOP)
                    else:
                        await leader.end(signal.SIGKILL)
                    asking = asyncio.create_task(subscribed(way, lab, known))
                    leads = await began_to_lead(other) - at
                    if sharing:
                        leads = await decides(other) - at
                    pause = await asking
                    took[name].append({"leads": leads, "subscription": pause})
                    if hit is not None:
                        etcd.start(hit)
                        await asyncio.to_thread(etcd.wait)
                    if name == "stopped":
                        leader.signal(signal.SIGCONT)
                    else:
                        leader.begin()
                    leader, other = other, leader
                    await asyncio.sleep(10)
                    if sharing:
                        lost.append(await lost_one(leader))
                        await asyncio.sleep(5)
                    other_flows += changed(before, await asyncio.to_thread(installed, lab))
            over = time.monotonic()
            logs = await asyncio.to_thread(pair.end)
        by_machine = dropped(lab).since(dropped_before)
        told = await leader.status()
    return {
        "subscriptions": told["subscriptions"],
        "flows": len(before),
        "flows changed": other_flows,
        **{
            name: {what: rounded(statistics.median(each[what] for each in some)) for what in some[0]}
            | {"slowest": rounded(max(each["leads"] for each in some))}
            for name, some in took.items()
        },
        **({"a configurator killed": rounded(statistics.median(lost))} if lost else {}),
        "events": len(logs.sent),
        "events lost": len(logs.lost(start, over)),
        "events doubled": logs.doubled,
        "packets dropped by the machine": by_machine.to_json(),
        "events lost beyond those": max(0, len(logs.lost(start, over)) - by_machine.by_machine),
    }


def run() -> Result:
    alone, shared = asyncio.run(taken_over()), asyncio.run(taken_over(SHARING))
    goals: dict[str, Goal] = {}
    for who, found in (("", alone), (", configurators", shared)):
        goals |= {
            f"seconds from the death of a process{who}": at_most(found["killed"]["leads"], 3),
            f"seconds from the death of a node with etcd's leader{who}": at_most(
                found["killed with the leader of etcd"]["leads"], 5
            ),
            f"flows changed{who}": at_most(found["flows changed"], 0),
            f"events lost, beyond packets that the machine dropped, or doubled{who}": at_most(
                found["events lost beyond those"] + found["events doubled"], 0
            ),
        }
    goals["seconds from the death of a configurator"] = at_most(shared["a configurator killed"], 3)
    return Result("takeover", {"controllers alone": alone, "with configurators": shared}, {}, goals)
