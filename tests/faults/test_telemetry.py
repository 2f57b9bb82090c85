"""Telemetry of a network that lives: what real clients publish and get is landed, whole, also over a kill -9."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from daemonic import Daemonic, daemonic
from hatchery import Hatchery
from traffic import PATIENCE

from flowsieve.client import telemetry as module
from flowsieve.client.session import Client, connect

pytestmark = pytest.mark.real

TELEMETRY = """lease = 2
[telemetry]
mode = "{mode}"
interval = 0.1
"""
EVENTS = 60


def landed(folder: Path, kind: str) -> list[dict[str, object]]:
    """All rows of a kind; every file that has a name is whole."""
    tables = [pq.read_table(path) for path in sorted((folder / kind).glob("[!.]*.parquet"))]
    rows: list[dict[str, object]] = pa.concat_tables(tables).to_pylist() if tables else []
    return rows


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.05)


async def publish(client: Client, first: int) -> None:
    for a in range(first, first + EVENTS):
        await client.publish(a=a % 256, b=a % 7)
        await asyncio.sleep(0.002)


def test_what_clients_publish_and_get_is_landed_and_goes_on_after_the_controller_was_killed(
    hatchery: Hatchery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REPORT_SECONDS", PATIENCE)  # on a machine that has more to do

    async def story(there: Daemonic) -> None:
        there.configure(TELEMETRY.format(mode="full"))
        await there.start()
        folder = there.state / "telemetry"
        async with (
            connect("inband", "h0", there.token("h0"), inside=partial(there.lab.inside, "h0")) as ann,
            connect(
                f"unix:{there.lab.requests}", "h1", there.token("h1"), inside=partial(there.lab.inside, "h1")
            ) as bob,
        ):
            subscription = await bob.subscribe("a < 100 and b == 3")
            await ann.advertise()
            await until(lambda: subscription.checked)
            await publish(ann, 0)
            name = ann.publisher.hex()
            ids = {f"{name}-{seq}" for seq in range(1, EVENTS + 1)}
            await until(lambda: {row["id"] for row in landed(folder, "events")} == ids)
            got = {row["id"]: row for row in landed(folder, "events")}
            assert {(row["a"], row["b"], row["host"], row["weight"]) for row in got.values()} == {
                (a, a % 7, "h0", 1.0) for a in range(EVENTS)
            }
            await until(lambda: len(landed(folder, "deliveries")) == bob.stats.received > 0)
            for row in landed(folder, "deliveries"):
                event = got[row["id"]]
                assert row["host"] == "h1" and row["wanted"] == (event["b"] == 3)
            await until(lambda: total(folder, "published") == EVENTS)
            assert total(folder, "delivered") == sum(a % 7 == 3 for a in range(EVENTS))
            assert total(folder, "received") == bob.stats.received
            await until(lambda: bool(landed(folder, "subscriptions")))  # one file every few seconds
            held = landed(folder, "subscriptions")[-1]
            assert held["filter"] == "a < 100 and b == 3" and held["host"] == "h1"
            assert (folder / "index" / "0.json").exists()
            told = (await there.ask("/v1/status"))["telemetry"]
            assert told["mode"] == "full" and told["rows"]["events"] == EVENTS and not told["set_aside"]

            await there.stop_it(signal.SIGKILL)
            await publish(ann, EVENTS)  # nobody takes reports, and nothing waits for that
            await there.start()
            await publish(ann, 2 * EVENTS)
            ids = {f"{name}-{seq}" for seq in range(1, 3 * EVENTS + 1)}
            await until(lambda: {row["id"] for row in landed(folder, "events")} == ids)
            await until(lambda: total(folder, "published") == 3 * EVENTS)  # counts miss nothing
            await until(lambda: total(folder, "received") == bob.stats.received)
            events = [row["id"] for row in landed(folder, "events")]
            assert len(events) == len(set(events)) and ann.stats.unreported == 0
            versions = [path.stem for path in (folder / "subscriptions").iterdir()]
            assert len(set(map(int, versions))) == len(versions) >= 2

            there.configure(TELEMETRY.format(mode="off"))
            there.signal(signal.SIGHUP)
            await until(lambda: not ann._telemetry.terms.on and not bob._telemetry.terms.on)
            assert (await there.ask("/v1/status"))["telemetry"]["mode"] == "off"
            assert bob.stats.lost == bob.stats.overflow == 0

    async def whole() -> None:
        async with daemonic("line:2", hatchery) as there:
            await story(there)

    asyncio.run(whole())


def total(folder: Path, column: str) -> int:
    return sum(int(str(row[column])) for row in landed(folder, "counts"))
