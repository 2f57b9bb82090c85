"""From one plan to another on the embedded network, under load: what it costs in entries, copies and operations.

The light-weight way carries everything under the old tag meanwhile; versioning has both tables side by side. Tables
grow from 100 to 2,000 subscriptions, as in figure 10 of [Expressive]. Events are published whenever a switch has
followed and others have not, and whenever a publisher has gone over and others have not: each is judged by itself.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.bench import Goal, Result, at_least, at_most, rounded
from benchmarks.loads import Load, zipf
from benchmarks.network import controlled
from benchmarks.plot import line_plot
from flowsieve.client.batch_packets import packets_of
from flowsieve.content.event import EventBatch
from flowsieve.control.controller import Controller
from flowsieve.control.transition.crossing import CrossingPhase
from flowsieve.control.transition.served_index import ServedIndex
from flowsieve.control.transition.stepwise import Transition
from flowsieve.header.tag import POOLS
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.southbound.embedded.network import EmbeddedNetwork

SIZES = (100, 250, 500, 1_000, 2_000)
HOSTS, PUBLISHERS = 16, 4
EVENTS = 40_000
RATE = 10_000  # events a second, as time goes by in the switches
OPERATIONS = 2_000  # that a switch makes in a second, for how long it would take on such switches
OUT = Path("out/transition")


@dataclass
class Judge:
    """Publishes events as publishers would at this moment, and counts what became of them."""

    load: Load
    controller: Controller
    network: EmbeddedNetwork
    transition: Transition | None = None
    at: int = 0
    lost: int = 0
    doubled: int = 0
    copies: int = 0
    wanted: int = 0
    peak: int = 0
    took: float = 0.0
    events: EventBatch = field(init=False)
    wants: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        hosts = list(self.network.topology.hosts)
        publishers = np.arange(len(self.load.points)) % PUBLISHERS * (HOSTS // PUBLISHERS)
        self.numbers = publishers
        self.events = self.load.events()
        self.wants = np.zeros((HOSTS, len(self.events)), np.bool_)
        for interest in self.controller.state.subscriptions.values():
            assert interest.filter is not None
            at = hosts.index(interest.endpoint)
            self.wants[at] |= interest.filter.matches_batch(self.events) & (publishers != at)

    def publish(self, count: int, index: ServedIndex, moved: set[str] | None = None) -> None:
        """The next events, by an index, or by the new one where their publisher has gone over."""
        start = time.perf_counter()
        rows = (self.at + np.arange(count)) % len(self.events)
        self.at += count
        hosts = list(self.network.topology.hosts)
        names = np.array(hosts, dtype=object)[self.numbers[rows]]
        gone = np.isin(names, list(moved or ()))
        for some, used in ((~gone, index), (gone, self.transition.new if self.transition else index)):
            own = rows[some]
            packets = packets_of(self.events.take(own), used.plan, used.encoding)
            batch = self.network.deliver(self.numbers[own][packets.rows], packets.hi, packets.lo)
            got = np.zeros((HOSTS, len(own)), np.int64)
            np.add.at(got, (batch.host, packets.rows[batch.event]), 1)
            wants = self.wants[:, own]
            self.lost += int((wants & (got == 0)).sum())
            self.doubled += int((got > 1).sum())
            self.copies += int((got > 0).sum())
            self.wanted += int(wants.sum())
        self.peak = max(self.peak, max(len(self.network.read(s)) for s in self.network.topology.switches))
        self.took += time.perf_counter() - start

    def rates(self) -> tuple[int, int]:
        return self.copies, self.wanted


def gone_over(load: Load, carry: bool) -> dict[str, Any]:
    """A transition under load, one way or the other."""
    controller, network = controlled(load, HOSTS, PUBLISHERS)
    switches = network.topology.switches
    old = ServedIndex(0, POOLS["ipv6"][0], controller.state.plan)
    new = old.follower(RegularPlan.make(load.schema, bits=23, dimensions=list(load.schema.names)[:3]))
    judge = Judge(load, controller, network)
    judge.publish(2_000, old)
    before, settled = judge.rates(), max(len(network.read(switch)) for switch in switches)
    operations = controller.operations
    transition = judge.transition = Transition(controller, old, new, carry)
    chunk = 200
    transition.meanwhile = lambda: judge.publish(chunk, old, transition.moved)
    publishers = [list(network.topology.hosts)[i * (HOSTS // PUBLISHERS)] for i in range(PUBLISHERS)]
    at, judge.took, start = judge.at, 0.0, time.perf_counter()
    transition.run(publishers)
    seconds = time.perf_counter() - start - judge.took
    during, published = judge.rates(), judge.at - at
    judge.transition = None
    judge.publish(2_000, new)
    after = judge.rates()
    usual = (before[0] - before[1]) / 2_000
    per_event = (during[0] - before[0] - during[1] + before[1]) / published - usual
    busiest = max(record.operations for record in transition.records) / len(switches)
    slow = sum(record.operations for record in transition.records) / len(switches) / OPERATIONS
    return {
        "entries_of_the_fullest": settled,
        "peak_of_the_fullest": judge.peak,
        "extra_entries": rounded(max(0, judge.peak - settled) / settled),
        "extra_copies_per_event": rounded(per_event),
        "seconds": rounded(seconds),
        "extra_copies_times_seconds": rounded(max(0.0, per_event) * RATE * slow),
        "operations": controller.operations - operations,
        "operations_a_switch_in_the_busiest_phase": rounded(busiest),
        "published_meanwhile": published,
        "lost": judge.lost,
        "doubled": judge.doubled,
        "unwanted_before": rounded(usual),
        "unwanted_after": rounded((after[0] - during[0] - after[1] + during[1]) / 2_000),
        "carried_entries": transition.records[0].entries if carry else None,
        "switches": len(switches),
    }


def run() -> Result:
    figures: dict[str, Any] = {"light_weight": {}, "versioning": {}}
    for size in SIZES:
        load = zipf(size, EVENTS)
        for name, carry in (("light_weight", True), ("versioning", False)):
            figures[name][size] = gone_over(load, carry)
    light, both = figures["light_weight"], figures["versioning"]
    OUT.mkdir(parents=True, exist_ok=True)
    for what, title in (
        ("peak_of_the_fullest", "entries of the fullest table, at most"),
        ("extra_copies_per_event", "extra copies per event meanwhile"),
    ):
        lines = {
            name.replace("_", " "): [(size, max(0.0, rows[size][what])) for size in SIZES]
            for name, rows in (("light_weight", light), ("versioning", both))
        }
        if what == "peak_of_the_fullest":
            lines["before"] = [(size, light[size]["entries_of_the_fullest"]) for size in SIZES]
        (OUT / f"{what}.svg").write_text(
            line_plot("Going over to another plan", "subscriptions", title, lines)
        )
    largest = SIZES[-1]
    goals: dict[str, Goal] = {
        "lost": at_most(sum(row["lost"] for rows in (light, both) for row in rows.values()), 0),
        "doubled": at_most(sum(row["doubled"] for rows in (light, both) for row in rows.values()), 0),
        "carried entries a switch": at_most(
            max(row["carried_entries"] / row["switches"] for row in light.values()), 1
        ),
        "extra entries, light-weight": at_most(max(row["extra_entries"] for row in light.values()), 0.1),
        "extra entries, versioning": at_least(both[largest]["extra_entries"], 0.3),
    }
    assert len(CrossingPhase) == 5
    return Result("transition", figures, {"versioning": "the same, side by side in one run"}, goals)
