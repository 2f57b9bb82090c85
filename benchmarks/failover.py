"""What a pulled cable loses with detours in the switches and without, on a fat-tree of real switches.

The same network, applications and failures as in `mending`, once with fast-failover groups and once without; then with
them and thousands of decisions cached in the switches, since Open vSwitch goes over all of them when a port changes.
Lost are the events that the publisher's log has and the subscriber's has not, one a millisecond, from the order to pull
the cable on: until the detour carries, and whatever the controller does after it.
"""

from __future__ import annotations

import asyncio
import random
import statistics
from dataclasses import dataclass

from benchmarks.bench import Result, at_least, at_most, rounded
from benchmarks.mending import CALM_SECONDS, RATE, WANTED, Mending, Outage, crowded, outage_of
from benchmarks.served import served
from benchmarks.talk import Pair
from benchmarks.wire import decisions
from flowsieve.serving.collector import pass_over_what_is_there

FAILURES, LONGEST_SECONDS = 15, 200.0
FEW, MANY = 100, 5_000  # distinct events


@dataclass(frozen=True)
class Arm:
    """What one way of repairing came to."""

    outages: list[Outage]
    doubled: int
    uncounted: int  # lost events that the subscriber does not know of
    decisions: int
    groups: int
    entries: int
    rewired: int  # failures after which the trees were others


async def played(detours: bool, distinct: int) -> Arm:
    state, events = crowded(distinct=distinct)
    hosts, dice = list(state.topology.hosts), random.Random(2)
    async with asyncio.timeout(LONGEST_SECONDS), served(state, detours) as (lab, dispatcher):
        held = dispatcher.protections.values()
        groups, entries = (
            max((getattr(each, of) for each in held), default=0) for of in ("groups", "entries")
        )
        with Pair(lab, hosts[0], hosts[-1], WANTED, events, RATE) as pair:
            mending = Mending(lab, dispatcher, pair)
            await mending.until(pair.talks)
            pass_over_what_is_there()
            await asyncio.sleep(CALM_SECONDS + distinct / RATE)  # every address was seen once
            cached, failures, rewired = decisions(lab), [], 0
            for _ in range(FAILURES):
                trees = state.trees
                failures.append(await mending.fail(*dice.choice(mending.between())))
                rewired += state.trees is not trees
                while not dispatcher.protected:
                    await asyncio.sleep(0.01)
            logs = await asyncio.to_thread(pair.end)
    outages = [outage_of(failure, logs) for failure in failures]
    return Arm(
        outages, logs.doubled, max(0, len(logs.lost()) - logs.stats.lost), cached, groups, entries, rewired
    )


def figures_of(arm: Arm) -> dict[str, object]:
    lost = [1e3 * each.lost / RATE for each in arm.outages]
    until = [1e3 * each.from_order for each in arm.outages]
    return {
        "ms of events lost": {"median": rounded(statistics.median(lost)), "worst": rounded(max(lost))},
        "ms from the order to pull the cable until events arrive": {
            "median": rounded(statistics.median(until)),
            "worst": rounded(max(until)),
        },
        "failures": len(arm.outages),
        "of which trees were changed": arm.rewired,
        "cached decisions": arm.decisions,
        "groups of a switch, at most": arm.groups,
        "entries of a switch, at most": arm.entries,
    }


def run() -> Result:
    arms = {
        "with detours": asyncio.run(played(True, FEW)),
        "with detours, many cached decisions": asyncio.run(played(True, MANY)),
        "without": asyncio.run(played(False, FEW)),
    }
    first = arms["with detours"]
    return Result(
        "failover",
        {"events a second": RATE, **{name: figures_of(arm) for name, arm in list(arms.items())[:2]}},
        {"mended by the controller alone": figures_of(arms["without"])},
        {
            "failures": at_least(len(first.outages), 10),
            "ms of events lost after a pulled cable, median": at_most(
                statistics.median(1e3 * each.lost / RATE for each in first.outages), 50
            ),
            "events that came twice": at_most(sum(arm.doubled for arm in arms.values()), 0),
            "events lost and not counted by the subscriber": at_most(
                sum(arm.uncounted for arm in arms.values()), 0
            ),
        },
    )
