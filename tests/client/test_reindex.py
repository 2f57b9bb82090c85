"""The network goes over to another plan under its clients, which publish and subscribe all the while."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest
from fabric import SCHEMA, Fabric, until
from reindexing import Log, Reader, publish_while, stays_behind

from flowsieve.index.plans.regular import RegularPlan

SECONDS = 60.0
PLAN = RegularPlan.make(SCHEMA, bits=6, dimensions=["side", "price"])


def draw(dice: Random) -> dict[str, Any]:
    return {"price": dice.randrange(1024), "side": dice.choice(["buy", "sell"])}


@pytest.mark.parametrize("carry", [True, False], ids=["light-weight", "versioning"])
@pytest.mark.parametrize("deaf", [False, True], ids=["notices", "renewals"])
def test_nothing_is_lost_doubled_or_out_of_order_while_all_go_over(
    fabric: Fabric, carry: bool, deaf: bool
) -> None:
    fabric.deaf = deaf

    async def story() -> None:
        async with (
            asyncio.timeout(SECONDS),
            fabric.server(lease=1.5 if deaf else 1000.0),
            fabric.connect("ann") as ann,
            fabric.connect("bob") as bob,
            fabric.connect("cy") as cy,
        ):
            readers = [
                await Reader.of(bob, "price < 300"),
                await Reader.of(bob, "side == 'sell'"),
                await Reader.of(cy, "price >= 900 or side == 'buy'"),
            ]
            for client in (ann, cy):
                await client.advertise()
            logs = [Log(ann), Log(cy)]
            record = await publish_while(fabric.dispatcher.reindex(PLAN, carry=carry), logs, draw, 0.002)
            assert record.ended == "arrived"
            assert not fabric.dispatcher.holders.behind(1)
            for reader in readers:
                await reader.read(logs)
                reader.check(logs)
                assert all(reader.in_order(log) for log in logs)
            assert {client._index.version for client in (ann, cy)} == {1}

    asyncio.run(story())


def test_a_publisher_that_never_goes_over_loses_nothing(fabric: Fabric) -> None:
    async def story() -> None:
        async with (
            asyncio.timeout(SECONDS),
            fabric.server(),
            fabric.connect("ann") as ann,
            fabric.connect("cy") as cy,
            fabric.connect("bob") as bob,
        ):
            stays_behind(ann)
            reader = await Reader.of(bob, "price < 300")
            for client in (ann, cy):
                await client.advertise()
            logs = [Log(ann), Log(cy)]
            fabric.dispatcher.transition.publisher_patience = 0.2
            await publish_while(fabric.dispatcher.reindex(PLAN), logs, draw, 0.005)
            await reader.read(logs)
            reader.check(logs)
            late = fabric.behind.late.counters
            assert late.again > 0 and late.unsent == late.foreign == late.malformed == 0
            assert (ann._index.version, cy._index.version) == (0, 1)
            assert fabric.dispatcher.late  # its tag is not free

    asyncio.run(story())


def test_there_and_back_and_on_with_a_subscription_that_comes_meanwhile(fabric: Fabric) -> None:
    async def story() -> None:
        async with (
            asyncio.timeout(SECONDS),
            fabric.server(),
            fabric.connect("ann") as ann,
            fabric.connect("bob") as bob,
        ):
            first = await Reader.of(bob, "price < 300")
            await ann.advertise()
            log, later = Log(ann), []

            async def work() -> None:
                await fabric.dispatcher.reindex(PLAN)
                for plan in (RegularPlan.make(SCHEMA, bits=3), PLAN):
                    going = asyncio.ensure_future(fabric.dispatcher.reindex(plan))
                    await asyncio.sleep(0.01)
                    later.append((await Reader.of(bob, "side == 'buy'"), max(log.events, default=0)))
                    await going

            await publish_while(work(), [log], draw, 0.002)
            await first.read([log])
            first.check([log])
            for reader, since in later:
                after = Log(ann, {seq: event for seq, event in log.events.items() if seq > since})
                await reader.read([after])
                assert len(set(reader.got)) == len(reader.got)
            assert bob.stats.lost == 0
            await until(lambda: bob._index.version == 3)

    asyncio.run(story())
