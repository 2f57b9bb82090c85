"""The story told on a network: requests served, readings sent, and what became of them."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flowsieve.client.batch_packets import packets_of, screen
from flowsieve.client.pubsub import PubSub
from flowsieve.control.state import Settings
from flowsieve.demo.compare import Carried, Traffic, filtered
from flowsieve.demo.story import Story
from flowsieve.flow.tables.compiler import Tables
from flowsieve.index.covers.walk import DzColumn
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.index.sample import EventSample
from flowsieve.network.tree import TreeMap

BUDGET = 128  # dz per filter
TREES = 4
TABLES = Tables.FREE
HEADER_BYTES = 14 + 40 + 8  # Ethernet, IPv6, UDP; the event follows as JSON


@dataclass(frozen=True, slots=True, eq=False)
class Delivered:
    """What became of the readings: whom each reached, who wanted it, and what the links carried.

    `got[h, e]` says whether host h received a copy of event e. `matched` counts, by subscription, the events
    that it let through to its application, and `matching` those that it should have.
    """

    traffic: Traffic
    carried: Carried
    rejected: int
    reasons: tuple[str, ...]
    copies: int
    got: NDArray[np.bool_]
    matched: dict[str, int]
    matching: dict[str, int]

    @property
    def events(self) -> int:
        return len(self.traffic.source)

    @property
    def wanted(self) -> int:
        return int(self.traffic.wanted.sum())

    @property
    def lost(self) -> int:
        return int((self.traffic.wanted & ~self.got).sum())

    @property
    def doubled(self) -> int:
        return self.copies - int(self.got.sum())

    @property
    def unwanted(self) -> int:
        return int((self.got & ~self.traffic.wanted).sum())

    @property
    def unheard(self) -> int:
        """Events that nobody wants."""
        return int((~self.traffic.wanted.any(axis=0)).sum())

    @property
    def holds(self) -> bool:
        return not (self.lost or self.doubled) and self.matched == self.matching


def install(story: Story) -> PubSub:
    """A network that serves the story's hosts; budgets are spent where yesterday's readings were."""
    plan = RegularPlan.make(story.schema)
    settings = Settings(budget=BUDGET, tables=TABLES, sample=EventSample.of(plan, story.yesterday))
    pubsub = PubSub(
        story.schema,
        story.topology,
        plan=plan,
        trees=TreeMap.spread(story.topology, TREES),
        settings=settings,
    )
    for each in story.advertisements:
        pubsub.advertise(each.host, each.filter, id=each.id)
    for each in story.subscriptions:
        pubsub.subscribe(each.host, each.filter, id=each.id)
    return pubsub


def send(pubsub: PubSub, story: Story) -> Delivered:
    """Send all readings through the tables at once, and judge what arrived by the filters themselves."""
    state, network, topology = pubsub.state, pubsub.network, story.topology
    screened = screen(story.events, state.advertisements.values())
    events = story.events.take(screened.good)
    packets = packets_of(events, state.plan, pubsub.encoding)
    number = {host: i for i, host in enumerate(topology.hosts)}
    source = np.array([number[host] for host in events.hosts], dtype=np.int64)
    before = Counter(network.link_packets)
    batch = network.deliver(source[packets.rows], packets.hi, packets.lo, pubsub.encoding.family)
    arrived = packets.rows[batch.event]
    got = np.zeros((len(number), len(events)), np.bool_)
    got[batch.host, arrived] = True
    wanted = np.zeros_like(got)
    matched, matching = {}, {}
    for each in state.subscriptions.values():
        assert each.filter is not None
        at = number[each.endpoint]
        matches = each.filter.matches_batch(events) & (source != at)
        wanted[at] |= matches
        matching[each.id] = int(matches.sum())
        matched[each.id] = int((matches & got[at]).sum())
    size = [HEADER_BYTES + len(json.dumps(events.event(row))) for row in range(len(events))]
    traffic = Traffic(
        topology=topology,
        trees=[tree for _, tree in state.trees],
        source=source,
        tree=_parts(state.trees, state.plan.encode_batch(events), len(events)),
        size=np.array(size, dtype=np.int64),
        wanted=wanted,
    )
    return Delivered(
        traffic=traffic,
        carried=filtered(traffic, Counter(network.link_packets) - before, batch.host, arrived),
        rejected=screened.rejected,
        reasons=screened.reasons,
        copies=len(arrived),
        got=got,
        matched=matched,
        matching=matching,
    )


def _parts(trees: TreeMap, column: DzColumn, events: int) -> NDArray[np.int64]:
    """Which part of the tree map each event falls into, told by its first dz."""
    begin = np.array([dz.aligned >> 64 for dz, _ in trees], dtype=np.uint64)  # the parts are in order
    found = np.zeros(events, np.int64)
    found[column.rows[::-1]] = np.searchsorted(begin, column.hi[::-1], side="right") - 1
    return found
