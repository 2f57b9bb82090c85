"""The controller killed at random, a hundred times: `make soak KILLS=100`.

A round is a lab of its own, under traffic and a burst of requests, whose controller is killed ten times and started
again, also while it starts; then once more while nobody asks anything, when not one flow may change. A line of JSON
per round tells what happened to it.
"""

from __future__ import annotations

import asyncio
import random
import signal
import sys
import time

from burst import bursting
from campaign import campaign
from daemonic import Daemonic, daemonic
from hatchery import Hatchery

TOPOLOGIES = ("ring:6", "line:4", "ring:9", "grid:3,3")
KILLS_A_ROUND = 10
ROUND_SECONDS = 480.0


async def one_round(seed: int, kills: int, hatchery: Hatchery) -> dict[str, object]:
    """A lab, some kills, the judgement."""
    dice = random.Random(seed)
    topology = dice.choice(TOPOLOGIES)
    async with daemonic(topology, hatchery, seconds=ROUND_SECONDS) as there:
        await there.start()
        await there.populate()
        answered, again, starts = 0, 0, []
        left = kills
        while left:
            async with bursting(there, dice) as burst:
                for _ in range(dice.randint(1, min(left, 3))):
                    starts.append(await killed(there, dice))
                    left -= 1
            await burst.check()
            answered, again = answered + burst.answered, again + burst.again
        await there.became_ready()
        with there.watched() as watch:
            await there.stop_it(signal.SIGKILL)
            await there.start()
            await there.became_ready()
            assert watch.changes == {}, watch.changes
        lost = await there.judge()
        return {
            "seed": seed,
            "topology": topology,
            "kills": kills + 1,
            "answered": answered,
            "asked_again": again,
            "longest_start": round(max(starts), 2),
            "events": sum(map(len, there.sent.values())),
            "lost": lost,
            "outside_outages": len(there.missed),
            "dropped_by_queues": there.dropped,
            "dropped": there.machine_dropped.to_json(),
        }


async def killed(there: Daemonic, dice: random.Random) -> float:
    """Kill it at some moment of a burst, perhaps again while it starts; how many seconds its last start took."""
    await asyncio.sleep(dice.uniform(0.0, 0.8))
    await there.stop_it(signal.SIGKILL)
    if dice.random() < 0.3:
        there.begin()
        await asyncio.sleep(dice.uniform(0.0, 1.5))
        await there.stop_it(signal.SIGKILL)
    begin = time.monotonic()
    await there.start()
    return time.monotonic() - begin


if __name__ == "__main__":
    sys.exit(campaign(__doc__, "kills", 100, KILLS_A_ROUND, one_round))
