"""From a cable that is pulled until events arrive again, and what was lost meanwhile, on a fat-tree of real switches.

One application publishes an event a millisecond, another one, in another part of the tree, wants all of them; hundreds
of further subscriptions are to be moved as well. Each failure is that of a link on the way between the two. Their logs
tell the outage: its begin is the moment at which the cable was ordered to be pulled, a little before it is; its end,
the arrival of the first event that was sent after the last one lost. The events have few addresses: where each has a
new one, every switch on the way looks it up, and a machine that is short of time loses packets also without a failure.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from benchmarks.bench import Result, at_least, at_most, rounded
from benchmarks.loads import zipf
from benchmarks.network import subscriptions
from benchmarks.served import ENCODING, served
from benchmarks.talk import Logs, Pair, Values
from flowsieve.content.filter import Filter
from flowsieve.control.dispatcher import Dispatcher
from flowsieve.control.request import Op, Request
from flowsieve.control.state import DEFAULT_BUDGET, ControlState, Settings
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.lab.lab import Lab
from flowsieve.network.generators import fat_tree
from flowsieve.serving.collector import pass_over_what_is_there

FAILURES, SUBSCRIPTIONS, PUBLISHERS, RATE = 15, 300, 4, 1_000
PATIENCE_SECONDS, LONGEST_SECONDS = 20.0, 220.0
POLL_SECONDS = 0.001
CALM_SECONDS = 0.3  # before a failure and after it: what is under way arrives
UNDER_WAY_SECONDS = 0.05  # of an event, at most
DISTINCT = 100  # events; the same ones again and again, as the switches look up each new address once
WANTED = "a0 < 512"


@dataclass(frozen=True)
class Failure:
    """One pulled cable: when it was ordered to be pulled, when that was done, when the trees were mended."""

    ordered: float
    pulled: float
    mended: float


@dataclass(frozen=True)
class Outage:
    """What a failure came to, by the logs; seconds."""

    lost: int
    from_order: float
    from_pull: float
    from_first_lost: float


def outage_of(failure: Failure, logs: Logs) -> Outage:
    """What was lost, and how long it took from three moments on."""
    missing = logs.lost(failure.ordered - UNDER_WAY_SECONDS, failure.mended + UNDER_WAY_SECONDS)
    first, last = (logs.sent[missing[0]], logs.sent[missing[-1]]) if missing else (failure.ordered,) * 2
    restored = min(at for number, at in logs.came.items() if logs.sent[number] > max(last, failure.ordered))
    return Outage(len(missing), restored - failure.ordered, restored - failure.pulled, restored - first)


class Mending:
    """A network under a controller, and two applications that talk."""

    def __init__(self, lab: Lab, dispatcher: Dispatcher, pair: Pair) -> None:
        self._lab = lab
        self._dispatcher = dispatcher
        self._pair = pair

    def between(self) -> list[tuple[str, str]]:
        """The links that events take from the publisher to the subscriber."""
        hosts, tree = self._lab.topology.hosts, self._dispatcher.state.trees.trees[0]
        return list(pairwise(tree.path(hosts[self._pair.publisher], hosts[self._pair.subscriber])))

    async def fail(self, a: str, b: str) -> Failure:
        """Pull a cable, have the trees mended, plug it in again; then all is at rest."""
        state = self._dispatcher.state
        ordered = time.monotonic()
        await asyncio.to_thread(self._lab.set_link, a, b, False)
        pulled = time.monotonic()
        await self.until(lambda: frozenset((a, b)) in state.down)
        await self._dispatcher.settled()
        mended = time.monotonic()
        await asyncio.sleep(CALM_SECONDS)
        await asyncio.to_thread(self._lab.set_link, a, b, True)
        await self.until(lambda: not state.down and not self._dispatcher.fences.closed)
        await self._dispatcher.settled()
        await asyncio.sleep(CALM_SECONDS)
        return Failure(ordered, pulled, mended)

    async def until(self, true: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not true():
                self._pair.check()
                await asyncio.sleep(POLL_SECONDS)


def crowded(budget: int = DEFAULT_BUDGET, distinct: int = DISTINCT) -> tuple[ControlState, list[Values]]:
    """A fat-tree with publishers and hundreds of subscriptions of others, and events that the two will exchange."""
    load, topology = zipf(SUBSCRIPTIONS, 10 * distinct), fat_tree(4)
    hosts, everything = list(topology.hosts), Filter.parse("True", load.schema)
    plan = RegularPlan.make(load.schema, room=ENCODING.room)
    state = ControlState(topology, plan, settings=Settings(budget=budget))
    publishers = [
        Request(Op.ADVERTISE, f"a{i}", hosts[i * len(hosts) // PUBLISHERS], everything)
        for i in range(PUBLISHERS)
    ]
    state.step([*publishers, *subscriptions(load.filters(), hosts)])
    names = [attribute.name for attribute in load.schema]
    events = [dict(zip(names, point, strict=True)) for point in load.points.tolist()]
    wanted = Filter.parse(WANTED, load.schema)
    return state, [event for event in events if wanted.matches(event)][:distinct]


async def played() -> tuple[list[Failure], Logs, int]:
    """All failures one after the other, what was logged meanwhile, and the entries of the fullest switch."""
    state, events = crowded()
    hosts, dice = list(state.topology.hosts), random.Random(1)
    async with asyncio.timeout(LONGEST_SECONDS), served(state) as (lab, dispatcher):
        with Pair(lab, hosts[0], hosts[-1], WANTED, events, RATE) as pair:
            mending = Mending(lab, dispatcher, pair)
            await mending.until(pair.talks)
            pass_over_what_is_there()  # as a controller does when it is at work
            await asyncio.sleep(CALM_SECONDS)
            failures = [await mending.fail(*dice.choice(mending.between())) for _ in range(FAILURES)]
            logs = await asyncio.to_thread(pair.end)
        entries = max(len(state.table(switch)) for switch in state.topology.switches)
    return failures, logs, entries


def run() -> Result:
    failures, logs, entries = asyncio.run(played())
    outages = [outage_of(failure, logs) for failure in failures]
    lost = len(logs.lost())

    def milliseconds(figure: str) -> dict[str, float]:
        taken = sorted(1e3 * getattr(each, figure) for each in outages)
        return {"median": rounded(statistics.median(taken)), "worst": rounded(taken[-1])}

    return Result(
        "mending",
        {
            "failures of links on the way": len(failures),
            "subscriptions": SUBSCRIPTIONS + 1,
            "entries of the fullest switch": entries,
            "events a second": RATE,
            "distinct events": DISTINCT,
            "ms from the order to pull the cable": milliseconds("from_order"),
            "ms from the cable pulled": milliseconds("from_pull"),
            "ms from the first event lost": milliseconds("from_first_lost"),
            "events sent": len(logs.sent),
            "events lost": lost,
            "events lost per failure, median": statistics.median(each.lost for each in outages),
            "events lost while no link was down": lost - sum(each.lost for each in outages),
            "events that the subscriber counted as lost": logs.stats.lost,
        },
        goals={
            "failures": at_least(len(failures), 10),
            "ms from link down to delivery restored, median": at_most(
                milliseconds("from_order")["median"], 250
            ),
            "events lost and not counted by the subscriber": at_most(max(0, lost - logs.stats.lost), 0),
            "events that came twice": at_most(logs.doubled, 0),
        },
    )
