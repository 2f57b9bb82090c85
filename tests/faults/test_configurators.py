"""Configurators of two controllers over real switches: killed, stopped, cut off while clients ask without pause."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import Awaitable, Callable

import pytest
from burst import bursting
from hatchery import Hatchery
from nodes import CONFIGURATORS, Node, Nodes, shared
from traffic import PATIENCE

from flowsieve.testing.etcd_servers import etcd_installed

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not etcd_installed(), reason="there is no etcd; apt-get install etcd-server"),
]


# Who leads is not what is tried here, and shall not change because the machine has much to do.
PATIENT = f"{CONFIGURATORS}\nlease = 5"


def play(story: Callable[[Nodes], Awaitable[None]], hatchery: Hatchery, topology: str = "ring:4") -> None:
    async def whole() -> None:
        async with shared(topology, hatchery, more=PATIENT) as there:
            await story(there)

    asyncio.run(whole())


async def deciding(node: Node, at_least: int = 4) -> None:
    """Wait until so many configurators own all partitions."""
    async with asyncio.timeout(PATIENCE):
        while True:
            told = await node.sharing()
            if told["trouble"] is None and len(told["configurators"]) >= at_least:
                return
            await asyncio.sleep(0.05)


def test_others_take_over_and_the_tables_are_those_that_one_process_makes(hatchery: Hatchery) -> None:
    async def story(there: Nodes) -> None:
        leader = await there.leader()
        await deciding(leader)
        await leader.populate()
        async with bursting(leader, random.Random(11)) as burst:
            await asyncio.sleep(0.5)
            killed, stopped, *_ = (await leader.configurators()).values()
            os.kill(killed, signal.SIGKILL)
            await asyncio.sleep(0.5)
            os.kill(stopped, signal.SIGSTOP)
            await leader.logged("is gone; others take over", times=2)
            os.kill(stopped, signal.SIGCONT)
            before = burst.answered
            leader = await there.leader()
            await deciding(leader)  # both are back, as new ones
            for pid in (await leader.configurators()).values():
                os.kill(pid, signal.SIGKILL)  # all of them
            await asyncio.sleep(0.5)
        assert burst.answered > before
        leader = await there.leader()  # on a busy machine it may be the other one by now
        burst.judged_by(leader)
        await burst.check()
        await deciding(leader, 1)
        told = await leader.sharing()
        assert {each["owner"] for each in told["partitions"]} <= told["configurators"].keys()
        assert await leader.judge() == 0
        for node in there.nodes:
            assert "has died" not in node.errors.read_text()
        with leader.watched() as watch:
            for node in there.nodes:
                await node.stop_it(signal.SIGKILL)
                text = node.config.read_text()
                node.config.write_text(text.replace("configurators = 2", "configurators = 1"))
            leader.begin()
            await leader.started()
            await leader.became_ready()
            assert watch.changes == {}, watch.changes

    play(story, hatchery)


def test_a_node_is_killed_with_its_configurators_and_the_other_goes_on_with_its_own(
    hatchery: Hatchery,
) -> None:
    async def story(there: Nodes) -> None:
        first = await there.leader()
        await deciding(first)
        await first.populate()
        async with bursting(first, random.Random(12)) as burst:
            await asyncio.sleep(0.5)
            await first.stop_it(signal.SIGKILL)
            second, _ = await there.taken_over(first)
            await deciding(second, 2)
            numbers = [each["number"] for each in (await second.sharing())["partitions"]]
            assert min(numbers) > 1  # above those of the one before
            await second.subscribe("h1", "a < 100")
            burst.judged_by(second)
        await burst.check()
        assert await second.judge() == 0

    play(story, hatchery)
