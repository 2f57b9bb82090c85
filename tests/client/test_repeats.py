"""Under a plan whose parts overlap an event is sent once to each part that holds it; an application sees it once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pandas as pd
import pytest
from fabric import SCHEMA, Fabric, until

from flowsieve.client.session import Client
from flowsieve.index.plan import plan_to_json
from flowsieve.index.plans.selective import SelectivePlan

PLAN = SelectivePlan.make(SCHEMA, [{"price": (0, 599)}, {"price": (400, 999)}], bits=8)
PRICES = (10, 450, 590, 700, 1010)  # in the first part, twice in both, in the second, in none
REQUESTS = """\
op,id,host,filter
adv,all,ann,True
sub,wide,bob,price < 1020
sub,low,cy,price < 300
"""
under_the_plan = pytest.mark.parametrize("fabric", [PLAN], indirect=True)


def play(fabric: Fabric, story: Callable[[Client, Client, Client], Awaitable[None]]) -> None:
    """An application on each of `ann`, `bob` and `cy`."""

    async def whole() -> None:
        async with asyncio.timeout(30), fabric.server():
            ann, bob, cy = (fabric.connect(host) for host in ("ann", "bob", "cy"))
            async with ann as one, bob as two, cy as three:
                await story(one, two, three)

    asyncio.run(whole())


@under_the_plan
def test_the_application_gets_one_copy_and_the_library_counts_the_others(fabric: Fabric) -> None:
    async def story(ann: Client, bob: Client, cy: Client) -> None:
        wide, low = await bob.subscribe("price < 1020"), await cy.subscribe("price < 300")
        await ann.advertise()
        for price in PRICES:
            await ann.publish(price=price, side="buy")
        assert [(await anext(wide)).values["price"] for _ in PRICES] == list(PRICES)
        await until(lambda: bob.stats.received == len(PRICES) + 2)
        assert (bob.stats.repeats, bob.stats.duplicates, wide.waiting) == (2, 0, 0)
        assert (await anext(low)).values["price"] == 10
        assert (cy.stats.repeats, low.waiting) == (0, 0)
        assert bob.stats.lost == cy.stats.lost == 0

    play(fabric, story)


@under_the_plan
def test_one_of_the_copies_is_enough(fabric: Fabric) -> None:
    async def story(ann: Client, bob: Client, cy: Client) -> None:
        wide = await bob.subscribe("True")
        await ann.advertise()
        copies: list[bytes] = []

        def loses_the_first(host: str, payload: bytes) -> bool:
            copies.append(payload)
            return len(copies) == 1

        fabric.loses = loses_the_first
        await ann.publish(price=450, side="buy")
        assert (await anext(wide)).values["price"] == 450
        assert (len(copies), bob.stats.repeats, wide.waiting) == (2, 0, 0)

    play(fabric, story)


def test_a_run_reports_the_other_copies_as_repeats(scene: Any, flowsieve: Callable[..., Any]) -> None:
    scene.write("plan.json", json.dumps(plan_to_json(PLAN)))
    scene.replace("bits = 11\nmax_dz_per_filter = 0", 'plan = "plan.json"')
    scene.write("requests.csv", REQUESTS)
    rows = "".join(f"e{price},ann,{price},buy\n" for price in PRICES)
    scene.write("events.csv", f"id,host,price,side\n{rows}")
    out = scene.folder / "out"
    answer = flowsieve("run", scene.scenario, "--network", "embedded", "--out", out, "--json")
    assert answer.status == 0, answer.err
    report = answer.json
    assert (report["repeats"], report["duplicates"], report["false_negatives"]) == (2, 0, 0)
    deliveries = pd.read_csv(out / "deliveries.csv", dtype=str)
    copies = deliveries[deliveries["host"] == "bob"].groupby("event")["dst"].nunique().to_dict()
    assert copies == {"e10": 1, "e450": 2, "e590": 2, "e700": 1, "e1010": 1}
    sent = pd.read_csv(out / "packets.csv", dtype=str)["event"].value_counts().to_dict()
    assert sent == copies
    matches = pd.read_csv(out / "matches.csv", dtype=str)
    assert not matches.duplicated().any()
    assert sorted(matches[matches["subscription"] == "wide"]["event"]) == sorted(copies)
