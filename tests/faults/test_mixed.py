"""Hosts that send labels and hosts that send dz in one network, on real switches under traffic, with faults."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Iterator

import pytest
from daemonic import DZ, Daemonic, daemonic
from hatchery import Hatchery
from test_guard import MANY, refused, speak

pytestmark = pytest.mark.real

LEASE = 10.0  # of clients; publishers have a fifth of it
LABEL, CELL = "ff1e:0f00::", "ff0e:8000::"  # what one kind of host may send, and the other


@pytest.fixture(scope="module")
def hatchery() -> Iterator[Hatchery]:
    with Hatchery() as made:
        yield made


def choose_sets(there: Daemonic, *sets: list[str]) -> None:
    (there.folder / "sets.json").write_text(json.dumps({"sets": sets}))


def test_both_go_on_while_the_controller_is_killed_and_a_link_is_pulled(hatchery: Hatchery) -> None:
    async def story(there: Daemonic) -> None:
        await there.publish("h0")
        await there.publish("h2")
        for number, host in enumerate(("h1", "h3", "h0", "h2")):
            await there.subscribe(host, f"{30 * number} <= a < {30 * number + 120}")
        assert there.matcher_of("h0") is not None
        assert there.matcher_of("h2") is None
        for host, address in (("h2", LABEL), ("h0", CELL)):  # what the other kind of host may send
            speak(there, host, address, MANY)
            told = await refused(there, host, lambda host: host["outside"] >= MANY)
            assert told["outside"] == MANY
        before = await there.ask("/v1/flows")
        assert {flow["dst"][:9] for flow in before if flow["dst"] > "ff1"} == {
            "ff1e::/ff",
            "ff1e:1000",
        }  # two sets
        assert "other_sets" not in (await there.ask("/v1/status"))["publishers"]
        await there.stop_it(signal.SIGKILL)
        choose_sets(there, ["h1"], ["h0", "h3"])  # which may not change under those who use them
        await there.start()
        await there.logged("are not those in force, which stay")
        assert await there.ask("/v1/flows") == before
        assert "state folder" in (await there.ask("/v1/status"))["publishers"]["other_sets"]
        await there.subscribe("h3", "b < 100")
        edges = (await there.ask("/v1/topology"))["trees"][0]["edges"]
        async with there.outage():
            there.lab.set_link(*edges[0], up=False)
            await there.down(edges[0])
            await there.became_ready()
        await there.subscribe("h1", "b >= 100")
        assert {flow["dst"][:4] for flow in await there.ask("/v1/flows")} == {"ff0e", "ff1e"}
        told = (await there.ask("/v1/status"))["publishers"]
        assert (told["behind"], told["labelled"]) == ({}, ["h0"])
        assert await there.judge() < 1000

    async def whole() -> None:
        async with daemonic("ring:4", hatchery) as there:
            there.index = f'{DZ}\nlabels = ["h0", "gate-*"]\nsets = "sets.json"'
            choose_sets(there, ["h3", "h0"], ["h1", "gone"])
            there.configure(f"lease = {LEASE}\nfailover = false")
            await there.start()
            await story(there)

    asyncio.run(whole())
