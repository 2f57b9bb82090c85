"""Networks of real switches go over to other plans under traffic, and things fail on the way; the logs judge."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Mapping
from typing import Any

import pytest
from daemonic import Daemonic, daemonic
from hatchery import Hatchery
from proxy import Proxy

from flowsieve.content.schema import Schema
from flowsieve.index.plan import plan_to_json
from flowsieve.index.plans.regular import RegularPlan

pytestmark = pytest.mark.real

SCHEMA = Schema.parse({name: {"type": "int", "min": 0, "max": 255} for name in ("a", "b")})
PLANS = [
    plan_to_json(RegularPlan.make(SCHEMA, bits=bits, dimensions=dimensions))
    for bits, dimensions in ((8, ["b"]), (6, ["a"]), (12, ["b", "a"]))
]
LEASE = 3.0


async def going_over(there: Daemonic, number: int, **more: object) -> Mapping[str, Any]:
    told: Mapping[str, Any] = await there.operate("/v1/index", {"plan": PLANS[number % len(PLANS)], **more})
    assert "error" not in told, told
    return told


async def nobody_behind(there: Daemonic) -> Mapping[str, Any]:
    """Wait until all publishers use the index in force, and no tag but its own is in use."""
    async with asyncio.timeout(30):
        while (told := await there.ask("/v1/index"))["behind"] or told["retired"]:
            await asyncio.sleep(0.02)
    return told


def test_a_network_goes_over_under_traffic_again_and_again_and_nothing_is_lost_or_doubled(
    hatchery: Hatchery,
) -> None:
    async def story() -> None:
        async with daemonic("ring:6", hatchery) as there:
            there.configure(f"lease = {LEASE}")
            await there.start()
            await there.populate()
            await going_over(there, 0)
            await there.subscribe("h4", "a < 60")  # while it happens
            told = await there.index_came(1)
            assert [each["phase"] for each in told["transitions"][0]["phases"]] == [
                "carry",
                "install",
                "switch",
                "fence",
                "clear",
            ]
            await nobody_behind(there)
            await going_over(there, 1, method="versioning")
            await there.index_came(2)
            await going_over(there, 2, trees="anew")
            await there.index_came(3)
            assert "error" not in await there.operate("/v1/index", {"rollback": True})
            await there.index_came(4)
            await nobody_behind(there)
            status = await there.ask("/v1/status")
            assert status["index"]["version"] == 4 and status["index"]["phase"] is None
            assert await there.judge() == 0

    asyncio.run(story())


@pytest.mark.parametrize("phase", ["install", "fence"])  # soak_transition.py: at any moment
def test_whoever_kills_the_controller_on_the_way_changes_nothing_of_what_arrives(
    hatchery: Hatchery, phase: str
) -> None:
    async def story() -> None:
        async with daemonic("ring:4", hatchery) as there:
            there.configure(f"lease = {LEASE}")
            await there.start()
            await there.populate()
            await going_over(there, 0)
            while True:
                crossing = (await there.ask("/v1/index"))["crossing"]
                if crossing is None or crossing["phase"] == phase:
                    break
            await there.stop_it(signal.SIGKILL)
            await asyncio.sleep(0.3)
            await there.start()
            async with asyncio.timeout(30):
                while (await there.ask("/v1/index"))["crossing"] is not None:
                    await asyncio.sleep(0.02)
            told = await nobody_behind(there)
            assert told["version"] in (0, 1)
            await there.subscribe("h3", "b >= 200")
            assert await there.judge() == 0

    asyncio.run(story())


def test_a_publisher_that_does_not_answer_has_its_events_sent_again(hatchery: Hatchery) -> None:
    """It is cut off from its controller, not from the network; in the end it hears of the index all the same."""

    async def story() -> None:
        async with daemonic("ring:4", hatchery) as there:
            there.configure("lease = 8")
            await there.start()
            wire = Proxy(there.folder / "proxy", there.lab.requests)
            await wire.start()
            there.controls["h0"] = f"unix:{wire.path}"
            try:
                await there.populate()
                wire.block(True)
                await going_over(there, 0)
                told = await there.index_came(1)
                assert told["behind"] == ["h0"] and told["retired"]
                log = next(iter(there.sent.values()))  # of h0, which came first
                sent = len(log)
                async with asyncio.timeout(30):
                    while len(log) < sent + 100:
                        await asyncio.sleep(0.02)
                wire.block(False)
                await nobody_behind(there)
                assert await there.judge() == 0
            finally:
                await wire.stop()

    asyncio.run(story())


def test_a_link_that_dies_on_the_way_costs_what_was_under_way_there(hatchery: Hatchery) -> None:
    async def story() -> None:
        async with daemonic("ring:4", hatchery) as there:
            there.configure(f"lease = {LEASE}\nfailover = false")
            await there.start()
            await there.populate()
            await going_over(there, 0)
            async with there.outage():
                there.lab.set_link("s0", "s1", up=False)
                await there.down(("s0", "s1"))
                await there.became_ready()
            async with asyncio.timeout(30):
                while (await there.ask("/v1/index"))["crossing"] is not None:
                    await asyncio.sleep(0.02)
            await nobody_behind(there)
            await there.judge()

    asyncio.run(story())
