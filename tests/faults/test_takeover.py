"""Controllers that share an etcd, over real switches: one dies, another goes on, and nobody who talks notices."""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import Awaitable, Callable

import pytest
from burst import bursting
from hatchery import Hatchery
from nodes import Nodes, frozen, shared

from flowsieve.testing.etcd_servers import etcd_installed

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not etcd_installed(), reason="there is no etcd; apt-get install etcd-server"),
]


def play(story: Callable[[Nodes], Awaitable[None]], hatchery: Hatchery, topology: str = "ring:4") -> None:
    async def whole() -> None:
        async with shared(topology, hatchery) as there:
            await story(there)

    asyncio.run(whole())


def test_a_node_is_killed_with_the_leader_of_etcd_and_another_goes_on(hatchery: Hatchery) -> None:
    async def story(there: Nodes) -> None:
        first = await there.leader()
        await first.populate()
        async with bursting(first, random.Random(5)) as burst:
            await asyncio.sleep(0.5)
            await first.stop_it(signal.SIGKILL)
            second, _ = await there.taken_over(first)
            await asyncio.sleep(0.5)
            first.begin()  # it stands by from now on
            there.etcd.signal(there.etcd.leader, signal.SIGKILL)
            await second.stop_it(signal.SIGKILL)
            third, _ = await there.taken_over(second)
            assert third is first
            await first.subscribe("h1", "a < 100")
        assert burst.again > 0
        await burst.check()
        assert await first.judge() == 0

    play(story, hatchery)


def test_a_node_that_was_stopped_cannot_write_any_more_and_stands_by(hatchery: Hatchery) -> None:
    async def story(there: Nodes) -> None:
        first = await there.leader()
        await first.populate()
        async with bursting(there.other(first), random.Random(6)) as burst:
            await asyncio.sleep(0.3)
            stopping = asyncio.create_task(frozen(first, 4.0))
            second, _ = await there.taken_over(first)
            await stopping
            await first.logged("stands by; node")
            before = burst.answered
            await asyncio.sleep(0.5)
        assert burst.answered > before
        await burst.check()
        assert await second.judge() == 0

    play(story, hatchery)


def test_a_node_that_is_cut_off_from_etcd_is_replaced_and_tells_its_clients_so(hatchery: Hatchery) -> None:
    async def story(there: Nodes) -> None:
        first = await there.leader()
        await first.populate()
        async with bursting(there.other(first), random.Random(7)) as burst:
            await asyncio.sleep(0.3)
            first.isolate(True)
            second, _ = await there.taken_over(first)
            assert second is not first
            told = await first.ask("/v1/status")  # it is there, and says that it may not lead
            assert not told["control"]["leads"]
            await second.subscribe("h1", "a < 100")
            first.isolate(False)
            await first.logged("stands by; node")
        await burst.check()
        assert await second.judge() == 0

    play(story, hatchery)
