"""The controller's process is killed, ended and started while events flow: nobody who talks to the network notices."""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import Awaitable, Callable, Iterator

import pytest
from burst import bursting
from daemonic import Daemonic, daemonic
from hatchery import Hatchery

pytestmark = pytest.mark.real

KILLS = 4
CAPACITY = 40
Story = Callable[[Daemonic], Awaitable[None]]


@pytest.fixture(scope="module")
def hatchery() -> Iterator[Hatchery]:
    with Hatchery() as made:
        yield made


def play(story: Story, hatchery: Hatchery, topology: str = "ring:6") -> None:
    async def whole() -> None:
        async with daemonic(topology, hatchery) as there:
            await story(there)

    asyncio.run(whole())


def test_what_was_acknowledged_survives_kills_in_a_burst_of_requests(hatchery: Hatchery) -> None:
    async def story(there: Daemonic) -> None:
        dice = random.Random(5)
        await there.start()
        await there.populate()
        async with bursting(there, dice) as burst:
            for _ in range(KILLS):
                await asyncio.sleep(dice.uniform(0.1, 0.6))
                await there.stop_it(signal.SIGKILL)
                if dice.random() < 0.5:  # and killed again while it starts
                    there.begin()
                    await asyncio.sleep(dice.uniform(0.0, 1.0))
                    await there.stop_it(signal.SIGKILL)
                await there.start()
            await there.subscribe("h4", "a < 100")
        assert burst.again > 0  # or the kills have hit nothing
        await burst.check()
        assert await there.judge() == 0

    play(story, hatchery)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_flows_are_adopted_not_installed_anew(hatchery: Hatchery, how: signal.Signals) -> None:
    async def story(there: Daemonic) -> None:
        await there.start()
        await there.populate()
        async with bursting(there, random.Random(6)) as burst:
            await asyncio.sleep(0.5)
        await there.became_ready()
        before = there.tables()
        for _ in range(2):
            with there.watched() as watch:
                await there.stop_it(how)
                told = await there.start()
                assert told["subscriptions"] > burst.answered // 10
                await there.became_ready()
                assert watch.changes == {}
            assert there.tables() == before
        await burst.check()
        assert await there.judge() == 0

    play(story, hatchery)


def test_tables_that_were_cut_to_a_capacity_are_adopted_and_lose_nothing(hatchery: Hatchery) -> None:
    """After SIGTERM there is a snapshot, which does not tell how tables were cut: some may be cut anew."""

    async def story(there: Daemonic) -> None:
        there.configure(capacity=CAPACITY)
        await there.start()
        await there.populate()
        async with bursting(there, random.Random(7), clients=3) as burst:
            await asyncio.sleep(1.0)
        await there.became_ready()
        before = there.tables()
        assert max(map(content, before.values())) > CAPACITY // 2  # it is tight somewhere
        with there.watched() as watch:
            await there.stop_it(signal.SIGKILL)
            await there.start()
            await there.became_ready()
            assert watch.changes == {}
        assert there.tables() == before
        await there.stop_it(signal.SIGTERM)
        await there.start()
        await there.became_ready()
        assert max(map(content, there.tables().values())) <= CAPACITY
        await burst.check()
        assert await there.judge() == 0

    play(story, hatchery)


def content(flows: list[str]) -> int:
    return sum("ff0e" in flow for flow in flows)
