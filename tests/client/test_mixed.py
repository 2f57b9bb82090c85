"""Where some hosts' packets name their receivers and others' say what is in them: subscribers take both alike."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from fabric import Fabric, until
from test_labels import matcher_of, prices

from flowsieve.client.session import Client
from flowsieve.control.dispatcher import Dispatcher
from flowsieve.errors import BadInput
from flowsieve.network.host_patterns import HostPatterns
from flowsieve.protocol.call import FILTERS
from flowsieve.serving.http import views


@pytest.fixture
def mixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fabric]:
    """The network of these tests, in which ann labels what she sends."""
    made = Fabric(f"unix:{tmp_path / 'control'}", label_hosts=HostPatterns(("a*",)))
    monkeypatch.setattr("flowsieve.client.session.SETTLE_SECONDS", 0)
    yield made
    if pid := matcher_of(made, "ann"):
        os.kill(pid, signal.SIGKILL)
    made.close()


async def publish(client: Client, *prices: int) -> None:
    for price in prices:
        await client.publish(price=price, side="buy")


async def both_are_told(service: Dispatcher) -> None:
    """What is asked of the controller has an answer for either kind."""
    assert (await service.verify()).holds
    priced = views.quote(service, "cy", "400 <= price < 600")
    assert (priced["told"], priced["fits"]) == (["ann"], True)
    assert set(priced["entries"]) == {"s2", "s3"}  # where what bob sends comes by
    for host, switches, group in (("ann", ["s1", "s2", "s3"], "ff1e"), ("bob", ["s2", "s3"], "ff0e")):
        path = views.explanation(await service.view(), host, {"price": 70, "side": "buy"})
        assert [hop["switch"] for hop in path["hops"]] == switches
        assert {hop["dst"][:4] for hop in path["hops"]} == {group}
        assert path["delivered"] == ["cy"]
    status = views.status(service, {})
    assert (status["publishers"]["behind"], status["publishers"]["labelled"]) == ({}, ["ann"])
    assert status["flows"] == sum(map(len, (await service.tables()).values()))


def test_a_subscriber_gets_what_either_kind_of_publisher_sends(mixed: Fabric) -> None:
    async def story() -> None:
        async with (
            mixed.server(),
            mixed.connect("ann") as ann,
            mixed.connect("bob") as bob,
            mixed.connect("cy") as cy,
            mixed.connect("ann") as near,
        ):
            low, here = await cy.subscribe("price < 100"), await near.subscribe("price < 50")
            await ann.advertise()
            before = mixed.dispatcher.operations
            await cy.subscribe("price == 777")
            assert mixed.dispatcher.operations == before  # nobody sends dz yet
            await bob.advertise("price < 500")
            assert mixed.dispatcher.operations > before
            await publish(ann, 7, 300)
            await publish(bob, 8, 99, 300)
            assert sorted(await prices(low, 3)) == [7, 8, 99]
            assert sorted(await prices(here, 2)) == [7, 8]
            sent = {each.dst[:4] for each in mixed.network.deliveries}
            assert sent == {"ff1e", "ff0e"}
            assert (cy.stats.duplicates, cy.stats.lost, cy.stats.forged) == (0, 0, 0)
            assert matcher_of(mixed, "ann") is not None
            assert matcher_of(mixed, "bob") is None
            with pytest.raises(BadInput, match="packets of host 'bob' say what is in them"):
                await bob._connection.ask(FILTERS)
            await both_are_told(mixed.dispatcher)

    asyncio.run(story())


def test_what_is_lost_is_counted_of_either_kind(mixed: Fabric) -> None:
    async def story() -> None:
        async with (
            mixed.server(),
            mixed.connect("ann") as ann,
            mixed.connect("bob") as bob,
            mixed.connect("cy") as cy,
        ):
            every = await cy.subscribe("True")
            await ann.advertise()
            await bob.advertise()
            await publish(ann, 1)
            await publish(bob, 1)
            assert await prices(every, 2) == [1, 1]
            number = 0

            def loses(host: str, payload: bytes) -> bool:
                nonlocal number
                event = b"price" in payload
                number += event
                return event and number % 4 == 0

            mixed.loses = loses
            for price in range(8):
                await publish(ann, price)
                await publish(ann, price)
                await publish(bob, price)
            await until(lambda: cy.stats.lost == 6)
            assert len(await prices(every, 18)) == 18

    asyncio.run(story())
