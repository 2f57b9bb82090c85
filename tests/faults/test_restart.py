"""The controller's process is killed, ended and started while events flow: nobody who talks to the network notices."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import Awaitable, Callable

import pytest
from burst import bursting
from daemonic import Daemonic, daemonic
from hatchery import Hatchery
from traffic import PATIENCE

from flowsieve.client.http_transport import HttpTransport

pytestmark = pytest.mark.real

KILLS = 4
CAPACITY = 40
Story = Callable[[Daemonic], Awaitable[None]]


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


def test_tables_that_were_cut_to_a_capacity_are_adopted_as_they_are(hatchery: Hatchery) -> None:
    """Killed, ended with a snapshot, and killed after requests that came on top of one; prices asked for meanwhile."""

    async def story(there: Daemonic) -> None:
        dice = random.Random(7)
        there.configure(capacity=CAPACITY)
        await there.start()
        await there.populate()
        for how in (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL, signal.SIGTERM):
            bursts, before = [], there.tables()
            async with asyncio.timeout(PATIENCE):
                while not bursts or max(map(content, before.values())) <= CAPACITY // 2:  # until it is tight
                    async with bursting(there, dice, clients=3) as burst:
                        await asyncio.sleep(0.7)
                        for _ in range(3):
                            low = dice.randrange(200)
                            await there.ask(
                                f"/v1/quote?host=h1&filter={low}%20%3C%20a%20and%20b%20%3C%20{low}"
                            )
                    await there.became_ready()
                    bursts.append(burst)
                    before = there.tables()
            with there.watched() as watch:
                await there.stop_it(how)
                await there.start()
                await there.became_ready()
                assert watch.changes == {}
            assert there.tables() == before
            for burst in bursts:
                await burst.check()
        assert max(map(content, there.tables().values())) <= CAPACITY
        assert await there.judge() == 0

    play(story, hatchery)


def test_a_shorter_lease_after_a_restart_ends_nobody_who_was_promised_a_longer_one(
    hatchery: Hatchery,
) -> None:
    async def story(there: Daemonic) -> None:
        there.configure("lease = 60")
        await there.start()
        await subscribe(there, "h1", "a < 10")  # and nothing more is heard of it
        there.configure("lease = 1")
        for how in (signal.SIGTERM, signal.SIGKILL):
            await there.stop_it(how)
            await there.start()
            await subscribe(there, "h2", "b < 10")
            assert await held(there) == {"h1", "h2"}
            async with asyncio.timeout(30):
                while "h2" in await held(there):
                    await asyncio.sleep(0.05)
            assert await held(there) == {"h1"}

    play(story, hatchery, "line:3")


async def subscribe(there: Daemonic, host: str, text: str) -> None:
    """As a client of which nothing is heard afterwards."""
    call = {"session": os.urandom(16).hex(), "n": 1, "host": host, "token": there.token(host)}
    transport = HttpTransport(f"unix:{there.lab.requests}")
    try:
        answer = await transport.call({**call, "op": "sub", "filter": text})
    finally:
        await transport.close()
    assert "ok" in answer, answer


async def held(there: Daemonic) -> set[str]:
    """The hosts that hold subscriptions."""
    return {each["host"] for each in await there.ask("/v1/subscriptions")}


def content(flows: list[str]) -> int:
    return sum("ff0e" in flow for flow in flows)
