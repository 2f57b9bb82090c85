"""A host whose cable is plugged in elsewhere, on real switches under traffic: it is served there, and nobody else."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections.abc import Awaitable, Callable, Iterator

import pytest
from daemonic import DZ, RECEIVERS, Daemonic, daemonic
from hatchery import Hatchery
from traffic import PATIENCE

from flowsieve.client.control_session import ControlConnection
from flowsieve.client.inband_transport import InbandTransport
from flowsieve.errors import ControlLost
from flowsieve.lab.machine import environment

pytestmark = pytest.mark.real

LEASE = 12.0  # of clients; publishers have a fifth of it, where packets name receivers
NEW = 17  # what a switch calls the port that a cable is plugged in at
Story = Callable[[Daemonic], Awaitable[None]]


@pytest.fixture(scope="module")
def hatchery() -> Iterator[Hatchery]:
    with Hatchery() as made:
        yield made


def play(story: Story, hatchery: Hatchery, index: str) -> None:
    async def whole() -> None:
        async with daemonic("ring:4", hatchery) as there:
            there.index, there.control = index, "inband"
            there.configure(f"lease = {LEASE}\n")
            await there.start()
            await story(there)

    asyncio.run(whole())


def replug(there: Daemonic, host: str, before: str, after: str, *, out: bool = True) -> None:
    """Plug a host's cable in at another switch."""
    lab = there.lab
    end = lab.interface(lab.topology.hosts[host], host)
    words = ["ovs-vsctl", f"--db=unix:{lab.database}"]
    if out:
        words += ["del-port", lab.bridge(before), end, "--"]
    words += ["add-port", lab.bridge(after), end, "--", "set", "interface", end, f"ofport_request={NEW}"]
    subprocess.run(words, check=True, env=environment(), timeout=20)


async def known_at(there: Daemonic, host: str, switch: str) -> None:
    """Wait until the controller knows a host at a switch, and all switches have followed."""
    async with asyncio.timeout(PATIENCE):
        while (await there.ask("/v1/topology"))["hosts"][host] != switch:
            await asyncio.sleep(0.02)
    await there.became_ready()


async def came(there: Daemonic, number: int) -> None:
    """Wait until another event has come for a subscription."""
    count = len(there.wanted[number].got)
    async with asyncio.timeout(PATIENCE):
        while len(there.wanted[number].got) == count:
            await asyncio.sleep(0.02)


def missed(there: Daemonic, publisher: bytes, host: str) -> int:
    """How many events of a publisher a host missed that it had asked for, whatever excuses there are."""
    return sum(
        (publisher, number) not in got
        for wanted in there.wanted
        if wanted.host == host
        for got in [set(wanted.got)]
        for number, event in there.sent[publisher].items()
        if event.at >= wanted.since and wanted.filter.matches(event.values)
    )


async def robbed(there: Daemonic) -> None:
    """Have h3, at another port, say that it is somebody else with his token, and itself with a wrong one."""
    where = (await there.ask("/v1/topology"))["hosts"]
    replug(there, "h3", "s3", "s1")
    for host, token in (("h1", there.token("h1")), ("h3", "0" * 32)):
        transport = InbandTransport.open("eth0", inside=lambda: there.lab.inside("h3"))
        with pytest.raises(ControlLost):
            await ControlConnection(transport, host, token).ask("hello", 0.5)
        await transport.close()
    assert (await there.ask("/v1/topology"))["hosts"] == where


@pytest.mark.parametrize("index", [RECEIVERS, DZ])
def test_a_host_that_moves_publishes_and_hears_where_it_is_now_and_others_miss_nothing(
    hatchery: Hatchery, index: str
) -> None:
    """Nobody takes the place of one that is where it was, nor that of any without its token."""

    async def story(there: Daemonic) -> None:
        await there.publish("h0")
        await there.subscribe("h1", "a < 128")
        await there.publish("h2")
        await there.subscribe("h2", "b < 128")
        async with there.outage():  # in which no wire is counted
            await robbed(there)
        await there.subscribe("h3", "a >= 100")
        async with there.outage():
            replug(there, "h2", "s2", "s0")
            await known_at(there, "h2", "s0")
            for number in range(3):
                await came(there, number)
        await there.subscribe("h2", "a > 30")
        await there.subscribe("h1", "b < 60")
        if index == RECEIVERS:
            await there.stop_it(signal.SIGKILL)
            async with there.outage():  # out again while nobody looks
                replug(there, "h2", "s0", "s3")
                await there.start()
                await known_at(there, "h2", "s3")
                for number in range(5):
                    await came(there, number)
        await there.subscribe("h3", "b > 200")
        assert await there.judge() > 0  # what was under way to a cable that was out
        stayed = next(iter(there.sent))
        assert max(missed(there, stayed, host) for host in ("h1", "h3")) <= there.dropped

    play(story, hatchery, index)


def test_a_host_of_a_switch_that_has_died_is_served_at_another(hatchery: Hatchery) -> None:
    async def story(there: Daemonic) -> None:
        await there.publish("h0")
        await there.subscribe("h2", "a < 128")
        async with there.outage():
            there.lab.set_power(["s2"], on=False)
            for near in ("s1", "s3"):
                await there.down(("s2", near))
            replug(there, "h2", "s2", "s0")
            there.lab.set_link("s2", "h2", up=True)
            async with asyncio.timeout(PATIENCE):
                while (await there.ask("/v1/topology"))["hosts"]["h2"] != "s0":
                    await asyncio.sleep(0.02)
            await came(there, 0)
        await there.subscribe("h2", "b < 10")
        assert await there.compare() > 0  # it is not proved what a switch does that is away

    play(story, hatchery, RECEIVERS)
