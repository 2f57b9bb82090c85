"""A long campaign of faults: rounds of so many each, until all are done or time is over, a line of JSON for each."""

from __future__ import annotations

import argparse
import asyncio
import json
import time
import traceback
from collections.abc import Awaitable, Callable

from hatchery import Hatchery

Round = Callable[
    [int, int, Hatchery], Awaitable[dict[str, object]]
]  # by its seed and the number of its faults


def campaign(about: str | None, what: str, most: int, at_once: int, one_round: Round) -> int:
    """Play rounds of `at_once` faults until `most` are through, unless the command line says otherwise.

    The exit status: 1 if a round failed.
    """
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument(f"--{what}", dest="most", type=int, default=most)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    asked = parser.parse_args()
    end, left, rounds, failed = time.monotonic() + 60 * asked.minutes, asked.most, 0, 0
    with Hatchery() as hatchery:
        while left > 0 and time.monotonic() < end:
            seed, start, count = asked.seed + rounds, time.monotonic(), min(left, at_once)
            try:
                told = asyncio.run(_played(one_round, seed, count, hatchery))
            except Exception as error:  # whatever it was, the next round starts afresh
                failed += 1
                traceback.print_exc()
                told = {"seed": seed, "failed": f"{type(error).__name__}: {error}"}
            rounds, left = rounds + 1, left - count
            print(json.dumps(told | {"seconds": round(time.monotonic() - start, 1)}), flush=True)
    told = {"rounds": rounds, "failed": failed, what: asked.most - left, "first_seed": asked.seed}
    print(json.dumps(told), flush=True)
    return 1 if failed else 0


async def _played(one_round: Round, seed: int, count: int, hatchery: Hatchery) -> dict[str, object]:
    return await one_round(seed, count, hatchery)
