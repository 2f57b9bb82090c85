"""Cables pulled under real traffic: switches lead around them, the controller dies meanwhile, and more breaks."""

from __future__ import annotations

import asyncio
import signal

import pytest
from foreign import Foreign, foreign
from hatchery import Hatchery
from traffic import PATIENCE

pytestmark = pytest.mark.real


async def failover(there: Foreign, **expected: object) -> dict[str, object]:
    """Wait until detours are as expected."""
    async with asyncio.timeout(PATIENCE):
        while True:
            told: dict[str, object] = (await there.ask("/v1/status"))["failover"]
            if {name: told[name] for name in expected} == expected:
                return told
            await asyncio.sleep(0.02)


async def only_down(there: Foreign, edge: list[str]) -> None:
    """Wait until this link is down and no other, and none is fenced."""
    async with asyncio.timeout(PATIENCE):
        while (told := await there.ask("/v1/topology"))["down"] != [sorted(edge)] or told["fenced"]:
            await asyncio.sleep(0.02)


def test_a_bridged_link_outlives_its_controller_and_is_mended_once_its_bridge_breaks(
    hatchery: Hatchery,
) -> None:
    async def story(there: Foreign) -> None:
        there.renumber(5)
        there.point()
        await there.start()
        await there.populate()
        await there.became_ready()
        await failover(there, on=True, protected=3, unprotected=[], bridged=[])
        trees = (await there.ask("/v1/topology"))["trees"]
        near, far = trees[0]["edges"][0]
        async with there.outage():
            there.lab.set_link(near, far, up=False)
            await there.down([near, far])
            (way,) = (await failover(there, protected=1))["bridged"]
            assert {way[0], way[-1]} == {near, far} and len(way) == 4
            await there.became_ready()
            assert (await there.ask("/v1/verify"))["holds"]
        # Nobody is there, and events go on; another controller finds the bridge and leaves it alone.
        await there.stop_it(signal.SIGKILL)
        await asyncio.sleep(0.5)
        there.begin()
        await there.started()
        await there.became_ready()
        told = await there.ask("/v1/topology")
        assert told["trees"] == trees and told["fenced"] == []
        await there.subscribe("h1", "b < 99")
        assert (await failover(there, protected=1))["bridged"] == [way]
        # The bridge breaks, and the first cable is plugged in again: the tree is another.
        async with there.outage():
            there.lab.set_link(*way[1:3], up=False)
            await there.down(way[1:3])
            there.lab.set_link(near, far, up=True)
            await failover(there, bridged=[])
            await only_down(there, way[1:3])
            await there.became_ready()
        assert (await there.ask("/v1/verify"))["holds"]
        await there.subscribe("h2", "b < 50")
        await there.judge()

    async def whole() -> None:
        async with foreign("ring:4", hatchery, described=True) as there:
            await story(there)

    asyncio.run(whole())
