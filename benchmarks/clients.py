"""What the client library costs: events published and received for each second that a core spends on it.

Two applications on two hosts of one real switch, on one loop. A few events are published, then all of them are
received, and so on: either part is timed by the processor time of this thread, so that neither the switch nor
whatever else the machine does counts. What is sent while nothing is lost has to arrive, once. Every other turn goes
without signing and checking, which shows what that costs.
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

EVENTS, AT_ONCE, WARM = 40_000, 50, 2_000  # few at once: a switch that waits for its core has room for them
DATA = bytes(50)
PATIENCE_SECONDS, SETTLE_SECONDS, LONGEST_SECONDS = 5.0, 1.5, 200.0
TOPOLOGY = Topology.make([], {"h0": "s1", "h1": "s1"}, switches=["s1"])
WANTED = "a0 < 512"
WARM_TURNS = WARM // AT_ONCE
MOST_ADDED = 10.0  # percent of processor time for each event


@dataclass(frozen=True)
class Spent:
    """Processor seconds for the events of one turn."""

    publishing: float
    receiving: float
    matching: int
    signed: bool


class Believing:
    """A publisher that signs and a subscriber that checks, or does not: as they are told before each turn."""

    def __init__(self, publisher: Client, subscriber: Client) -> None:
        self._outbox, self._inbox = publisher._sender._outbox, subscriber._inbox
        self._signer, self._checker = self._outbox.signer, self._inbox.checker
        assert self._signer is not None and self._checker is not None

    def signed(self, yes: bool) -> None:
        self._outbox.signer = self._signer if yes else None
        self._inbox.checker = self._checker if yes else None


async def turn(
    publisher: Client, subscription: Subscription, events: list[dict[str, int]], got: list[int], signed: bool
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
    return Spent(published - begin, time.thread_time() - before, matching, signed)


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
        believing, turns = Believing(publisher, subscriber), []
        for number, first in enumerate(range(0, len(events), AT_ONCE)):
            signed = number % 2 == 0
            believing.signed(signed)
            turns.append(await turn(publisher, subscription, events[first : first + AT_ONCE], got, signed))
        believing.signed(True)
        await asyncio.sleep(SETTLE_SECONDS)  # for the digests, and for what nobody waits for
        got += [(await anext(subscription)).seq for _ in range(subscription.waiting)]
        return turns[WARM_TURNS:], got, subscriber.stats


def spent(turns: list[Spent], signed: bool) -> tuple[float, float]:
    """Processor seconds to publish and to receive an event."""
    some = [each for each in turns if each.signed is signed]
    return (
        statistics.median(each.publishing / AT_ONCE for each in some),
        statistics.median(each.receiving / each.matching for each in some),
    )


def run() -> Result:
    points = narrow(0, WARM + EVENTS).points.tolist()
    events = [{"a0": a0, "a1": a1} for a0, a1 in points]
    turns, got, stats = asyncio.run(played(events))
    wanted = sum(event["a0"] < 512 for event in events)
    publishing, receiving = spent(turns, signed=True)
    bare_publishing, bare_receiving = spent(turns, signed=False)
    published_more, received_more = publishing / bare_publishing - 1, receiving / bare_receiving - 1
    return Result(
        "clients",
        {
            "published, events a second and core": rounded(1 / publishing),
            "received, events a second and core": rounded(1 / receiving),
            "processor time to publish an event, us": rounded(1e6 * publishing),
            "processor time to receive an event, us": rounded(1e6 * receiving),
            "the same to publish without signing, us": rounded(1e6 * bare_publishing),
            "the same to receive without checking, us": rounded(1e6 * bare_receiving),
            "signing takes so much more, %": rounded(100 * published_more),
            "checking takes so much more, %": rounded(100 * received_more),
            "events published": len(events),
            "events wanted": wanted,
            "bytes of data in an event, besides its values": len(DATA),
            "subscriber": stats.to_json(),
        },
        goals={
            "events that did not come": at_most(wanted - len(set(got)), 0),
            "events that came twice": at_most(len(got) - len(set(got)), 0),
            "events counted as lost or dropped": at_most(stats.lost + stats.overflow, 0),
            "what signing adds to publishing, %": at_most(rounded(100 * published_more), MOST_ADDED),
            "what checking adds to receiving, %": at_most(rounded(100 * received_more), MOST_ADDED),
        },
    )
