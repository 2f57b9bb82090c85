"""A controller with 10,000 subscriptions on a fat-tree of 20 real switches: from the command until it serves again.

It is killed, ended in good order, and killed with as many requests since its last snapshot as there can be, while two
applications talk. Before and after, every entry of every switch is read with its age: one that was installed anew is
younger than it was.
"""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import time
from collections.abc import Sequence
from typing import Any

from benchmarks.bench import Result, at_most, rounded
from benchmarks.campus import BUDGET, SCHEMA, advertisements, began, talking, topology
from benchmarks.daemon import controller_of
from benchmarks.loads import narrow
from benchmarks.network import subscriptions
from flowsieve.control.request import Op, Request
from flowsieve.lab.lab import Lab, running
from flowsieve.lab.machine import environment
from flowsieve.serving.daemon import SNAPSHOT_ENTRIES

SUBSCRIPTIONS = 10_000
SINCE = SNAPSHOT_ENTRIES - 2  # requests that came after a snapshot, and do not yet make it take the next
WAYS = {
    "killed": (signal.SIGKILL, 0),
    "ended": (signal.SIGTERM, 0),
    f"killed {SINCE:,} requests after its snapshot": (signal.SIGKILL, SINCE),
}
FLOW = re.compile(r"duration=([\d.]+)s.*?, (priority=.*)")
COMMAND, IMPORTED, PROCESSOR = (
    "seconds from the command",
    "of which after it was imported",
    "processor seconds",
)


def installed(lab: Lab) -> dict[tuple[str, str], float]:
    """All entries, and for how many seconds they have been there."""
    found = {}
    for switch in lab.topology.switches:
        words = ["ovs-ofctl", "-O", "OpenFlow14", "dump-flows", f"unix:{lab.management(switch)}"]
        done = subprocess.run(words, capture_output=True, text=True, env=environment(), check=True)
        for age, flow in FLOW.findall(done.stdout):
            found[switch, flow] = float(age)
    return found


def changed(before: dict[tuple[str, str], float], after: dict[tuple[str, str], float]) -> int:
    """How many entries came, went, or are younger than they were."""
    return len(before.keys() ^ after.keys()) + sum(after.get(flow, age) < age for flow, age in before.items())


def passing(there: Sequence[Request], count: int) -> list[Request]:
    """So many requests that leave nothing behind: subscriptions that come and go."""
    wanted = [request for request in there if request.op is Op.SUBSCRIBE][: count // 2]
    both = [
        (
            Request(Op.SUBSCRIBE, f"passing {number}", each.endpoint, each.filter),
            Request(Op.UNSUBSCRIBE, f"passing {number}", each.endpoint),
        )
        for number, each in enumerate(wanted)
    ]
    return [request for pair in both for request in pair]


async def restarted() -> dict[str, Any]:
    figures: dict[str, Any] = {"subscriptions": SUBSCRIPTIONS}
    with running(topology()) as lab:
        figures["switches"] = len(lab.topology.switches)
        hosts = list(lab.topology.hosts)
        there = advertisements(hosts) + subscriptions(narrow(SUBSCRIPTIONS, 0).filters(), hosts)
        async with controller_of(lab, SCHEMA, f"max_dz_per_filter = {BUDGET}") as controller:
            await controller.remember(there)
            figures["first start, with all tables to install, seconds"] = rounded(
                (await controller.start())[0]
            )
            with talking(lab) as pair:
                start = await began(pair)
                other = 0
                for name, (how, since) in WAYS.items():
                    before = await asyncio.to_thread(installed, lab)
                    await controller.end(how)
                    await controller.remember(passing(there, since))
                    seconds, told = await controller.start()
                    figures[name] = {
                        COMMAND: rounded(seconds),
                        IMPORTED: told["seconds"],
                        PROCESSOR: rounded(controller.processor_seconds()),
                    }
                    other += changed(before, await asyncio.to_thread(installed, lab))
                    if told["subscriptions"] != SUBSCRIPTIONS + 1:
                        raise RuntimeError(f"it remembers {told['subscriptions']} subscriptions")
                over = time.monotonic()
                logs = await asyncio.to_thread(pair.end)
    return figures | {
        "flows": len(before),
        "flows changed": other,
        "events": len(logs.sent),
        "events lost": len(logs.lost(start, over)),
        "events doubled": logs.doubled,
    }


def run() -> Result:
    figures = asyncio.run(restarted())
    slowest = max(figures[name][COMMAND] for name in WAYS)
    return Result(
        "restart",
        figures,
        {},
        {
            "seconds until it serves again": at_most(slowest, 5),
            "flows changed": at_most(figures["flows changed"], 0),
            "events lost or doubled": at_most(figures["events lost"] + figures["events doubled"], 0),
        },
    )
