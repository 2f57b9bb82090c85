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


async def lied(there: Daemonic, *lies: tuple[str, ...]) -> None:
    """Have h0 send labels that it may not, past its library and its matcher, until its port has refused them all."""
    before = await refused(there, "h0", lambda each: True)
    await asyncio.to_thread(lie, there, "h0", *(label(there, *hosts) for hosts in lies))
    most = before["outside"] + len(lies) * MANY
    await refused(there, "h0", lambda each: each["outside"] >= most)


def test_a_host_gets_labels_to_nobody_whom_it_may_not_address_and_loses_nothing_for_others(
    hatchery: Hatchery,
) -> None:
    """Whatever it forges, and though another policy is taken up with a restart while it publishes."""

    async def story(there: Daemonic) -> None:
        allow(there, ("h0", "h1 h2"), ("h1", "*"))
        await there.start()
        await there.publish("h0")
        await there.subscribe("h1", "a < 200")
        one, other = await listener(there, "h2"), await listener(there, "h3")
        aside = [there.apps.pop(), there.apps.pop()]  # they are lied to, and not judged by
        assert (await there.ask("/v1/status"))["publishers"]["forbidden"] == {"h0": ["h3"]}
        await lied(there, ("h3",), ("h1", "h3"), ("h0", "h3"))
        await asyncio.to_thread(lie, there, "h0", label(there, "h2"))  # nonsense, where it may speak
        async with asyncio.timeout(PATIENCE):
            while one.stats.malformed < MANY or not one.stats.delivered:
                await asyncio.sleep(0.02)
        assert (one.stats.malformed, other.stats.malformed, other.stats.received) == (MANY, 0, 0)
        await there.stop_it(signal.SIGKILL)
        allow(there, ("h0", "h1 h3"))
        await there.start()
        await there.logged("all publishers know which hosts they may address")
        await there.became_ready()
        count, already = one.stats.delivered, other.stats.delivered
        await lied(there, ("h2",), ("h1", "h2"))
        async with asyncio.timeout(PATIENCE):
            while other.stats.delivered < already + 100:
                await asyncio.sleep(0.02)
        assert one.stats.delivered <= count + 5 and one.stats.malformed == MANY  # but for what was under way
        assert (await there.ask("/v1/status"))["publishers"]["forbidden"] == {"h0": ["h2"]}
        assert await there.judge() == 0
        there.apps += aside

    play(story, hatchery)
