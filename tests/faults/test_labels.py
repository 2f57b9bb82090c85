"""Packets that say for whom they are, on real switches under traffic: matchers, controllers and links that fail."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest
from daemonic import BLOOM, RECEIVERS, Daemonic, daemonic
from hatchery import Hatchery
from proxy import Proxy
from traffic import PATIENCE

pytestmark = pytest.mark.real

LEASE = 15.0  # of clients; publishers have a fifth of it
Story = Callable[[Daemonic], Awaitable[None]]


@pytest.fixture(params=[RECEIVERS, BLOOM], ids=["receivers", "bloom"])
def index(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


def play(
    story: Story, hatchery: Hatchery, index: str = RECEIVERS, more: str = "", lease: float = LEASE
) -> None:
    async def whole() -> None:
        async with daemonic("ring:4", hatchery) as there:
            there.index = index
            there.configure(f"lease = {lease}\n{more}")
            await there.start()
            await story(there)

    asyncio.run(whole())


def test_subscriptions_that_come_under_traffic_get_all_they_want_and_change_no_table_of_receivers(
    hatchery: Hatchery,
) -> None:
    async def story(there: Daemonic) -> None:
        await there.publish("h0")
        await there.publish("h2")
        with there.watched() as watch:
            for number in range(12):
                await there.subscribe(f"h{number % 4}", f"{20 * number} <= a < {20 * number + 90}")
            assert watch.changes == {}
        told = await there.ask("/v1/status")
        assert told["publishers"]["behind"] == {}
        assert await there.judge() == 0

    play(story, hatchery, RECEIVERS)


def test_filters_that_come_and_go_and_cover_others_lose_nothing_of_these(
    hatchery: Hatchery,
) -> None:
    async def story(there: Daemonic) -> None:
        await there.publish("h0")
        await there.publish("h2")
        await there.subscribe("h1", "a < 60", "a < 60 and b < 60")
        await there.subscribe("h3", "b < 50")
        for host in ("h1", "h3"):
            await there.come_and_go(host, "a < 128", "a < 100 or b < 100", "True")
        await there.subscribe("h3", "a < 90")
        await there.came_to_rest()
        assert (await there.ask("/v1/verify"))["holds"]
        assert await there.judge() == 0

    play(story, hatchery, BLOOM)


def test_a_link_that_is_pulled_is_bridged_or_mended_for_labels_too(hatchery: Hatchery, index: str) -> None:
    async def pulled(there: Daemonic, trees: int) -> None:
        await there.publish("h0")
        for host in ("h1", "h2", "h3"):
            await there.subscribe(host, "a < 128")
        found = (await there.ask("/v1/topology"))["trees"]
        assert len(found) == trees
        edges = found[0]["edges"]
        async with there.outage():
            there.lab.set_link(*edges[0], up=False)
            await there.down(edges[0])
            await there.became_ready()
        await there.subscribe("h2", "b < 100")
        assert (await there.ask("/v1/verify"))["holds"]
        assert await there.judge() < 1000

    if index == RECEIVERS:  # the second time in sets of hosts, each with a tree of its own
        play(partial(pulled, trees=1), hatchery, index)
        play(partial(pulled, trees=3), hatchery, index, more="failover = false\n[control]\npartitions = 3\n")
    else:
        play(partial(pulled, trees=1), hatchery, index, more="failover = false")


def test_a_matcher_that_is_stopped_holds_up_a_subscription_no_longer_than_it_has_to(
    hatchery: Hatchery,
) -> None:
    """Should it send labels past its lease, its port drops them; they are let in again when it has caught up."""

    async def story(there: Daemonic) -> None:
        await there.publish("h0")
        await there.subscribe("h1", "a < 128")
        pid = there.matcher_of("h0")
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        try:
            begin = time.monotonic()
            await there.subscribe("h2", "a < 100")
            assert time.monotonic() - begin < LEASE  # a fifth of it, and a margin
            assert "h0" in (await there.ask("/v1/status"))["publishers"]["behind"]
        finally:
            os.kill(pid, signal.SIGCONT)
        await there.subscribe("h3", "a < 50")
        assert await there.judge() == 0

    play(story, hatchery, RECEIVERS)


def test_another_matcher_takes_the_place_of_one_that_was_killed_under_traffic(
    hatchery: Hatchery, index: str
) -> None:
    async def story(there: Daemonic) -> None:
        await there.publish("h0")
        await there.subscribe("h1", "a < 128")
        for number in range(3 if index == RECEIVERS else 1):
            async with asyncio.timeout(PATIENCE):
                while (pid := there.matcher_of("h0")) is None:
                    await asyncio.sleep(0.05)
            os.kill(pid, signal.SIGKILL)
            await there.subscribe("h2", f"a < {60 + number}")
            came = len(there.wanted[0].got)
            async with asyncio.timeout(PATIENCE):
                while len(there.wanted[0].got) == came:  # what waited leaves when another one is there
                    await asyncio.sleep(0.02)
        assert await there.judge() == 0

    play(story, hatchery, index, lease=5.0)  # each of them waits until the leases of the one before are over


def test_a_controller_killed_between_telling_publishers_and_acknowledging_breaks_no_promise(
    hatchery: Hatchery, index: str
) -> None:
    async def story(there: Daemonic) -> None:
        await there.publish("h0")
        await there.subscribe("h1", "a < 128")
        pid = there.matcher_of("h0")
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)  # so the next subscription is told and not acknowledged
        try:
            asked = asyncio.create_task(there.subscribe("h2", "a < 100"))
            await asyncio.sleep(0.3)
            await there.stop_it(signal.SIGKILL)
        finally:
            os.kill(pid, signal.SIGCONT)
        await there.start()
        await asked
        await there.subscribe("h3", "b < 100")
        assert await there.judge() == 0

    play(story, hatchery, index)


def test_applications_of_a_host_share_a_matcher_however_they_reach_the_controller(hatchery: Hatchery) -> None:
    async def story(there: Daemonic) -> None:
        await there.publish("h0")
        await there.subscribe("h1", "a < 128")
        there.controls["h0"] = "inband"
        await there.publish("h0")
        with there.lab.inside("h0"):
            names = Path("/proc/thread-self/net/unix").read_text()
        doors = {line.split()[-1] for line in names.splitlines() if "flowsieve-matcher" in line}
        assert len(doors) == 1 and there.matcher_of("h0") is not None
        assert (await there.ask("/v1/status"))["publishers"]["behind"] == {}
        assert await there.judge() == 0

    play(story, hatchery)


def test_a_publisher_that_is_cut_off_waits_past_its_lease_and_holds_nobody_up_longer(
    hatchery: Hatchery,
) -> None:
    """Its processes are alive; first nobody hears of the cut, then they do, and the controller is killed meanwhile."""

    async def story(there: Daemonic) -> None:
        proxy = Proxy(there.folder / "proxy", there.lab.requests)
        await proxy.start()
        there.controls["h0"] = f"unix:{proxy.path}"
        await there.publish("h0")
        await there.subscribe("h1", "a < 128")
        for cut, filter in ((proxy.hang, "a < 100"), (proxy.block, "a < 50")):
            await there.became_ready()
            cut(True)
            begin = time.monotonic()
            if cut == proxy.block:
                await there.stop_it(signal.SIGKILL)
                await there.start()
            await there.subscribe("h2", filter)
            assert time.monotonic() - begin < LEASE  # a fifth of it, and a margin; not until the session ends
            assert "h0" in (await there.ask("/v1/status"))["publishers"]["behind"]
            count = len(there.wanted[0].got)
            await asyncio.sleep(0.5)
            assert len(there.wanted[0].got) == count  # it waits
            cut(False)
            async with asyncio.timeout(PATIENCE):
                while len(there.wanted[0].got) == count:  # and what waited leaves
                    await asyncio.sleep(0.02)
        await there.subscribe("h3", "a < 50")
        assert await there.judge() == 0
        assert sum(app.stats.late for app in there.apps) == 0
        await proxy.stop()

    play(story, hatchery)
