"""Faults at random, one after the other, for as long as asked: `make soak MINUTES=60 SEED=7`.

Each round is a lab of its own under traffic; a line of JSON per round tells what happened to it. In every other one
faults meet, and the controller's process is killed among them. The seed of a round that failed repeats its choices,
though not the machine's timing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import time
import traceback

from breakages import FAULTS, LASTING
from hatchery import Hatchery
from meetings import one_meeting
from world import world

TOPOLOGIES = ("ring:6", "line:4", "ring:9", "grid:3,3", "fat-tree:4")
MOST_FAULTS = 5


async def one_round(seed: int) -> dict[str, object]:
    """A lab, some faults, the judgement."""
    dice = random.Random(seed)
    topology = dice.choice(TOPOLOGIES)
    faults = dice.choices(FAULTS, k=dice.randint(1, MOST_FAULTS))
    if dice.random() < 0.2 and not topology.startswith("line"):  # which would fall apart
        faults.append(dice.choice(LASTING))
    detours = dice.random() < 0.5
    told: dict[str, object] = {
        "topology": topology,
        "faults": [f.__name__ for f in faults],
        "detours": detours,
    }
    async with world(topology, seconds=90 + 30 * len(faults), detours=detours) as there:
        await there.populate()
        for fault in faults:
            await asyncio.sleep(dice.uniform(0, 0.5))
            await fault(there, dice)
        hosts = sorted(set(there.lab.topology.hosts) - there.cut_off)
        await there.subscribe(dice.choice(hosts), "a < 100")
        await asyncio.sleep(0.5)
        lost = await there.judge()
        sent = sum(map(len, there.sent.values()))
        return told | {
            "events": sent,
            "lost": lost,
            "outside_outages": len(there.missed),
            "dropped_by_queues": there.dropped,
            "dropped": there.machine_dropped.to_json(),
            "subscriptions": len(there.wanted),
        }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    asked = parser.parse_args()
    end, rounds, failed = time.monotonic() + 60 * asked.minutes, 0, 0
    with Hatchery() as hatchery:
        while time.monotonic() < end:
            seed = asked.seed + rounds
            start = time.monotonic()
            try:
                told = asyncio.run(one_meeting(seed, hatchery) if rounds % 2 else one_round(seed))
            except Exception as error:  # whatever it was, the next round starts afresh
                failed += 1
                traceback.print_exc()
                told = {"failed": f"{type(error).__name__}: {error}"}
            rounds += 1
            told |= {"seed": seed, "seconds": round(time.monotonic() - start, 1)}
            print(json.dumps(told), flush=True)
    print(json.dumps({"rounds": rounds, "failed": failed, "first_seed": asked.seed}), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
