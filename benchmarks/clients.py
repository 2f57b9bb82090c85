"""What the client library costs: events published and received for each second that a core spends on it.

Two applications on two hosts of one real switch, on one loop. A few events are published, then all of them are
received, and so on: either part is timed by the processor time of this thread, so that neither the switch nor
whatever else the machine does counts. What is sent while nothing is lost has to arrive, once.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from contextlib import suppress
from dataclasses import dataclass

from benchmarks.bench import Result, at_most, rounded
from benchmarks.loads import narrow
from benchmarks.served import ENCODING, application, served
from flowsieve.client.interests import Subscription
from flowsieve.client.session import Client
from flowsieve.client.stats import Stats
from flowsieve.control.state import ControlState
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.network.topology import Topology

EVENTS, AT_ONCE, WARM = 20_000, 50, 2_000  # few at once: a switch that waits for its core has room for them
DATA = bytes(50)
PATIENCE_SECONDS, SETTLE_SECONDS, LONGEST_SECONDS = 5.0, 1.5, 200.0
TOPOLOGY = Topology.make([], {"h0": "s1", "h1": "s1"}, switches=["s1"])
WANTED = "a0 < 512"
WARM_TURNS = WARM // AT_ONCE


@dataclass(frozen=True)
class Spent:
    """Processor seconds for the events of one turn."""

    publishing: float
    receiving: float
    matching: int


async def turn(
    publisher: Client, subscription: Subscription, events: list[dict[str, int]], got: list[int]
) -> Spent:
    """Publish some events, then receive those that are wanted."""
    begin = time.thread_time()
    for event in events:
        publisher.publish_nowait(event, DATA)
    published = time.thread_time()
    matching = sum(subscription.filter.matches(event) for event in events)
    before = time.thread_time()
    due = len(got) + matching
    with suppress(TimeoutError):  # what does not come is counted in the end
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(got) < due:
                got.append((await anext(subscription)).seq)
    return Spent(published - begin, time.thread_time() - before, matching)


async def played(events: list[dict[str, int]]) -> tuple[list[Spent], list[int], Stats]:
    """All events, turn by turn; the numbers of those that came, and what the subscriber counted."""
    state = ControlState(TOPOLOGY, RegularPlan.make(narrow(0, 0).schema, room=ENCODING.room))
    got: list[int] = []
    async with (
        asyncio.timeout(LONGEST_SECONDS),
        served(state) as (lab, _),
        application(lab, "h0") as publisher,
        application(lab, "h1") as subscriber,
    ):
        await publisher.advertise()
        subscription = await subscriber.subscribe(WANTED)
        turns = [
            await turn(publisher, subscription, events[first : first + AT_ONCE], got)
            for first in range(0, len(events), AT_ONCE)
        ]
        await asyncio.sleep(SETTLE_SECONDS)  # for the digests, and for what nobody waits for
        got += [(await anext(subscription)).seq for _ in range(subscription.waiting)]
        return turns[WARM_TURNS:], got, subscriber.stats


def run() -> Result:
    points = narrow(0, WARM + EVENTS).points.tolist()
    events = [{"a0": a0, "a1": a1} for a0, a1 in points]
    turns, got, stats = asyncio.run(played(events))
    wanted = sum(event["a0"] < 512 for event in events)
    publishing = statistics.median(each.publishing / AT_ONCE for each in turns)
    receiving = statistics.median(each.receiving / each.matching for each in turns)
    return Result(
        "clients",
        {
            "published, events a second and core": rounded(1 / publishing),
            "received, events a second and core": rounded(1 / receiving),
            "processor time to publish an event, us": rounded(1e6 * publishing),
            "processor time to receive an event, us": rounded(1e6 * receiving),
            "events published": len(events),
            "events wanted": wanted,
            "bytes of data in an event, besides its values": len(DATA),
            "subscriber": stats.to_json(),
        },
        goals={
            "events that did not come": at_most(wanted - len(set(got)), 0),
            "events that came twice": at_most(len(got) - len(set(got)), 0),
            "events counted as lost or dropped": at_most(stats.lost + stats.overflow, 0),
        },
    )
