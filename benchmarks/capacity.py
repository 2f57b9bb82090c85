"""What it costs to fit tables into a quarter of the room that they need: copies that nobody wanted.

The tables are coarsened by one sample of events and judged by later ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.bench import Goal, Result, at_most, rounded
from benchmarks.loads import LOADS, Load
from benchmarks.network import BUDGET, controlled
from flowsieve.client.batch_packets import packets_of
from flowsieve.control.controller import Controller
from flowsieve.control.state import Settings
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.index.sample import EventSample
from flowsieve.southbound.embedded.network import EmbeddedNetwork

SUBSCRIPTIONS, PUBLISHERS, HOSTS = 1_000, 4, 16
SAMPLE = 30_000
SHARES = (0.5, 0.25, 0.1)
SEEDS = (1, 2, 3)


def tables_of(load: Load, capacity: int | None, sample: bool) -> tuple[Controller, EmbeddedNetwork]:
    plan = RegularPlan.make(load.schema)
    known = EventSample.of(plan, load.events().take(np.arange(SAMPLE))) if sample else None
    settings = Settings(BUDGET, capacity, sample=known)
    return controlled(load, HOSTS, PUBLISHERS, settings, capacity=capacity)


def judged(load: Load, controller: Controller, network: EmbeddedNetwork) -> tuple[int, int, int]:
    """(copies delivered, wanted, wanted and not delivered) of the events after the sample."""
    hosts = list(network.topology.hosts)
    events = load.events().take(np.arange(SAMPLE, len(load.points)))
    publishers = np.arange(len(events)) % PUBLISHERS * (HOSTS // PUBLISHERS)
    packets = packets_of(events, controller.state.plan, controller.encoding)
    batch = network.deliver(publishers[packets.rows], packets.hi, packets.lo)
    got = np.zeros((HOSTS, len(events)), np.bool_)
    got[batch.host, packets.rows[batch.event]] = True
    wanted = np.zeros_like(got)
    for interest in controller.state.subscriptions.values():
        at = hosts.index(interest.endpoint)
        wanted[at] |= interest.filter.matches_batch(events) & (publishers != at)
    return int(got.sum()), int(wanted.sum()), int((wanted & ~got).sum())


def run() -> Result:
    figures: dict[str, Any] = {}
    goals: dict[str, Goal] = {}
    for name, make in LOADS.items():
        worst, lost = 0.0, 0
        for seed in SEEDS:
            load = make(SUBSCRIPTIONS, 2 * SAMPLE, seed=seed)
            for sample in (True, False):
                controller, network = tables_of(load, None, sample)
                fullest = max(len(network.read(switch)) for switch in network.topology.switches)
                free, wanted, _ = judged(load, controller, network)
                rows: dict[str, Any] = {
                    "entries_of_the_fullest": fullest,
                    "copies_wanted": wanted,
                    "copies_without_a_bound": free,
                }
                for share in SHARES:
                    capacity = int(fullest * share)
                    bounded = tables_of(load, capacity, sample)
                    copies, _, missing = judged(load, *bounded)
                    lost += missing
                    peak = max(bounded[1].peak(switch) for switch in network.topology.switches)
                    assert peak <= capacity, "a table exceeded its capacity for a moment"
                    rows[f"extra_at_{share:.0%}"] = {
                        "per_copy_without_a_bound": rounded((copies - free) / free),
                        "per_wanted_copy": rounded((copies - free) / wanted),
                    }
                if sample:
                    worst = max(worst, rows["extra_at_25%"]["per_wanted_copy"])
                how = "weighted by a sample" if sample else "weighted by interests"
                figures[f"{name}, seed {seed}, {how}"] = rows
        goals[f"{name}: wanted copies lost"] = at_most(lost, 0)
        if name == "zipf":
            goals["zipf: extra copies per wanted copy at 25 %, worst seed"] = at_most(worst, 0.03)
    return Result("capacity", figures, goals=goals)
