"""Subscriptions to a controller until they are acknowledged, with both kinds of labels and with dz.

The network is a fat-tree of 20 real switches and 64 hosts, of which 1, 16 or 64 may publish anything; the controller is
a process of its own. With labels, each publishing host holds the filters of all others: their matchers, with the
sessions and the filters that real ones have, are in this process. What the controller tells them says whether they
hold filters by receiver or pack them as Bloom filters. Then one client asks after the other, for the time
that a subscription takes, and as many as 40 at a time, for how many can be had.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

from benchmarks.bench import Result, at_most, rounded
from benchmarks.campus import BUDGET, FILTERS, SCHEMA, clients, over_http
from benchmarks.churning import Tally, as_fast
from benchmarks.daemon import ControllerProcess, controller_of
from flowsieve.client.control_session import ControlConnection, transport_to
from flowsieve.content.filter import Filter
from flowsieve.control.request import Op, Request
from flowsieve.lab.lab import Lab, running
from flowsieve.matcher.filter_learner import FilterLearner, greeted
from flowsieve.network.generators import fat_tree

HOSTS, PUBLISHERS = 64, (1, 16, 64)
SECONDS, ALONE = 5.0, 150  # for many clients at a time; requests of one
PATIENCE_SECONDS = 10.0  # for publishers to hear that all have left
HEADERS = {
    "dz": f"max_dz_per_filter = {BUDGET}",
    "receivers": 'header = "receivers"',
    "bloom": 'header = "bloom"',
}


@asynccontextmanager
async def matching(controller: ControllerProcess, hosts: list[str]) -> AsyncIterator[list[FilterLearner]]:
    """What holds the filters of others, for each of some hosts."""
    async with AsyncExitStack() as stack, asyncio.TaskGroup() as group:
        made, tasks = [], []
        for host in hosts:
            connection = ControlConnection(
                transport_to(f"unix:{controller.lab.requests}"), host, controller.token(host)
            )
            stack.push_async_callback(connection.close)
            learner = FilterLearner(connection, await greeted(connection))
            tasks.append(group.create_task(learner.learn()))
            made.append(learner)
        for learner in made:
            await learner.valid()
        yield made
        for task in tasks:
            task.cancel()


async def asked(controller: ControllerProcess) -> dict[str, Any]:
    """What one client after the other gets, and what many at a time do."""
    alone, many = Tally(), Tally()
    operations = (await controller.ask("/v1/status"))["operations"]
    async with clients(controller, alone, over_http, 8) as some:
        for number in range(ALONE):
            await some[number % len(some)].turn()
        alone.end = time.perf_counter()
    async with clients(controller, many, over_http) as some:
        before = controller.processor_seconds()
        await as_fast(some, many, SECONDS)
        spent = controller.processor_seconds() - before
    served = len(alone.seconds) + len(many.seconds)
    operations = (await controller.ask("/v1/status"))["operations"] - operations
    one = alone.figures()
    return {
        "one at a time, p50 ms": one["p50 ms"],
        "one at a time, p99 ms": one["p99 ms"],
        "per second": many.figures()["per second"],
        "processor ms each": rounded(1e3 * spent / max(1, len(many.seconds))),
        "flow operations each": rounded(operations / served),
        "not served": len(alone.unserved) + len(many.unserved) + alone.unanswered + many.unanswered,
    }


async def left(held: list[FilterLearner]) -> int:
    """Filters that a publisher still holds though all clients have left, and it was given the time to hear of it."""
    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE_SECONDS):
            while any(len(each.store) for each in held):
                await asyncio.sleep(0.01)
    return max(len(each.store) for each in held)


async def measured(lab: Lab, header: str, publishers: int) -> dict[str, Any]:
    hosts = list(lab.topology.hosts)
    some = [hosts[i * len(hosts) // publishers] for i in range(publishers)]
    everything = Filter.parse("True", SCHEMA)
    async with controller_of(lab, SCHEMA, HEADERS[header]) as controller:
        await controller.remember(
            [Request(Op.ADVERTISE, f"a{i}", host, everything) for i, host in enumerate(some)]
        )
        await controller.start()
        try:
            if header == "dz":
                return await asked(controller)
            async with matching(controller, some) as held:
                figures = await asked(controller)
                return figures | {"filters left with publishers": await left(held)}
        finally:
            await controller.end(signal.SIGTERM)


def run() -> Result:
    assert len(FILTERS) > HOSTS
    figures: dict[str, Any] = {}
    with running(fat_tree(4, HOSTS)) as lab:
        for publishers in PUBLISHERS:
            for header in HEADERS:
                name = f"{header}, {publishers} publishers"
                figures[name] = asyncio.run(measured(lab, header, publishers))
    receivers = [found for name, found in figures.items() if name.startswith("receivers")]
    return Result(
        "label_service",
        figures,
        {},
        {
            "flow operations of a subscription with labels that name receivers": at_most(
                max(each["flow operations each"] for each in receivers), 0
            ),
            "subscriptions not served": at_most(sum(each["not served"] for each in figures.values()), 0),
            "filters left with publishers": at_most(
                max(each.get("filters left with publishers", 0) for each in figures.values()), 0
            ),
        },
    )
