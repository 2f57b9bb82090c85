"""Where packets name their receivers: publishers know who wants what before that is promised, or are silent."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from fabric import Fabric, until

from flowsieve.client.interests import Subscription
from flowsieve.client.matcher_socket import found, process_of
from flowsieve.serving.http import views

WITHIN = 120.0  # seconds for anything to happen


@pytest.fixture(params=["receivers", "bloom"])
def labelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Fabric]:
    """The network of these tests with labels; the matchers that were started for it end with it."""
    made = Fabric(f"unix:{tmp_path / 'control'}", header=request.param)
    monkeypatch.setattr("flowsieve.client.session.SETTLE_SECONDS", 0)
    yield made
    for host in ("ann", "bob", "cy"):
        if pid := matcher_of(made, host):
            os.kill(pid, signal.SIGKILL)
    made.close()


def matcher_of(fabric: Fabric, host: str) -> int | None:
    """The process that matches for a host, if there is one."""
    peer = found(fabric.control, host)
    if peer is None:
        return None
    with peer:
        return process_of(peer)[0]


async def prices(subscription: Subscription, count: int) -> list[object]:
    async with asyncio.timeout(WITHIN):
        return [(await anext(subscription)).values["price"] for _ in range(count)]


def test_events_come_to_those_who_want_them_and_to_nobody_else(labelled: Fabric) -> None:
    async def story() -> None:
        async with (
            labelled.server(),
            labelled.connect("ann") as ann,
            labelled.connect("bob") as bob,
            labelled.connect("cy") as cy,
            labelled.connect("ann") as near,
        ):
            low, high = (
                await bob.subscribe("price < 100"),
                await cy.subscribe("price >= 100 and side == 'buy'"),
            )
            await ann.advertise()
            here = await near.subscribe("price == 7")
            for price in (7, 50, 100, 500):
                await ann.publish(price=price, side="buy")
            await ann.publish(price=600, side="sell")
            assert await prices(low, 2) == [7, 50]
            assert await prices(high, 2) == [100, 500]
            assert await prices(here, 1) == [7]
            await low.cancel()
            service = labelled.dispatcher  # what ends, ends before publishers know
            await until(lambda: not service.publishers.behind and not service.steps_under_way)
            await ann.publish(price=8, side="buy")
            await ann.publish(price=101, side="buy")
            assert await prices(high, 1) == [101]
            await until(lambda: not cy.stats.lost)
            assert (bob.stats.received, cy.stats.received) == (2, 3)  # not one that was not asked for
            assert (cy.stats.false_positives, cy.stats.duplicates, cy.stats.lost) == (0, 0, 0)
            sizes = sum(map(labelled.state.size, labelled.state.topology.switches))
            gone = 0 if labelled.state.bloom is None else 2 * 2  # the filter that was cancelled came and went
            assert service.operations == sizes + gone

    asyncio.run(story())


def test_an_event_that_comes_in_several_packets_is_delivered_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flowsieve.client.session.SETTLE_SECONDS", 0)
    fabric = Fabric(f"unix:{tmp_path / 'control'}", header="bloom", filters=1)

    async def story() -> None:
        async with fabric.server(), fabric.connect("ann") as ann, fabric.connect("bob") as bob:
            low, bought = await bob.subscribe("price < 100"), await bob.subscribe("side == 'buy'")
            await ann.advertise()
            for price in range(3):
                await ann.publish(price=price, side="buy")
            assert await prices(low, 3) == await prices(bought, 3) == [0, 1, 2]
            await until(lambda: bob.stats.repeats == 3)
            assert (bob.stats.received, bob.stats.delivered, bob.stats.duplicates) == (6, 6, 0)

    try:
        asyncio.run(story())
    finally:
        if pid := matcher_of(fabric, "ann"):
            os.kill(pid, signal.SIGKILL)
        fabric.close()


def test_what_is_lost_on_the_way_is_counted(labelled: Fabric) -> None:
    async def story() -> None:
        async with labelled.server(), labelled.connect("ann") as ann, labelled.connect("bob") as bob:
            low = await bob.subscribe("price < 100")
            await ann.advertise()
            await ann.publish(price=1, side="buy")
            assert await prices(low, 1) == [1]
            events = 0

            def loses(host: str, payload: bytes) -> bool:
                nonlocal events
                events += len(payload) > 60
                return len(payload) > 60 and events % 2 == 0

            labelled.loses = loses
            for price in range(20):
                await ann.publish(price=price, side="buy")
            await until(lambda: bob.stats.lost > 0)
            assert bob.stats.lost == 20 - len(await prices(low, 20 - bob.stats.lost))

    asyncio.run(story())


@pytest.mark.parametrize("labelled", ["receivers"], indirect=True)
def test_a_subscription_waits_for_a_stopped_matcher_until_its_lease_is_over_and_no_longer(
    labelled: Fabric,
) -> None:
    async def story() -> None:
        async with labelled.server(), labelled.connect("ann") as ann, labelled.connect("bob") as bob:
            labelled.dispatcher.filter_lease = 2.0
            await ann.advertise()
            await ann.publish(price=1, side="buy")
            pid = matcher_of(labelled, "ann")
            assert pid is not None
            os.kill(pid, signal.SIGSTOP)
            begin = asyncio.get_running_loop().time()
            ann.publish_nowait({"price": 2, "side": "buy"})  # nobody can say whom it is for
            low = await bob.subscribe("price < 100")
            assert asyncio.get_running_loop().time() - begin > 0.5
            os.kill(pid, signal.SIGCONT)
            await ann.publish(price=3, side="buy")
            assert await prices(low, 2) == [2, 3]
            assert ann.stats.late == 0

    asyncio.run(story())


@pytest.mark.parametrize("labelled", ["receivers"], indirect=True)
def test_another_matcher_takes_the_place_of_one_that_was_killed(labelled: Fabric) -> None:
    async def story() -> None:
        async with labelled.server(), labelled.connect("ann") as ann, labelled.connect("bob") as bob:
            labelled.dispatcher.filter_lease = 1.0
            low = await bob.subscribe("price < 100")
            await ann.advertise()
            await ann.publish(price=1, side="buy")
            pid = matcher_of(labelled, "ann")
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            await ann.publish(price=2, side="buy")
            more = await bob.subscribe("price < 200")
            await ann.publish(price=3, side="buy")
            assert await prices(low, 3) == [1, 2, 3]
            assert await prices(more, 1) == [3]

    asyncio.run(story())


def test_a_controller_that_starts_anew_tells_all_of_it_again(labelled: Fabric) -> None:
    async def story() -> None:
        async with AsyncExitStack() as clients:
            async with labelled.server(lease=15):
                ann = await clients.enter_async_context(labelled.connect("ann"))
                bob = await clients.enter_async_context(labelled.connect("bob"))
                low = await bob.subscribe("price < 100")
                await ann.advertise()
                await ann.publish(price=1, side="buy")
            ann.publish_nowait({"price": 2, "side": "buy"})  # what is held holds without a controller
            assert await prices(low, 2) == [1, 2]
            async with labelled.server(lease=15):
                more = await bob.subscribe("price < 200")
                await ann.publish(price=3, side="buy")
                assert await prices(low, 1) == [3]
                assert await prices(more, 1) == [3]
                await clients.aclose()

    asyncio.run(story())


def test_what_is_asked_of_the_controller_has_an_answer_with_labels_too(labelled: Fabric) -> None:
    async def story() -> None:
        async with labelled.server(), labelled.connect("ann") as ann, labelled.connect("bob") as bob:
            await ann.advertise("price < 500")
            await bob.subscribe("price < 100")
            service = labelled.dispatcher
            assert (await service.verify()).holds
            path = views.explanation(await service.view(), "ann", {"price": 5, "side": "buy"})
            assert [hop["switch"] for hop in path["hops"]] == ["s1", "s2"]
            priced = views.quote(service, "cy", "400 < price < 600")
            entries = {} if labelled.state.bloom is None else {"s1": 1, "s2": 1, "s3": 1}
            assert (priced["told"], priced["entries"], priced["fits"]) == (["ann"], entries, True)
            assert priced["operations"] == entries
            assert (await service.verify()).holds  # and nothing of what was priced is there
            assert views.quote(service, "cy", "price > 600")["told"] == []
            await until(lambda: not service.steps_under_way)
            status = views.status(service, {})
            told = {"version": service.publishers.version, "behind": {}, "forbidden": {}}
            more = {} if labelled.state.bloom is None else {"under_way": 0}
            assert status["publishers"] == told | more
            assert (status["subscriptions"], status["flows_max"]) == (
                1,
                7 if labelled.state.bloom is None else 4,
            )

    asyncio.run(story())
