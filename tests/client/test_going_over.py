"""Clients go over to another index while events are published, and applications notice nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from fabric import SCHEMA, Fabric, until

from flowsieve.client import control_session as control_module
from flowsieve.client.interests import Subscription
from flowsieve.client.session import Client
from flowsieve.content.schema import Schema
from flowsieve.header.encoding import PrefixEncoding
from flowsieve.header.tag import POOLS
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.protocol.event_message import MessageKind, decode
from flowsieve.protocol.notice import IndexNotice, encode

SECONDS = 30.0
_, NEW_TAG, THIRD_TAG = POOLS["ipv6"]
PLAN = RegularPlan.make(SCHEMA, bits=5, dimensions=["side", "price"])


def play(fabric: Fabric, story: Callable[[Client, Client], Awaitable[None]], lease: float = 1000.0) -> None:
    """Two applications, one on `ann` and one on `bob`; with such a lease, nobody renews by itself."""

    async def whole() -> None:
        async with (
            asyncio.timeout(SECONDS),
            fabric.server(lease),
            fabric.connect("ann") as ann,
            fabric.connect("bob") as bob,
        ):
            await story(ann, bob)

    asyncio.run(whole())


async def take(subscription: Subscription, count: int) -> list[Any]:
    async with asyncio.timeout(SECONDS):
        return [(await anext(subscription)).values["price"] for _ in range(count)]


def watch(fabric: Fabric, host: str) -> list[str]:
    """The tags of the events that come to a host from now on."""
    seen: list[str] = []

    def note(to: str, payload: bytes) -> bool:
        message = decode(payload)
        if to == host and message.kind is MessageKind.EVENT:
            encodings = (fabric.encoding, PrefixEncoding(NEW_TAG))
            (tag,) = (str(each.tag.group) for each in encodings if message.dz(each) is not None)
            seen.append(tag)
        return False

    fabric.loses = note
    return seen


def versions(fabric: Fabric) -> list[int | None]:
    holders = fabric.dispatcher.holders
    return sorted((holders.version_of(session) for session in fabric.ledger.sessions), key=str)


def test_a_notice_has_publisher_and_subscriber_go_over_at_once(fabric: Fabric) -> None:
    async def story(ann: Client, bob: Client) -> None:
        cheap = await bob.subscribe("price < 50")
        await ann.advertise()
        seen = watch(fabric, "bob")
        await ann.publish(price=1, side="buy")
        fabric.go_over(NEW_TAG, PLAN)
        assert await fabric.dispatcher.holders.reached(1, SECONDS) == frozenset()
        await until(lambda: versions(fabric) == [1, 1])
        for price in (2, 700, 3):
            await ann.publish(price=price, side="sell")
        assert await take(cheap, 3) == [1, 2, 3]
        assert (seen[0], set(seen[1:])) == ("ff0e::/16", {"ff15::/16"})
        assert bob.stats.lost == bob.stats.malformed == bob.stats.duplicates == 0

    play(fabric, story)


def test_where_the_notice_is_lost_the_next_call_does_it(fabric: Fabric) -> None:
    fabric.deaf = True

    async def story(ann: Client, bob: Client) -> None:
        cheap = await bob.subscribe("price < 50")
        await ann.advertise("price < 500")
        fabric.go_over(NEW_TAG, PLAN)
        seen = watch(fabric, "bob")
        await ann.publish(price=1, side="buy")
        await ann.advertise("price >= 500")  # any call brings the index
        await ann.publish(price=2, side="buy")
        assert await take(cheap, 2) == [1, 2]
        assert seen == ["ff0e::/16", "ff15::/16"]
        assert bob.stats.lost == 0 and bob.stats.unchecked == 1  # bob does not know yet what it is owed there
        assert await fabric.dispatcher.holders.reached(1, SECONDS) == frozenset()  # ann says so by itself

    play(fabric, story)


def test_without_notices_a_renewal_does_it(fabric: Fabric) -> None:
    fabric.deaf = True

    async def story(ann: Client, bob: Client) -> None:
        await bob.subscribe("price < 50")
        await ann.advertise()
        fabric.go_over(NEW_TAG, PLAN)
        await until(lambda: versions(fabric) == [1, 1])

    play(fabric, story, lease=1.0)


def test_losses_under_the_new_index_are_counted_and_none_is_made_up(fabric: Fabric) -> None:
    async def story(ann: Client, bob: Client) -> None:
        cheap, sells = await bob.subscribe("price < 50"), await bob.subscribe("side == 'sell'")
        await ann.advertise()
        await ann.publish(price=1, side="buy")
        fabric.go_over(NEW_TAG, PLAN)
        await until(lambda: versions(fabric) == [1, 1])
        fabric.loses = lambda host, payload: host == "bob" and decode(payload).seq in (2, 6)
        for price in (2, 3, 4):  # the first under the new index is lost
            await ann.publish(price=price, side="sell")
        await cheap.cancel()
        late = await bob.subscribe("price > 1000")
        for price in (1019, 1020, 1021):
            await ann.publish(price=price, side="sell")
        assert await take(sells, 4) == [3, 4, 1019, 1021]
        assert await take(late, 2) == [1019, 1021]
        await until(lambda: bob.stats.lost == 2)
        assert bob.stats.unchecked == 0

    play(fabric, story)


def test_a_late_publishers_events_are_sent_again_and_handed_on_once(fabric: Fabric) -> None:
    fabric.deaf = True

    async def story(ann: Client, bob: Client) -> None:
        cheap = await bob.subscribe("price < 50")
        await ann.advertise()
        await ann.publish(price=1, side="buy")
        fabric.go_over(NEW_TAG, PLAN)
        await fabric.fence()
        for price in (2, 600, 3):
            await ann.publish(price=price, side="buy")
        assert await take(cheap, 3) == [1, 2, 3]
        late = fabric.behind.late
        assert late.counters.again == late.counters.received - late.counters.digests == 3
        ann._quiet.close()  # it tells how much it has sent
        await until(lambda: late.counters.digests > 0)
        fabric.deaf = False
        await ann.publish(price=4, side="buy")  # ann is told, and goes over
        await until(lambda: None not in versions(fabric) and 0 not in versions(fabric))
        await ann.publish(price=5, side="buy")
        assert await take(cheap, 2) == [4, 5]
        assert late.counters.again == 4 and late.counters.unsent == late.counters.foreign == 0
        assert bob.stats.lost == bob.stats.duplicates == bob.stats.forged == 0

    play(fabric, story)


def test_numbers_go_on_and_digests_of_the_old_index_are_sent_once_more(fabric: Fabric) -> None:
    async def story(ann: Client, bob: Client) -> None:
        everything = await bob.subscribe("True")
        await ann.advertise()
        fabric.loses = lambda host, payload: host == "bob" and decode(payload).seq == 2
        await ann.publish(price=1, side="buy")
        fabric.loses = lambda host, payload: decode(payload).kind is MessageKind.EVENT
        await ann.publish(price=2, side="buy")
        fabric.go_over(NEW_TAG, PLAN)
        await until(lambda: versions(fabric) == [1, 1])
        fabric.loses = lambda host, payload: False
        assert await ann.publish(price=3, side="buy") == 3
        assert [(await anext(everything)).seq for _ in range(2)] == [1, 3]
        await until(lambda: bob.stats.lost == 1)

    play(fabric, story)


def test_several_changes_follow_each_other_and_a_tag_may_come_back(fabric: Fabric) -> None:
    async def story(ann: Client, bob: Client) -> None:
        everything = await bob.subscribe("True")
        await ann.advertise()
        for version, tag in enumerate((NEW_TAG, THIRD_TAG, NEW_TAG), 1):
            await ann.publish(price=version, side="buy")
            fabric.go_over(tag, RegularPlan.make(SCHEMA, bits=3 + version))
            await until(lambda version=version: versions(fabric) == [version, version])  # type: ignore[misc]
        await ann.publish(price=9, side="buy")
        assert await take(everything, 4) == [1, 2, 3, 9]
        assert bob.stats.lost == bob.stats.unchecked == 0

    play(fabric, story)


def test_a_client_whose_schema_is_not_the_indexs_goes_on_with_what_it_has(fabric: Fabric) -> None:
    async def story(ann: Client, bob: Client) -> None:
        everything = await bob.subscribe("True")
        await ann.advertise("price < 500")
        other = Schema.parse({"price": {"type": "int", "min": 0, "max": 2047}})
        fabric.go_over(NEW_TAG, RegularPlan.make(other, bits=5))
        await ann.advertise("price >= 500")
        await ann.publish(price=1, side="buy")
        assert await take(everything, 1) == [1]
        assert ann._connection.index == 0 and not ann._connection.lost.done()

    fabric.deaf = True
    play(fabric, story)


def test_notices_that_lie_have_a_client_ask_no_more_than_a_few_times_a_second(
    fabric: Fabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    ask = control_module.ControlConnection.ask

    async def counted(self: Any, op: str, *args: Any, **fields: Any) -> Any:
        asked.append(op)
        return await ask(self, op, *args, **fields)

    monkeypatch.setattr("flowsieve.client.session.NOTICE_SECONDS", 1000.0)

    async def story(ann: Client, bob: Client) -> None:
        ann._noticed_at = float("-inf")
        monkeypatch.setattr(control_module.ControlConnection, "ask", counted)
        for version in range(200):
            for hear in fabric.notices["ann"]:
                hear(encode(IndexNotice(version)))
                hear(b"nonsense")
        await until(lambda: "renew" in asked)
        await ann.advertise()
        assert asked.count("renew") == 1
        assert ann._connection.index == 0

    play(fabric, story)
