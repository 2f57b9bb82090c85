"""1,000 requests a second on a fat-tree of 20 real switches, and what that does to events.

Two applications talk, first while nobody asks anything, then while 400 clients subscribe and end subscriptions. Their
logs tell how long events took and whether one was lost. It lasts a minute, or as long as CHURN_SECONDS in the
environment says.
"""

from __future__ import annotations

import asyncio
import os
import time
from typing import Any

import numpy as np

from benchmarks.bench import Result, at_least, at_most, rounded
from benchmarks.campus import began, campus, clients, over_http, talking
from benchmarks.churning import Tally, at_rate

RATE, SECONDS = 1_000.0, float(os.environ.get("CHURN_SECONDS", "60"))
QUIET_SECONDS = 6.0
WAITING = 400  # clients; each asks one thing at a time
SERVED_SHARE = 0.98  # of the rate: the rest is what a client does not ask because it waits


async def churned() -> dict[str, Any]:
    tally = Tally()
    async with campus() as controller:
        with talking(controller.lab) as pair:
            quiet = await began(pair)
            await asyncio.sleep(QUIET_SECONDS)
            loud = time.monotonic()
            async with clients(controller, tally, over_http, WAITING) as some:
                before = controller.processor_seconds()
                late = await at_rate(some, tally, SECONDS, RATE)
                spent, over = controller.processor_seconds() - before, time.monotonic()
            logs = await asyncio.to_thread(pair.end)

    def quantiles(begin: float, end: float) -> dict[str, float]:
        taken = [logs.came[n] - at for n, at in logs.sent.items() if begin <= at < end and n in logs.came]
        p50, p99 = (1e3 * np.quantile(taken, [0.5, 0.99])).tolist()
        return {"events": len(taken), "p50 ms": rounded(p50), "p99 ms": rounded(p99)}

    return {
        "requests": tally.figures() | {"asked per second": RATE, "for seconds": SECONDS},
        "due while all clients waited": late,
        "controller, share of a core": rounded(spent / SECONDS),
        "requests per second of the controller's processor": rounded(len(tally.seconds) / spent),
        "events, quiet": quantiles(quiet, loud),
        "events, churn": quantiles(loud, over),
        "events lost": len(logs.lost(quiet, over)),
        "events doubled": logs.doubled,
    }


def run() -> Result:
    figures = asyncio.run(churned())
    requests = figures["requests"]
    return Result(
        "churn",
        figures,
        {},
        {
            "events lost or doubled": at_most(figures["events lost"] + figures["events doubled"], 0),
            "requests not served": at_most(requests["not served"] + requests["not answered"], 0),
            "requests served a second": at_least(requests["per second"], SERVED_SHARE * RATE),
        },
    )
