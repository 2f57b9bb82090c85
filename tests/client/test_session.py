"""A client's session: what it promises its application, over a network in this process."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fabric import Fabric, until

from flowsieve.client import control_session as control_module
from flowsieve.client import digest_timer as quiet
from flowsieve.client.interests import Subscription
from flowsieve.client.session import Client, connect
from flowsieve.control.requests.ledger import FIRST_STAGE
from flowsieve.errors import BadFilter, BadInput, BadValue, ControlLost, HostError, OtherVersion, Refused
from flowsieve.protocol.event_message import decode, encode
from flowsieve.protocol.limits import LONGEST_LEASE, MAX_NUMBER
from flowsieve.serving.calls import key_rotation as rotation_module

SECONDS = 30.0
LEASE = 0.4  # seconds, for controllers that are to forget soon


def play(fabric: Any, story: Callable[[Client, Client], Awaitable[None]]) -> None:
    """Two applications, one on `ann` and one on `bob`."""

    async def whole() -> None:
        async with (
            asyncio.timeout(SECONDS),
            fabric.server(),
            fabric.connect("ann") as ann,
            fabric.connect("bob") as bob,
        ):
            await story(ann, bob)

    asyncio.run(whole())


async def take(subscription: Subscription, count: int) -> list[Any]:
    async with asyncio.timeout(SECONDS):
        return [(await anext(subscription)).values["price"] for _ in range(count)]


def test_an_event_arrives_with_all_that_was_said(fabric: Fabric) -> None:
    async def story(ann: Client, bob: Client) -> None:
        cheap = await bob.subscribe("price < 50")
        await ann.advertise("price < 500")
        assert await ann.publish(price=10, side="buy", data=b"more") == 1
        assert await ann.publish({"price": 60, "side": "buy"}) == 2
        assert ann.publish_nowait({"price": 20, "side": "sell"}) == 3
        event = await anext(cheap)
        assert (event.values, event.data) == ({"price": 10, "side": "buy"}, b"more")
        assert (event.publisher, event.seq) == (ann.publisher, 1)
        assert await take(cheap, 1) == [20]
        assert (ann.stats.sent, bob.stats.delivered, bob.stats.lost) == (3, 2, 0)

    play(fabric, story)


def test_each_subscription_of_an_application_gets_its_own(fabric: Fabric) -> None:
    async def story(ann: Client, bob: Client) -> None:
        cheap, all_of_it = await bob.subscribe("price < 50"), await bob.subscribe("True")
        await ann.advertise()
        for price in (10, 600, 20):
            await ann.publish(price=price, side="buy")
        assert await take(all_of_it, 3) == [10, 600, 20]
        assert await take(cheap, 2) == [10, 20]
        assert cheap.waiting == 0
        assert cheap.id != all_of_it.id

    play(fabric, story)


def test_a_bad_event_is_not_sent(fabric: Fabric) -> None:
    async def story(ann: Client, bob: Client) -> None:
        with pytest.raises(BadValue, match="nothing is advertised"):
            await ann.publish(price=1, side="buy")
        promise = await ann.advertise("price < 500")
        for values, wrong in (
            ({"price": 2000, "side": "buy"}, "price = 2000 is outside the range"),
            ({"price": "1", "side": "buy"}, "price = '1' is not a number"),
            ({"price": 1}, "side is missing"),
            ({"price": 700, "side": "buy"}, "lies outside what is advertised"),
        ):
            with pytest.raises(BadValue, match=wrong):
                await ann.publish(values)
        await promise.cancel()
        with pytest.raises(BadValue, match="nothing is advertised"):
            await ann.publish(price=1, side="buy")
        assert ann.stats.sent == 0
        assert fabric.state.advertisements == {}

    play(fabric, story)


def test_a_bad_filter_is_told_and_nothing_is_asked(fabric: Fabric) -> None:
    async def story(ann: Client, bob: Client) -> None:
        with pytest.raises(BadFilter, match="did you mean 'price'"):
            await bob.subscribe("prise < 5")
        with pytest.raises(BadFilter):
            await ann.advertise("price <")
        with pytest.raises(BadInput, match="a queue of 0 events"):
            await bob.subscribe("True", queue=0)
        assert (fabric.state.subscriptions, fabric.state.advertisements) == ({}, {})

    play(fabric, story)


def test_what_is_refused_leaves_no_trace(fabric: Fabric, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(self: object, request: object, origin: object, **options: object) -> None:
        raise Refused("not today")

    async def story(ann: Client, bob: Client) -> None:
        everything = await bob.subscribe("True")
        monkeypatch.setattr("flowsieve.control.dispatcher.Dispatcher.submit", refuse)
        with pytest.raises(Refused, match="not today"):
            await bob.subscribe("price < 50")
        monkeypatch.undo()
        await ann.advertise()
        await ann.publish(price=1, side="buy")
        assert await take(everything, 1) == [1]
        assert bob.stats.delivered == 1

    play(fabric, story)


def test_leaving_a_context_ends_an_interest_and_iteration(fabric: Fabric) -> None:
    async def story(ann: Client, bob: Client) -> None:
        async with await ann.advertise(), await bob.subscribe("True") as everything:
            await ann.publish(price=1, side="buy")
            await ann.publish(price=2, side="buy")
            async for event in everything:
                assert event.values["price"] == 1
                break
            await until(lambda: everything.waiting == 1)
        assert [event.values["price"] async for event in everything] == [2]
        assert (fabric.state.subscriptions, fabric.state.advertisements) == ({}, {})
        await everything.cancel()

    play(fabric, story)


def test_a_reader_that_waits_is_woken_by_the_end(fabric: Fabric) -> None:
    async def story(ann: Client, bob: Client) -> None:
        everything = await bob.subscribe("True")

        async def read() -> list[object]:
            return [event async for event in everything]

        reader = asyncio.create_task(read())
        await asyncio.sleep(0)
        await everything.cancel()
        assert await reader == []

    play(fabric, story)


def test_a_full_queue_drops_and_counts(fabric: Fabric) -> None:
    async def story(ann: Client, bob: Client) -> None:
        few, many = await bob.subscribe("True", queue=2), await bob.subscribe("True")
        await ann.advertise()
        for price in range(5):
            await ann.publish(price=price, side="buy")
        assert await take(many, 5) == [0, 1, 2, 3, 4]
        assert await take(few, 2) == [0, 1]
        assert few.overflow == bob.stats.overflow == 3
        assert bob.stats.delivered == 7

    play(fabric, story)


def test_second_copies_are_not_seen(fabric: Fabric) -> None:
    async def story(ann: Client, bob: Client) -> None:
        fabric.copies = 2
        everything = await bob.subscribe("True")
        await ann.advertise()
        for price in range(3):
            await ann.publish(price=price, side="buy")
        assert await take(everything, 3) == [0, 1, 2]
        await until(lambda: bob.stats.duplicates == 3)
        assert everything.waiting == 0

    play(fabric, story)


def test_other_applications_of_the_host_hear_it_and_the_publisher_does_not(fabric: Fabric) -> None:
    async def story(ann: Client, bob: Client) -> None:
        async with fabric.connect("ann") as near:
            own, others = await ann.subscribe("True"), await near.subscribe("price < 50")
            await ann.advertise()
            for price in (1, 100, 2):
                await ann.publish(price=price, side="buy")
            assert await take(others, 2) == [1, 2]
            assert own.waiting == 0
            assert near.stats.lost == 0

    play(fabric, story)


def test_the_loss_of_the_last_event_shows_after_a_while(
    fabric: Fabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quiet, "QUIET_SECONDS", 0.01)

    async def story(ann: Client, bob: Client) -> None:
        everything = await bob.subscribe("price < 512")
        await ann.advertise()
        await ann.publish(price=1, side="buy")
        fabric.loses = lambda host, payload: True
        await ann.publish(price=2, side="buy")
        await ann.publish(price=3, side="buy")
        fabric.loses = lambda host, payload: False
        await until(lambda: bob.stats.lost == 2)
        assert await take(everything, 1) == [1]

    play(fabric, story)


def test_a_publisher_that_leaves_says_how_much_it_has_sent(fabric: Fabric) -> None:
    async def story(ann: Client, bob: Client) -> None:
        everything = await bob.subscribe("True")
        async with fabric.connect("cy") as cy:
            await cy.advertise()
            await cy.publish(price=1, side="buy")
            fabric.loses = lambda host, payload: True
            await cy.publish(price=2, side="buy")
            fabric.loses = lambda host, payload: False
        await until(lambda: bob.stats.lost == 1)
        assert await take(everything, 1) == [1]
        assert fabric.state.advertisements == {}

    play(fabric, story)


def test_nonsense_on_the_wire_is_counted(fabric: Fabric) -> None:
    async def story(ann: Client, bob: Client) -> None:
        everything = await bob.subscribe("True")
        for payload in (b"", b"hello", bytes(1400), b"\x98\1\0 of another version"):
            fabric.say("bob", payload)
        await ann.advertise()
        await ann.publish(price=1, side="buy")
        assert await take(everything, 1) == [1]
        assert bob.stats.malformed == 4

    play(fabric, story)


def test_nobody_notices_that_the_controller_restarts(fabric: Fabric) -> None:
    async def story() -> None:
        async with AsyncExitStack() as clients:
            async with fabric.server(lease=LEASE):
                ann = await clients.enter_async_context(fabric.connect("ann"))
                bob = await clients.enter_async_context(fabric.connect("bob"))
                everything = await bob.subscribe("True")
                await ann.advertise()
            await ann.publish(price=1, side="buy")
            asked = asyncio.create_task(bob.subscribe("price < 5"))
            await asyncio.sleep(2 * LEASE)
            assert not asked.done()
            async with fabric.server(lease=LEASE):
                cheap = await asked
                await ann.publish(price=2, side="buy")
                await asyncio.sleep(2 * LEASE)
                await ann.publish(price=3, side="buy")
                assert await take(everything, 3) == [1, 2, 3]
                assert await take(cheap, 2) == [2, 3]
                await clients.aclose()
        assert fabric.state.subscriptions == fabric.state.advertisements == {}

    asyncio.run(story())


def test_a_client_that_falls_silent_is_forgotten_and_told_when_it_speaks_again(fabric: Fabric) -> None:
    async def story() -> None:
        async with fabric.server(lease=LEASE), fabric.connect("ann") as ann:
            async with fabric.connect("bob") as bob:
                everything = await bob.subscribe("True")
                renewing = bob._connection._renewing
                assert renewing is not None
                renewing.cancel()
                await until(lambda: not fabric.state.subscriptions)
                bob._connection.keep(LEASE)
                with pytest.raises(ControlLost, match="had not heard of us for too long"):
                    await take(everything, 1)
                with pytest.raises(ControlLost):
                    bob.publish_nowait({"price": 1, "side": "buy"})
            await ann.advertise()

    asyncio.run(story())


@pytest.mark.parametrize("lease", [5.0, 301.0, LONGEST_LEASE])
def test_a_session_is_renewed_whatever_its_lease(
    fabric: Fabric, monkeypatch: pytest.MonkeyPatch, lease: float
) -> None:
    monkeypatch.setattr(control_module, "RENEWALS", lease / 0.01)
    renewals: list[float] = []

    async def story() -> None:
        async with fabric.server(lease=lease), fabric.connect("ann") as ann:
            everything = await ann.subscribe("True")
            call = ann._connection._transport.call

            async def watched(message: Mapping[str, Any]) -> Mapping[str, Any]:
                answer = await call(message)
                assert "ok" in answer, answer
                renewals.append(message["deadline"])
                return answer

            ann._connection._transport.call = watched  # type: ignore[method-assign]
            await until(lambda: len(renewals) > 2)
            assert not ann._connection.lost.done()
            await everything.cancel()

    asyncio.run(story())
    assert set(renewals[:3]) == {min(lease, 30.0)}  # the time that a client waits


def _give_up_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients wait for a controller for no more than a moment."""
    monkeypatch.setattr("flowsieve.client.session.HELLO_SECONDS", 0.05)
    monkeypatch.setattr("flowsieve.client.session.MARGIN_SECONDS", 0.05)


def test_where_no_controller_is_there_is_help(
    fabric: Fabric, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _give_up_soon(monkeypatch)

    async def enter(control: str | None = None, host: str | None = None) -> None:
        async with connect(control, host):
            pass

    with pytest.raises(ControlLost, match=r"no controller at unix:.*; start one with `flowsieve controller`"):
        asyncio.run(enter(f"unix:{tmp_path}/nothing", "ann"))
    with pytest.raises(ControlLost, match=r"no controller at http://127\.0\.0\.1:1"):
        asyncio.run(enter("http://127.0.0.1:1", "ann"))
    with pytest.raises(BadInput, match="is no address"):
        asyncio.run(enter("here", "ann"))
    for variable in ("FLOWSIEVE_CONTROL", "FLOWSIEVE_HOST"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(BadInput, match="the controller is not known: give it, or set FLOWSIEVE_CONTROL"):
        asyncio.run(enter(None, "ann"))
    with pytest.raises(BadInput, match="set FLOWSIEVE_HOST"):
        asyncio.run(enter("unix:x"))


def test_a_client_of_another_version_is_told(fabric: Fabric, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = r"the client speaks version 3 .* and the controller version 2; install the same release"
    monkeypatch.setattr("flowsieve.protocol.call.VERSION", 3)

    async def story() -> None:
        async with fabric.server():
            with pytest.raises(BadInput, match=wrong):
                async with fabric.connect("ann"):
                    pass

    asyncio.run(story())


def test_a_controller_of_another_version_is_told(fabric: Fabric, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = r"the client speaks version 2 .* and the controller version 3; install the same release"
    monkeypatch.setattr("flowsieve.protocol.welcome.VERSION", 3)

    async def story() -> None:
        async with fabric.server():
            with pytest.raises(OtherVersion, match=wrong):
                async with fabric.connect("ann"):
                    pass

    asyncio.run(story())


def test_the_environment_says_where_we_are(fabric: Fabric, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOWSIEVE_CONTROL", fabric.control)
    monkeypatch.setenv("FLOWSIEVE_HOST", "bob")

    async def story() -> None:
        async with fabric.server(), connect(wire=fabric.wire) as client:
            assert client.host == "bob"
            assert client.schema == fabric.state.plan.schema
        with pytest.raises(BadInput, match="no host 'bo'; did you mean 'bob'"):
            async with fabric.server(), connect(host="bo", wire=fabric.wire):
                pass

    asyncio.run(story())


@pytest.mark.parametrize("answer", [b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n[]", b"{}\n", b""])
def test_what_is_no_controller_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: bytes
) -> None:
    _give_up_soon(monkeypatch)
    monkeypatch.setattr(control_module, "BYE_SECONDS", 0.05)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await reader.read(1 if answer else -1)
        writer.close()

    async def story() -> None:
        path = tmp_path / "control"
        async with await asyncio.start_unix_server(talk, str(path)):
            with pytest.raises(ControlLost, match=r"controller"):
                async with connect(f"unix:{path}", "ann"):
                    pass

    asyncio.run(story())


def test_a_host_without_the_interface_is_told(tmp_path: Path) -> None:
    """Without the network of this process: real sockets, on a machine that is no host."""
    fabric = Fabric(f"unix:{tmp_path / 'control'}")

    async def story() -> None:
        async with fabric.server(interface="no-such-wire"):
            with pytest.raises(HostError, match="there is no interface 'no-such-wire' here"):
                async with connect(fabric.control, "ann"):
                    pass

    asyncio.run(story())


# Keys.


def test_keys_are_changed_while_events_flow_and_the_controller_restarts(
    fabric: Fabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rotation_module, "DRAIN_SECONDS", 0.05)
    monkeypatch.setattr(rotation_module, "LOOK_SECONDS", 0.01)
    fabric.rotation = 0.01

    async def story() -> None:
        async with AsyncExitStack() as clients:
            prices: list[int] = []

            async def publish_until(stage: int) -> None:
                async with asyncio.timeout(SECONDS):
                    while fabric.ledger.key_stage < stage:
                        await ann.publish(price=len(prices) % 1024, side="buy")
                        prices.append(len(prices) % 1024)
                        await asyncio.sleep(0.005)

            async with fabric.server(lease=LEASE):
                ann = await clients.enter_async_context(fabric.connect("ann"))
                bob = await clients.enter_async_context(fabric.connect("bob"))
                everything = await bob.subscribe("True")
                await ann.advertise()
                await publish_until(FIRST_STAGE + 3)
            await ann.publish(price=0, side="sell")
            prices.append(0)
            async with fabric.server(lease=LEASE):
                cy = await clients.enter_async_context(fabric.connect("cy"))
                late = await cy.subscribe("True")
                since = len(prices)
                await publish_until(fabric.ledger.key_stage + 3)
                assert await take(everything, len(prices)) == prices
                assert await take(late, len(prices) - since) == prices[since:]
                for each in (bob, cy):
                    assert (each.stats.forged, each.stats.lost, each.stats.duplicates) == (0, 0, 0)
                await clients.aclose()

    asyncio.run(story())


def test_without_keys_every_datagram_is_believed(fabric: Fabric) -> None:
    fabric.signed = False

    async def story(ann: Client, bob: Client) -> None:
        everything = await bob.subscribe("True")
        await ann.advertise()
        await ann.publish(price=1, side="buy")
        assert await take(everything, 1) == [1]
        assert ann._sender.signer is None and bob._inbox.checker is None

    play(fabric, story)


def test_absurd_counts_end_no_session_even_where_nothing_is_signed(fabric: Fabric) -> None:
    fabric.signed = False

    async def story() -> None:
        async with fabric.server(lease=LEASE), fabric.connect("ann") as ann, fabric.connect("bob") as bob:
            everything = await bob.subscribe("True")
            await ann.advertise()
            await ann.publish(price=1, side="buy")
            (digest,) = map(decode, (each.payload for each in ann._sender._outbox.digests()))
            for birth in range(2, 9):  # seven counts, which together are more than any call can say
                stamps = (MAX_NUMBER, birth) * (len(digest.stamps) // 2)
                fabric.say("bob", encode(replace(digest, stamps=stamps)))
            await until(lambda: bob.stats.lost > MAX_NUMBER)
            strange = "flowsieve_client_reports_strange_total"
            await until(lambda: (fabric.metrics.registry.get_sample_value(strange) or 0) > 1)
            await ann.publish(price=2, side="buy")
            assert await take(everything, 2) == [1, 2]

    asyncio.run(story())


def test_when_the_controller_begins_to_have_events_signed_sessions_are_told_to_begin_anew(
    fabric: Fabric,
) -> None:
    async def story() -> None:
        fabric.signed = False
        async with AsyncExitStack() as clients:
            async with fabric.server(lease=LEASE):
                bob = await clients.enter_async_context(fabric.connect("bob"))
                everything = await bob.subscribe("True")
            fabric.signed = True
            async with fabric.server(lease=LEASE):
                with pytest.raises(BadInput, match="event_mac was changed; begin another session"):
                    await take(everything, 1)

    asyncio.run(story())


def test_whatever_comes_in_a_session_goes_on(fabric: Fabric) -> None:
    dice = random.Random(11)
    payloads: list[bytes] = []

    def mangled(host: str, payload: bytes) -> bool:
        payloads.append(payload)
        return False

    async def story(ann: Client, bob: Client) -> None:
        everything = await bob.subscribe("True")
        await ann.advertise()
        fabric.loses = mangled
        await ann.publish(price=1, side="buy")
        for _ in range(1000):
            junk = bytearray(dice.choice(payloads) if dice.random() < 0.7 else dice.randbytes(60))
            for _ in range(dice.randrange(1, 4)):
                junk[dice.randrange(len(junk))] = dice.randrange(256)
            fabric.say("bob", bytes(junk[: dice.choice([len(junk), dice.randrange(len(junk))])]))
            await asyncio.sleep(0)
        await ann.publish(price=2, side="buy")
        assert await take(everything, 2) == [1, 2]
        assert bob.stats.forged > 50 < bob.stats.malformed
        assert bob.stats.lost == 0

    play(fabric, story)
