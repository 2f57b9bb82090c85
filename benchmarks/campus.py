"""Clients of a controller that is a process of its own, over a fat-tree of 20 real switches."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from benchmarks.churning import Churner, LeanHttp, Tally, inband
from benchmarks.control_plane import squares
from benchmarks.daemon import ControllerProcess, controller_of
from benchmarks.talk import Pair
from flowsieve.client.control_session import Transport
from flowsieve.content.filter import Filter
from flowsieve.control.request import Op, Request
from flowsieve.lab.blueprint import HOST_INTERFACE
from flowsieve.lab.lab import Lab, running
from flowsieve.network.generators import fat_tree
from flowsieve.network.topology import Topology

PUBLISHERS, BUDGET, CLIENTS = 4, 8, 40
EVENT_RATE = 200.0
PATIENCE_SECONDS = 120.0
WANTED = "a0 < 1024"  # all of them
FILTERS = squares(2_000).texts()
SCHEMA = squares(1).schema

Way = Callable[
    [Lab, str, int], Transport
]  # from a host of a lab to its controller; the number is the client's


def topology() -> Topology:
    """20 switches, 16 hosts."""
    return fat_tree(4)


def advertisements(hosts: Sequence[str]) -> list[Request]:
    """Some hosts may publish anything."""
    everything = Filter.parse("True", SCHEMA)
    return [
        Request(Op.ADVERTISE, f"a{i}", hosts[i * len(hosts) // PUBLISHERS], everything)
        for i in range(PUBLISHERS)
    ]


@asynccontextmanager
async def campus() -> AsyncIterator[ControllerProcess]:
    """The network under a controller that has been started."""
    with running(topology()) as lab:
        async with controller_of(lab, SCHEMA, f"max_dz_per_filter = {BUDGET}") as controller:
            await controller.remember(advertisements(list(lab.topology.hosts)))
            await controller.start()
            yield controller


def over_http(lab: Lab, host: str, number: int) -> Transport:
    return LeanHttp(str(lab.requests))


def in_band(lab: Lab, host: str, number: int) -> Transport:
    with lab.inside(host):
        return inband(HOST_INTERFACE)[0]


@asynccontextmanager
async def clients(
    controller: ControllerProcess, tally: Tally, way: Way, count: int = CLIENTS
) -> AsyncIterator[list[Churner]]:
    """Sessions on all hosts, that ask in one way and leave nothing behind."""
    async with AsyncExitStack() as stack:
        made, hosts = [], list(controller.lab.topology.hosts)
        for number in range(count):
            host = hosts[number % len(hosts)]
            transport = way(controller.lab, host, number)
            stack.push_async_callback(transport.close)
            made.append(Churner(transport, host, controller.token(host), FILTERS, tally, number))
        yield made
        await asyncio.gather(*(churner.leave() for churner in made))


def talking(lab: Lab) -> Pair:
    """Two applications, one of which publishes."""
    hosts = list(lab.topology.hosts)
    events = [{"a0": 10 * i, "a1": 7 * i} for i in range(100)]
    return Pair(lab, hosts[2], hosts[len(hosts) // 2 + 3], WANTED, events, EVENT_RATE)


async def began(pair: Pair) -> float:
    """When they talk, by the clock of their logs."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not pair.talks():
            pair.check()
            await asyncio.sleep(0.01)
    return time.monotonic()
