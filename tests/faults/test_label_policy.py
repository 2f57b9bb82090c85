"""The operator says which hosts a publisher may address, and real switches hold it to that, whatever it sends."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterator

import pytest
from daemonic import RECEIVERS, Daemonic, daemonic
from hatchery import Hatchery
from test_guard import MANY, frame, lie, listener, refused
from traffic import PATIENCE

from flowsieve.header.receivers import ReceiverLabels
from flowsieve.header.tag import POOLS
from flowsieve.network.host_places import HostPlaces

pytestmark = pytest.mark.real

LEASE = 15.0  # of clients; publishers have a fifth of it
Story = Callable[[Daemonic], Awaitable[None]]


@pytest.fixture(scope="module")
def hatchery() -> Iterator[Hatchery]:
    with Hatchery() as made:
        yield made


def play(story: Story, hatchery: Hatchery) -> None:
    async def whole() -> None:
        async with daemonic("ring:4", hatchery) as there:
            there.index = RECEIVERS
            await story(there)

    asyncio.run(whole())


def allow(there: Daemonic, *rules: tuple[str, str]) -> None:
    """Have the controller let hosts address others, once it is started anew."""
    told = "".join(
        f"[[policy.may_send]]\nfrom = {sender.split()}\nto = {receivers.split()}\n"
        for sender, receivers in rules
    )
    there.configure(f"lease = {LEASE}\n{told}")


def label(there: Daemonic, *hosts: str) -> bytes:
    """A packet of h0 that names some hosts."""
    places = HostPlaces().extended(there.lab.topology)
    (address,) = ReceiverLabels(POOLS["receivers"][0], places.sets, places.number_bits).texts(hosts)
    return frame(there.lab.addresses("h0").ipv6, address)


def test_a_forged_label_gets_to_nobody_whom_its_sender_may_not_address(hatchery: Hatchery) -> None:
    async def story(there: Daemonic) -> None:
        allow(there, ("h0", "h1 h2"), ("h1", "*"))
        await there.start()
        await there.publish("h0")
        allowed, forbidden = await listener(there, "h1"), await listener(there, "h3")
        told = await there.ask("/v1/status")
        assert told["publishers"]["forbidden"] == {"h0": ["h3"]}
        for start in range(2):  # it is the same after a restart
            lies = label(there, "h3"), label(there, "h1", "h3"), label(there, "h0", "h3")
            await asyncio.to_thread(lie, there, "h0", *lies)
            await refused(there, "h0", lambda each, many=3 * MANY * (start + 1): each["outside"] >= many)  # type: ignore[misc]
            await asyncio.to_thread(lie, there, "h0", label(there, "h1"))  # nonsense, where it may speak
            async with asyncio.timeout(PATIENCE):
                while allowed.stats.malformed < MANY * (start + 1):
                    await asyncio.sleep(0.02)
            assert (allowed.stats.malformed, forbidden.stats.malformed) == (MANY * (start + 1), 0)
            if not start:
                await there.stop_it(signal.SIGKILL)
                await there.start()
                await there.became_ready()
        assert forbidden.stats.delivered == forbidden.stats.received == 0 < allowed.stats.delivered
        assert (await there.ask("/v1/verify"))["holds"]

    play(story, hatchery)


def test_another_policy_is_taken_up_with_a_restart_and_costs_nobody_else_an_event(hatchery: Hatchery) -> None:
    async def story(there: Daemonic) -> None:
        allow(there, ("h0", "h1 h2"))
        await there.start()
        await there.publish("h0")
        await there.subscribe("h1", "a < 200")
        before, after = await listener(there, "h2"), await listener(there, "h3")
        async with asyncio.timeout(PATIENCE):
            while not before.stats.delivered:
                await asyncio.sleep(0.02)
        await there.stop_it(signal.SIGKILL)
        allow(there, ("h0", "h1 h3"))
        await there.start()
        await there.logged("all publishers know which hosts they may address")
        await there.became_ready()
        count, already = before.stats.delivered, after.stats.delivered
        async with asyncio.timeout(PATIENCE):
            while after.stats.delivered < already + 100:
                await asyncio.sleep(0.02)
        assert before.stats.delivered <= count + 5  # what was under way
        assert (await there.ask("/v1/status"))["publishers"]["forbidden"] == {"h0": ["h2"]}
        assert await there.judge() == 0

    play(story, hatchery)
