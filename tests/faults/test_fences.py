"""A switch that cannot be reached, a cable that comes and goes beside it, and a controller that is killed."""

from __future__ import annotations

import asyncio
import signal

import pytest
from foreign import Foreign, foreign
from hatchery import Hatchery
from traffic import PATIENCE

pytestmark = pytest.mark.real

WATCHED_SECONDS = 2.0  # of traffic under the controller that was started again


def test_a_link_stays_fenced_across_a_kill_until_the_switch_that_was_away_has_followed(
    hatchery: Hatchery,
) -> None:
    async def story(there: Foreign) -> None:
        there.configure("failover = false")  # or the link would be bridged, and not fenced
        there.point()
        await there.start()
        await there.populate()
        await there.became_ready()
        near, far = (await there.ask("/v1/topology"))["trees"][0]["edges"][0]
        async with there.outage():
            there.strand(far)
            await there.became_ready(False)
            there.lab.set_link(near, far, up=False)
            await there.down([near, far])
            there.lab.set_link(near, far, up=True)
            await only_fenced(there, [near, far])
            await there.stop_it(signal.SIGKILL)
            there.begin()
            await there.met(set(there.lab.topology.switches) - {far})
            await asyncio.sleep(WATCHED_SECONDS)
            there.regain(far)
            await there.started()
            await only_fenced(there)
            await there.became_ready()
        await there.subscribe("h1", "b < 99")
        await there.judge()

    async def whole() -> None:
        async with foreign("ring:4", hatchery, described=True) as there:
            await story(there)

    asyncio.run(whole())


async def only_fenced(there: Foreign, *edges: list[str]) -> None:
    """Wait until no link is down, and these are fenced."""
    async with asyncio.timeout(PATIENCE):
        while True:
            told = await there.ask("/v1/topology")
            if told["down"] == [] and told["fenced"] == sorted(map(sorted, edges)):
                return
            await asyncio.sleep(0.02)
