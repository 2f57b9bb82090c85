"""Two controllers of the same real switches, each with a state of its own."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import pytest
from daemonic import Daemonic, daemonic, ended
from foreign import Foreign, foreign
from hatchery import Hatchery
from traffic import PATIENCE

from flowsieve.protocol.version import VERSION

pytestmark = pytest.mark.real

RING = "ring:4"
SWITCHES = frozenset({"s0", "s1", "s2", "s3"})
HELD = "another controller holds s0 (generation 0x"


@asynccontextmanager
async def beside(first: Foreign, hatchery: Hatchery) -> AsyncIterator[Foreign]:
    """A second controller of the same switches, to be started."""
    with TemporaryDirectory(prefix="fs-") as folder:
        second = Foreign(first.lab, Path(folder), hatchery, described=True, dialled=SWITCHES)
        second.requests, second.listen = Path(folder, "requests.sock"), f"unix:{folder}/switches.sock"
        second.configure()
        async with ended(second, 240.0) as made:
            yield made


def play(story: Callable[[Foreign, Foreign], Awaitable[None]], hatchery: Hatchery) -> None:
    async def whole() -> None:
        async with (
            foreign(RING, hatchery, described=True, dialled=SWITCHES) as first,
            beside(first, hatchery) as second,
        ):
            await story(first, second)

    asyncio.run(whole())


async def call(there: Foreign) -> httpx.Response:
    transport = httpx.AsyncHTTPTransport(uds=str(there.requests))
    who = {"session": "0" * 32, "n": 1, "host": "h1", "token": there.token("h1")}
    hello = who | {"op": "hello", "version": VERSION}
    async with httpx.AsyncClient(transport=transport, timeout=PATIENCE) as client:
        return await client.post("http://controller/v1/calls", json=hello)


async def would_change(there: Foreign, hatchery: Hatchery) -> Mapping[str, Any]:
    """What `--dry-run` says."""
    out = there.folder / "dry-run"
    started = hatchery.start(there.command("--dry-run", "--json"), out, there.folder / "dry-run-errors")
    assert await asyncio.to_thread(started.ended, PATIENCE)
    told: Mapping[str, Any] = json.loads(out.read_text())["changes"]
    return told


def with_content(there: Foreign) -> frozenset[str]:
    """The switches that hold entries for events."""
    return frozenset(
        each for each, table in there.tables().items() if any("table=1," in row for row in table)
    )


def test_a_second_controller_says_so_and_stands_by_while_events_flow(hatchery: Hatchery) -> None:
    async def story(first: Foreign, second: Foreign) -> None:
        await first.start()
        await first.populate()
        await first.became_ready()
        with first.watched() as watch:
            assert (await would_change(second, hatchery)).keys() == SWITCHES
            told = await second.start()
            assert HELD in told["standing_by"]
            health = await second.ask("/v1/ready")
            assert not health["ready"] and set(health["troubles"]) == SWITCHES
            assert all(HELD in why for why in health["troubles"].values())
            said = [each["text"] for each in second.log() if "--take-over" in each["text"]]
            assert len(said) == 1 and HELD in said[0] and str(second.state) in said[0]
            refused = await call(second)
            assert refused.status_code == 503 and HELD in refused.json()["error"]["text"]
            assert watch.changes == {}
        await first.subscribe("h3", "a < 33")
        await second.stop_it(signal.SIGTERM)
        assert await first.judge() == 0

    play(story, hatchery)


def test_a_second_controller_that_would_find_its_network_stands_by_as_well(hatchery: Hatchery) -> None:
    async def story(first: Foreign, second: Foreign) -> None:
        await first.start()
        second.described = False
        second.configure()
        with first.watched() as watch:
            assert HELD in (await second.start())["standing_by"]
            assert (await second.ask("/v1/topology"))["links"] == []
            assert watch.changes == {}
        await second.stop_it(signal.SIGTERM)
        assert "standing_by" not in await second.start("--take-over")
        assert len((await second.ask("/v1/topology"))["links"]) == 4
        await first.became_ready(False)

    play(story, hatchery)


def test_one_that_was_stopped_finds_itself_shut_out_and_stands_by(hatchery: Hatchery) -> None:
    async def story(first: Foreign, second: Foreign) -> None:
        await first.start()
        await first.publish("h1")
        await first.subscribe("h3", "a < 128")
        first.signal(signal.SIGSTOP)
        await second.start("--take-over")
        await second.became_ready()
        taken = second.tables()
        with second.watched() as watch:
            first.signal(signal.SIGCONT)
            await first.logged("another controller holds s")
            await first.became_ready(False)
            for how in (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM):  # the rest is the second one's alone
                await second.stop_it(how)
                second.begin()
                await asyncio.sleep(0.2)
                await second.stop_it(signal.SIGKILL)
                assert "standing_by" not in await second.start()
                await second.became_ready()
            await first.stop_it(signal.SIGKILL)
            assert HELD in (await first.start())["standing_by"]
            assert watch.changes == {}
        assert second.tables() == taken
        await first.stop_it(signal.SIGTERM)
        await first.start("--take-over")
        await first.became_ready()
        await second.logged("another controller holds s")
        await second.became_ready(False)
        assert (await first.ask("/v1/verify"))["holds"]

    play(story, hatchery)


def test_a_switch_that_was_away_during_the_take_over_is_taken_after_a_restart(hatchery: Hatchery) -> None:
    async def story(first: Foreign, second: Foreign) -> None:
        await first.start()
        await first.populate()
        await first.became_ready()
        await first.stop_it(signal.SIGKILL)
        assert with_content(first) == SWITCHES
        second.away = frozenset({"s2"})
        second.configure()
        second.begin("--take-over")  # it waits for the one that is away before it takes requests
        async with asyncio.timeout(PATIENCE):
            while with_content(second) != second.away:
                await asyncio.sleep(0.05)
        await second.stop_it(signal.SIGKILL)
        second.away = frozenset()
        second.configure()
        assert "standing_by" not in await second.start()
        await second.became_ready()
        assert with_content(second) == frozenset()

    play(story, hatchery)


def test_a_taken_address_ends_the_start_before_any_switch_has_heard_of_it(hatchery: Hatchery) -> None:
    async def story(first: Foreign, second: Foreign) -> None:
        await first.start()
        await first.populate()
        second.port = first.port
        second.configure()
        with first.watched() as watch:
            said = await second.failed_to_start()
            assert f"requests cannot be taken at tcp:127.0.0.1:{first.port}: " in said
            assert watch.changes == {}
        assert not second.requests.exists()
        await first.became_ready()
        assert await first.judge() == 0

    play(story, hatchery)


def test_a_second_controller_of_a_lab_does_not_start_and_a_later_one_with_a_new_state_does(
    hatchery: Hatchery,
) -> None:
    async def story(first: Daemonic, second: Daemonic) -> None:
        await first.start()
        await first.populate()
        token = first.token("h1")
        with first.watched() as watch:
            assert "another controller listens there" in await second.failed_to_start()
            assert watch.changes == {}
        assert first.token("h1") == token
        assert await first.judge() == 0
        await first.stop_it(signal.SIGKILL)
        told = await second.start()
        assert told["subscriptions"] == 0 and "standing_by" not in told
        await second.became_ready()

    async def whole() -> None:
        async with daemonic(RING, hatchery) as first:
            with TemporaryDirectory(prefix="fs-") as folder:
                async with ended(Daemonic(first.lab, Path(folder), hatchery), 240.0) as second:
                    await story(first, second)

    asyncio.run(whole())
