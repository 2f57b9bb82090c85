"""Hosts that lie, under a controller: what they may not send goes nowhere, is counted, and disturbs nobody."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Awaitable, Callable, Mapping, Sized
from typing import Any

import pytest
from daemonic import Daemonic, daemonic, ofctl
from hatchery import Hatchery
from traffic import PATIENCE, App

from flowsieve.client.event_sockets import interface_index, leave_by
from flowsieve.client.session import Client
from flowsieve.header.address import WIDTH, Prefix
from flowsieve.header.frame import UdpFrame, build
from flowsieve.protocol.addresses import EVENT_PORT
from flowsieve.southbound.openflow.wire import GUARD_COOKIE

pytestmark = pytest.mark.real

MANY = 30  # packets of a liar, of each kind: a port of a busy switch has room for all of them
FLOOD = 6000
Story = Callable[[Daemonic], Awaitable[None]]


def play(story: Story, hatchery: Hatchery, topology: str = "line:3") -> None:
    async def whole() -> None:
        async with daemonic(topology, hatchery) as there:
            await story(there)

    asyncio.run(whole())


def frame(source: str, destination: str) -> bytes:
    ends = (Prefix.parse(each).first.to_bytes(WIDTH[6] // 8) for each in (source, destination))
    return build(UdpFrame(b"\2" + bytes(5), b"\x33\x33" + bytes(4), *ends, EVENT_PORT, EVENT_PORT, b"lies"))


def lie(there: Daemonic, host: str, *frames: bytes) -> None:
    """Have a host put frames on its wire, whatever its kernel thinks of them."""
    with there.lab.inside(host), socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as wire:
        wire.bind(("eth0", 0))
        for _ in range(MANY):
            for each in frames:
                wire.send(each)


def speak(there: Daemonic, host: str, destination: str, times: int) -> None:
    """Have a host send datagrams by its own address as fast as it can."""
    with there.lab.inside(host), socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as own:
        leave_by(own, interface_index("eth0"), hops=64, loop=False)
        for _ in range(times):
            own.sendto(b"flood", (destination, EVENT_PORT))


async def refused(
    there: Daemonic, host: str, enough: Callable[[Mapping[str, int]], bool]
) -> Mapping[str, int]:
    """What status tells of a host, once it is enough."""
    async with asyncio.timeout(PATIENCE):
        while True:
            guard: Mapping[str, Any] = (await there.ask("/v1/status"))["guard"]
            found: Mapping[str, int] = guard["hosts"].get(host, {"outside": 0, "over_rate": 0})
            if enough(found):
                return found
            await asyncio.sleep(0.1)


async def listener(there: Daemonic, host: str) -> Client:
    """An application that hears all that comes to a host."""
    heard: list[Client] = []

    async def work(client: Client) -> None:
        await client.subscribe("True")
        heard.append(client)
        await asyncio.sleep(PATIENCE)

    await begun(there, host, work, heard)
    return heard[0]


async def begun(there: Daemonic, host: str, work: Callable[[Client], Awaitable[None]], sign: Sized) -> None:
    """Have an application begin, and wait for a sign of it."""
    app = App(there.lab, host, work, publishes=False, control=there.control, token=there.token(host))
    there.apps.append(app)
    async with asyncio.timeout(PATIENCE):
        while not sign:
            assert app.failure is None, app.failure
            await asyncio.sleep(0.02)


def test_what_a_host_forges_goes_nowhere_and_is_counted_also_after_a_restart(hatchery: Hatchery) -> None:
    async def story(there: Daemonic) -> None:
        await there.start()
        await there.publish("h0")
        await there.subscribe("h2", "a < 128")
        lab, liar = there.lab, "h1"
        own, other = (lab.addresses(host).ipv6 for host in (liar, "h0"))
        lies = (frame(other, "ff0e::1"), frame(own, "ff0e::2"), frame(own, "ff0e:8000::"))

        await asyncio.to_thread(lie, there, liar, *lies)
        found = await refused(there, liar, lambda each: each["outside"] >= 3 * MANY)
        assert found == {"outside": 3 * MANY, "over_rate": 0}
        before = there.tables()
        await there.stop_it(signal.SIGKILL)
        await asyncio.to_thread(lie, there, liar, *lies)  # nobody watches, and the switch holds on
        with there.watched() as watch:
            await there.start()
            await there.became_ready()
            assert watch.changes == {} and there.tables() == before
        found = await refused(there, liar, lambda each: each["outside"] >= 6 * MANY)
        assert found == {"outside": 6 * MANY, "over_rate": 0}
        told = await there.ask("/v1/status")
        assert told["guard"]["on"] and set(told["guard"]["hosts"]) == {liar}
        assert await there.judge() == 0

    play(story, hatchery)


def test_a_publisher_keeps_to_its_own_address_and_to_what_it_advertised(hatchery: Hatchery) -> None:
    async def story(there: Daemonic) -> None:
        await there.start()
        ready: list[bool] = []

        async def work(client: Client) -> None:
            await client.advertise("a < 128")
            ready.append(True)
            await asyncio.sleep(PATIENCE)

        hearing = await listener(there, "h2")
        await begun(there, "h0", work, ready)
        own, other = (there.lab.addresses(host).ipv6 for host in ("h0", "h1"))
        await asyncio.to_thread(lie, there, "h0", frame(own, "ff0e:8000::"), frame(other, "ff0e::"))
        found = await refused(there, "h0", lambda each: each["outside"] >= 2 * MANY)
        assert found == {"outside": 2 * MANY, "over_rate": 0}
        await asyncio.to_thread(lie, there, "h0", frame(own, "ff0e::"))  # nonsense, where it may speak
        async with asyncio.timeout(PATIENCE):
            while hearing.stats.malformed < MANY:
                await asyncio.sleep(0.02)
        assert hearing.stats.malformed == MANY  # and none of what was refused

    play(story, hatchery)


def test_a_flood_is_cut_to_what_was_granted_and_others_lose_nothing(hatchery: Hatchery) -> None:
    async def story(there: Daemonic) -> None:
        there.configure("guard_rate = 500")
        await there.start()
        ready: list[bool] = []

        async def work(client: Client) -> None:
            await client.advertise("True")
            ready.append(True)
            await asyncio.sleep(PATIENCE)

        await begun(there, "h0", work, ready)
        await there.publish("h1")
        await there.subscribe("h2", "a < 128")
        await asyncio.to_thread(speak, there, "h0", "ff0e:8000::", FLOOD)
        found = await refused(there, "h0", lambda each: each["over_rate"] > FLOOD // 4)
        assert found["outside"] == 0
        assert (await there.ask("/v1/status"))["guard"]["hosts"].keys() == {"h0"}
        async with asyncio.timeout(PATIENCE):
            while len(there.wanted[0].got) < 50:
                await asyncio.sleep(0.02)
        assert await there.judge() == 0

    play(story, hatchery)


def test_what_is_advertised_is_taken_in_before_it_is_acknowledged_and_after_it_ends_no_more(
    hatchery: Hatchery,
) -> None:
    async def story(there: Daemonic) -> None:
        await there.start()
        hearing, done = await listener(there, "h2"), list[int]()

        async def work(client: Client) -> None:
            for step in range(12):  # each is published from the moment on when it is acknowledged
                begin = 20 * step
                promise = await client.advertise(f"{begin} <= a < {begin + 20}")
                for b in range(20):
                    client.publish_nowait({"a": begin + b, "b": b})
                if step % 3 == 0:
                    await promise.cancel()
            done.append(client.stats.sent)
            await asyncio.sleep(PATIENCE)

        await begun(there, "h0", work, done)
        async with asyncio.timeout(PATIENCE):
            while hearing.stats.delivered < 240:
                await asyncio.sleep(0.02)
        assert hearing.stats.lost == 0
        assert (await there.ask("/v1/status"))["guard"]["hosts"] == {}
        gone = frame(there.lab.addresses("h0").ipv6, "ff0e::1")  # a and b are 0: ended long ago
        await asyncio.to_thread(lie, there, "h0", gone)
        await refused(there, "h0", lambda each: each["outside"] == MANY)
        assert hearing.stats.malformed == 0

    play(story, hatchery)


def test_a_guard_can_be_done_without(hatchery: Hatchery) -> None:
    async def story(there: Daemonic) -> None:
        there.configure("guard = false")
        await there.start()
        await there.publish("h0")
        await there.subscribe("h2", "a < 128")
        told = (await there.ask("/v1/status"))["guard"]
        assert (told["on"], told["entries"], told["hosts"]) == (False, 3, {})
        await there.stop_it(signal.SIGTERM)
        there.configure()
        await there.start()  # from none to one, and back, while events flow
        assert (await there.ask("/v1/status"))["guard"]["on"]
        await there.stop_it(signal.SIGTERM)
        there.configure("guard = false")
        await there.start()
        assert await there.judge() == 0

    play(story, hatchery)


def test_the_tables_of_an_older_version_are_taken_over_while_events_flow(hatchery: Hatchery) -> None:
    async def story(there: Daemonic) -> None:
        await there.start()
        await there.populate()
        await there.became_ready()
        before = there.tables()
        await there.stop_it(signal.SIGKILL)
        for switch in there.lab.topology.switches:
            await asyncio.to_thread(made_older, there, switch)
        older = there.tables()
        assert not any("table=1" in flow for flows in older.values() for flow in flows)
        await there.start()
        assert await there.judge() == 0
        first = [flow for flows in there.tables().values() for flow in flows if "table=1" not in flow]
        content = [
            flow for flow in first if "dl_vlan" not in flow
        ]  # what leads around dead links is elsewhere
        assert before != older and not any("output" in flow or "group" in flow for flow in content)

    play(story, hatchery, "ring:4")


def made_older(there: Daemonic, switch: str) -> None:
    """Put a switch's content entries where they were before there were two tables; no event is lost by it."""
    flows = ofctl(there.lab, switch, "--no-stats", "dump-flows", flow="table=1").splitlines()
    content = [flow.strip().replace("table=1, ", "") for flow in flows if "actions=" in flow]
    path = there.folder / f"older-{switch}"
    path.write_text("\n".join(content) + "\n")
    ofctl(there.lab, switch, "--bundle", "add-flows", flow=str(path))
    ofctl(there.lab, switch, "del-flows", flow=f"table=0,cookie={GUARD_COOKIE:#x}/-1")
    ofctl(there.lab, switch, "del-flows", flow="table=1")
