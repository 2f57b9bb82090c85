"""Clients on the hosts of a lab: real sockets, real switches, real packets."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from place import Place, play, take, until

from flowsieve.client import event_sockets as sockets
from flowsieve.client.interests import Subscription
from flowsieve.client.session import connect
from flowsieve.lab.blueprint import HOST_INTERFACE
from flowsieve.lab.namespace import send_whole_checksums

pytestmark = pytest.mark.real


@pytest.mark.parametrize("header", ["ipv6", "ipv4"])
def test_events_reach_all_applications_that_want_them_once_and_exactly(tmp_path: Path, header: str) -> None:
    random = Random(3)
    events = [{"price": random.randrange(1024), "side": random.choice(["buy", "sell"])} for _ in range(300)]

    async def story(there: Place) -> None:
        ann, bob, bob_too, near = [await there.client(host) for host in ("ann", "bob", "bob", "ann")]
        cheap = await bob.subscribe("price < 50")
        sales = await bob_too.subscribe("side == 'sell' and price < 700")
        some = await bob_too.subscribe("100 < price < 200")
        local = await near.subscribe("price >= 900")
        own = await ann.subscribe("True")
        await ann.advertise()
        await until(lambda: all(each.checked for each in (cheap, sales, some, local)))
        for event in events:
            assert await ann.publish(event) > 0
            await asyncio.sleep(0.0005)
        wanted: list[tuple[Subscription, Callable[[Any], bool]]] = [
            (cheap, lambda e: e["price"] < 50),
            (sales, lambda e: e["side"] == "sell" and e["price"] < 700),
            (some, lambda e: 100 < e["price"] < 200),
            (local, lambda e: e["price"] >= 900),
        ]
        for subscription, wants in wanted:
            expected = [event for event in events if wants(event)]
            got = await take(subscription, len(expected))  # switches may change the order
            assert sorted(map(repr, got)) == sorted(map(repr, expected))
            assert subscription.waiting == 0
        assert own.waiting == 0
        for client in (bob, bob_too, near):
            counts = client.stats
            assert (counts.duplicates, counts.malformed, counts.lost, counts.overflow, counts.unchecked) == (
                0,
            ) * 5
        assert bob.stats.received < len(events)  # the switches have dropped the rest
        assert near.stats.received == len(events)

    play(tmp_path, story, header)


@pytest.mark.parametrize("header", ["ipv6", "ipv4"])
def test_events_of_hosts_that_leave_checksums_to_a_card_that_is_none_arrive(
    tmp_path: Path, header: str
) -> None:
    async def story(there: Place) -> None:
        for host in ("ann", "bob"):
            with there.lab.inside(host):
                send_whole_checksums([HOST_INTERFACE], whole=False)
        ann, bob = [await there.client(host) for host in ("ann", "bob")]
        cheap = await bob.subscribe("price < 512")
        await ann.advertise()
        await until(lambda: cheap.checked)
        for price in range(100):
            await ann.publish({"price": price, "side": "buy"}, data=bytes(price * 8))
            if price % 5 == 4:  # a burst to new addresses could be too much for a busy switch
                await until(lambda sent=price + 1: bob.stats.delivered == sent)
        assert len(await take(cheap, 100)) == 100
        assert (bob.stats.lost, bob.stats.malformed, bob.stats.overflow) == (0, 0, 0)

    play(tmp_path, story, header)


def test_what_the_wire_loses_is_counted_exactly_the_last_events_too(tmp_path: Path) -> None:
    async def story(there: Place) -> None:
        ann, bob, cy = [await there.client(host) for host in ("ann", "bob", "cy")]
        cheap, dear = await bob.subscribe("price < 512"), await cy.subscribe("price >= 512")
        await ann.advertise()
        await until(lambda: cheap.checked and dear.checked)
        await ann.publish(price=1, side="buy")
        await ann.publish(price=1000, side="buy")
        await take(cheap, 1)
        await take(dear, 1)
        there.lab.set_link("s2", "bob", up=False)
        for price in (2, 3, 900, 4):
            await ann.publish(price=price, side="sell")
        assert await take(dear, 1) == [{"price": 900, "side": "sell"}]
        there.lab.set_link("s2", "bob", up=True)
        await until(lambda: bob.stats.lost == 3)
        await ann.publish(price=5, side="buy")
        assert await take(cheap, 1) == [{"price": 5, "side": "buy"}]
        await ann.publish(price=6, side="buy")
        assert await take(cheap, 1) == [{"price": 6, "side": "buy"}]
        assert (bob.stats.lost, cy.stats.lost) == (3, 0)

    play(tmp_path, story)


def test_while_subscriptions_come_and_go_nothing_promised_is_missing_and_nothing_is_claimed_to_be(
    tmp_path: Path,
) -> None:
    random = Random(5)

    async def story(there: Place) -> None:
        ann, bob = await there.client("ann"), await there.client("bob")
        await ann.advertise()
        sent: dict[int, int] = {}

        async def publish() -> None:
            while True:
                for _ in range(8):
                    price = random.randrange(1024)
                    sent[ann.publish_nowait({"price": price, "side": "buy"})] = price
                await asyncio.sleep(0.003)

        publishing = asyncio.create_task(publish())
        for _ in range(12):
            low = random.randrange(15)
            prices = range(low * 64, random.randrange(low + 1, 17) * 64)
            subscription = await bob.subscribe(f"{prices.start} <= price < {prices.stop}")
            first = len(sent)
            await asyncio.sleep(random.random() * 0.2)  # more is sent, before and after losses are counted
            due = {seq for seq in range(first + 1, len(sent) + 1) if sent[seq] in prices}
            got: set[int] = set()
            async with asyncio.timeout(20):
                while not due <= got:
                    got.add((await anext(subscription)).seq)
            await subscription.cancel()
        publishing.cancel()
        assert bob.stats.duplicates == 0
        assert bob.stats.lost == 0

    play(tmp_path, story)


def test_what_finds_no_room_in_the_receive_buffer_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets, "RECEIVE_BUFFER", 1 << 16)

    async def story(there: Place) -> None:
        ann, near = await there.client("ann"), await there.client("ann")
        everything = await near.subscribe("True")
        await ann.advertise()
        await until(lambda: everything.checked)
        await ann.publish(price=1, side="buy")
        await take(everything, 1)
        for _ in range(1000):
            ann.publish_nowait({"price": 1, "side": "buy"})  # `near` has no turn in between
        await until(lambda: near.stats.lost > 0)
        assert near.stats.lost == near.stats.overflow
        assert near.stats.delivered + near.stats.lost == 1001

    play(tmp_path, story)


def test_interests_end_with_their_context_and_with_the_client(tmp_path: Path) -> None:
    async def story(there: Place) -> None:
        ann, bob = await there.client("ann"), await there.client("bob")
        await ann.advertise()
        async with await bob.subscribe("True") as everything:
            await ann.publish(price=1, side="buy")
            assert len(await take(everything, 1)) == 1
        async with connect(there.control, "cy", inside=partial(there.lab.inside, "cy")) as cy:
            other = await cy.subscribe("True")
            await ann.publish(price=2, side="buy")
            assert len(await take(other, 1)) == 1
        assert [event async for event in everything] == []
        assert [event async for event in other] == []
        assert bob.stats.received == 1

    play(tmp_path, story)


def test_the_commands_publish_and_subscribe(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "flowsieve.cli"]
    (tmp_path / "events.csv").write_text("price,side\n10,buy\n60,buy\n20,sell\n")

    async def story(there: Place) -> None:
        def start(host: str, *words: str) -> subprocess.Popen[str]:
            told = {"FLOWSIEVE_CONTROL": there.control, "FLOWSIEVE_HOST": host}
            pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
            return there.lab.exec(host, [*command, *words], env={**os.environ, **told}, **pipes)

        async def outcome(process: subprocess.Popen[str]) -> tuple[int, str, str]:
            out, err = await asyncio.to_thread(process.communicate, timeout=40)
            return process.returncode, out, err

        cheap = start("bob", "sub", "price < 50", "--count", "2", "--timeout", "40", "--stats")
        assert cheap.stderr is not None
        assert "subscribed on bob" in await asyncio.to_thread(cheap.stderr.readline)
        published = await outcome(start("ann", "pub", "--from", str(tmp_path / "events.csv"), "--json"))
        assert published[0] == 0, published
        assert published[1].startswith('{"published": 3')
        status, out, err = await outcome(cheap)
        assert (status, out.splitlines()) == (0, ["price=10 side=buy", "price=20 side=sell"])
        assert "delivered=2" in err and "lost=0" in err

    play(tmp_path, story)
