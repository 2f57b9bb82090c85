"""Networks of real switches that go over to other plans again and again, with faults: `make soak TRANSITIONS=20`.

A round is a lab of its own, under traffic, with subscriptions that come and go, that goes over to another plan five
times; on most
ways the controller is killed, or a link is pulled, or a switch loses its controller, or a publisher hears nothing. The
publishers' logs judge. A line of JSON per round tells what happened to it.
"""

from __future__ import annotations

import asyncio
import random
import signal
import sys
import time
from collections import Counter

from campaign import campaign
from daemonic import Daemonic, daemonic
from hatchery import Hatchery
from proxy import Proxy
from traffic import PATIENCE

from flowsieve.content.schema import Schema
from flowsieve.index.plan import plan_to_json
from flowsieve.index.plans.regular import RegularPlan

TOPOLOGIES = ("ring:6", "line:4", "grid:3,2")
A_ROUND = 5
ROUND_SECONDS = 480.0
LEASE = 20.0
SCHEMA = Schema.parse({name: {"type": "int", "min": 0, "max": 255} for name in ("a", "b")})
FAULTS = ("none", "kill", "kill", "link", "deaf", "rollback")


async def one_round(seed: int, transitions: int, hatchery: Hatchery) -> dict[str, object]:
    """A lab, some transitions, the judgement."""
    dice = random.Random(seed)
    topology = dice.choice(TOPOLOGIES)
    async with daemonic(topology, hatchery, seconds=ROUND_SECONDS) as there:
        there.configure(f"lease = {LEASE}")
        await there.start()
        wire = Proxy(there.folder / "proxy", there.lab.requests)
        await wire.start()
        there.controls["h0"] = f"unix:{wire.path}"
        took, faults = [], Counter[str]()
        try:
            await there.populate()
            for _ in range(transitions):
                fault = dice.choice(FAULTS)
                faults[fault] += 1
                async with asyncio.TaskGroup() as both:
                    filters = [f"{low} <= a < {low + 40}" for low in dice.sample(range(0, 250, 10), 6)]
                    both.create_task(there.come_and_go(f"h{dice.randrange(1, 4)}", *filters))
                    took.append(await gone_over(there, dice, fault, wire))
            lost = await there.judge()
        finally:
            await wire.stop()
        return {
            "seed": seed,
            "topology": topology,
            "transitions": transitions,
            "faults": dict(faults),
            "index": (await there.ask("/v1/index"))["version"],
            "longest": round(max(took), 2),
            "events": sum(map(len, there.sent.values())),
            "lost": lost,
            "outside_outages": len(there.missed),
            "dropped_by_queues": there.dropped,
            "dropped": there.machine_dropped.to_json(),
        }


async def gone_over(there: Daemonic, dice: random.Random, fault: str, wire: Proxy) -> float:
    """Have the network go over, and something go wrong on the way; how many seconds it took."""
    plan = RegularPlan.make(
        SCHEMA, bits=dice.randint(2, 14), dimensions=dice.choice((["a"], ["b"], ["b", "a"]))
    )
    method = dice.choice(("light-weight", "light-weight", "versioning"))
    begin = time.monotonic()
    async with asyncio.timeout(
        PATIENCE + 4 * LEASE
    ):  # bursts are of clients that never say what index they know
        while "error" in (
            told := await there.operate("/v1/index", {"plan": plan_to_json(plan), "method": method})
        ):
            assert "no tag is free" in told["error"]["text"], told
    wire.block(fault == "deaf")
    await asyncio.sleep(dice.uniform(0.0, 0.6))
    if fault == "kill":
        await there.stop_it(signal.SIGKILL)
        await there.start()
    elif fault == "rollback":
        await there.operate("/v1/index", {"rollback": True})
    elif fault == "link" and there.lab.topology.links:
        link = dice.choice(there.lab.topology.links)
        async with there.outage():
            there.lab.set_link(link.a, link.b, up=False)
            await there.down((link.a, link.b))
            await asyncio.sleep(dice.uniform(0.0, 0.3))
            there.lab.set_link(link.a, link.b, up=True)
            await there.became_ready()
    async with asyncio.timeout(PATIENCE):
        while (await there.ask("/v1/index"))["crossing"] is not None:
            await asyncio.sleep(0.02)
    wire.block(False)
    async with asyncio.timeout(PATIENCE):
        while (await there.ask("/v1/index"))["behind"]:
            await asyncio.sleep(0.02)
    return time.monotonic() - begin


if __name__ == "__main__":
    sys.exit(campaign(__doc__, "transitions", 20, A_ROUND, one_round))
