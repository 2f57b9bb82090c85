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


SKEWED = "partitions = 8\nconfigurators = 2\nlease = 30\ndivide_every = 2"
CLIENTS, PARTS = 50, 4  # so many wait at once, with so many parts each: more than a monitor passes over


def play(
    story: Callable[[Nodes], Awaitable[None]],
    hatchery: Hatchery,
    topology: str = "ring:4",
    more: str = PATIENT,
    count: int = 2,
) -> None:
    async def whole() -> None:
        async with shared(topology, hatchery, more=more, count=count) as there:
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


def box_of(dz: str) -> tuple[int, int, int, int]:
    """What of a and b lies in a cell: from and to, with the bits of both in turn."""
    bounds = [0, 256, 0, 256]
    for at, bit in enumerate(dz):
        first = 2 * (at % 2)
        half = (bounds[first] + bounds[first + 1]) // 2
        bounds[first if bit == "1" else first + 1] = half
    a, to_a, b, to_b = bounds
    return a, to_a, b, to_b


def within(dz: str, dice: random.Random) -> str:
    """A small box somewhere in a cell."""
    a, to_a, b, to_b = box_of(dz)
    low, left = dice.randrange(a, to_a), dice.randrange(b, to_b)
    return f"{low} <= a < {min(to_a, low + 4)} and {left} <= b < {min(to_b, left + 4)}"


class Skew:
    """Filters that all lie in a few partitions of one configurator."""

    def __init__(self) -> None:
        self.owner = ""
        self._hot: list[str] = []

    async def aim(self, node: Node) -> None:
        """At whoever owns most, as it is now."""
        own: dict[str, list[str]] = {}
        async with asyncio.timeout(PATIENCE):
            while not own or max(map(len, own.values())) < PARTS:
                own = {}
                for each in (await node.sharing())["partitions"]:
                    if each["ready"]:
                        own.setdefault(each["owner"], []).append(each["dz"])
                await asyncio.sleep(0.02)
        self.owner = max(own, key=lambda name: len(own[name]))
        self._hot = own[self.owner][:PARTS]

    def filter(self, dice: random.Random) -> str:
        return " or ".join(f"({within(dz, dice)})" for dz in self._hot)


async def said(node: Node, *texts: str) -> bool:
    return all(any(text in each["text"] for each in node.log()) for text in texts)


def test_a_partition_moves_and_the_space_is_divided_finer_while_requests_pour_into_one_place(
    hatchery: Hatchery,
) -> None:
    async def story(there: Nodes) -> None:
        node = await there.leader()
        await deciding(node, 2)
        await node.populate()
        skew = Skew()
        await skew.aim(node)
        moved, finer = "which has less to do", "the space is divided into"
        async with bursting(node, random.Random(13), CLIENTS, skew.filter, pause=0.3) as burst:
            async with asyncio.timeout(3 * PATIENCE):
                while not await said(node, moved, finer):
                    await skew.aim(node)
                    pid = (await node.configurators()).get(skew.owner)
                    if pid is None or await said(node, moved):
                        await asyncio.sleep(0.1)
                        continue
                    os.kill(pid, signal.SIGSTOP)  # it falls behind, and not for so long that it is given up
                    await asyncio.sleep(0.7)
                    os.kill(pid, signal.SIGCONT)
                    await asyncio.sleep(0.5)
            before = burst.answered
            async with asyncio.timeout(PATIENCE):
                while burst.answered < before + CLIENTS:  # it goes on
                    await asyncio.sleep(0.05)
        await burst.check()
        assert not burst.refused
        told = await node.sharing()
        assert told["migrations"] > 0
        assert max(len(each["dz"]) for each in told["partitions"]) > 3
        assert await node.judge() == 0
        assert not node.missed
        with node.watched() as watch:
            await node.stop_it(signal.SIGTERM)  # it need not be waited for until its lease is over
            text = node.config.read_text()
            node.config.write_text(text.replace("configurators = 2", "configurators = 1"))
            node.begin()
            await node.started()
            await node.became_ready()
            assert watch.changes == {}, watch.changes

    play(story, hatchery, more=SKEWED, count=1)


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
