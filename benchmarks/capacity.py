"""What it costs to fit tables into a quarter of the room that they need: copies that nobody wanted.

The tables are coarsened by one sample of events and judged by later ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.bench import Goal, Result, at_most, rounded
from benchmarks.loads import LOADS, Load
from benchmarks.network import BUDGET, small_fat_tree
from flowsieve.client.publisher import packets_of
from flowsieve.content.filter import Filter
from flowsieve.control.controller import Controller
from flowsieve.control.request import Op, Request
from flowsieve.control.state import ControlState, Settings
from flowsieve.header.tag import POOLS
from flowsieve.index.regular import RegularPlan
from flowsieve.index.sample import EventSample
from flowsieve.southbound.embedded import EmbeddedNetwork

SUBSCRIPTIONS, PUBLISHERS, HOSTS = 1_000, 4, 16
SAMPLE = 30_000
SHARES = (1.0, 0.5, 0.25, 0.1)


def tables_of(load: Load, capacity: int | None, sample: bool) -> tuple[Controller, EmbeddedNetwork]:
    topology = small_fat_tree(HOSTS)
    tag = POOLS["ipv6"][0]
    plan = RegularPlan.make(load.schema, room=tag.room)
    events = load.events().take(np.arange(SAMPLE))
    settings = Settings(BUDGET, capacity, sample=EventSample.of(plan, events) if sample else None)
    network = EmbeddedNetwork(topology, capacity)
    controller = Controller(ControlState(topology, plan, settings=settings), network, tag)
    hosts = list(topology.hosts)
    everything = Filter.parse("True", load.schema)
    requests = [Request(Op.ADVERTISE, f"a{i}", hosts[i * HOSTS // PUBLISHERS], everything) for i in range(PUBLISHERS)]
    requests += [
        Request(Op.SUBSCRIBE, f"s{i}", hosts[i * 7 % HOSTS], filter) for i, filter in enumerate(load.filters())
    ]
    controller.submit(requests)
    return controller, network


def judged(load: Load, controller: Controller, network: EmbeddedNetwork) -> tuple[int, int, int]:
    """(copies delivered, wanted, wanted and not delivered) of the events after the sample."""
    hosts = list(network.topology.hosts)
    events = load.events().take(np.arange(SAMPLE, len(load.points)))
    publishers = np.arange(len(events)) % PUBLISHERS * (HOSTS // PUBLISHERS)
    packets = packets_of(events, controller.state.plan, controller.tag)
    batch = network.deliver(publishers[packets.rows], packets.hi, packets.lo)
    got = np.zeros((HOSTS, len(events)), np.bool_)
    got[batch.host, packets.rows[batch.event]] = True
    wanted = np.zeros_like(got)
    for interest in controller.state.subscriptions.values():
        at = hosts.index(interest.host)
        wanted[at] |= interest.filter.matches_batch(events) & (publishers != at)
    return int(got.sum()), int(wanted.sum()), int((wanted & ~got).sum())


def run() -> Result:
    figures: dict[str, Any] = {}
    goals: dict[str, Goal] = {}
    for name, make in LOADS.items():
        load = make(SUBSCRIPTIONS, 2 * SAMPLE)
        for sample in (True, False):
            controller, network = tables_of(load, None, sample)
            fullest = max(len(network.read(switch)) for switch in network.topology.switches)
            free, wanted, _ = judged(load, controller, network)
            rows = {"entries_of_the_fullest": fullest, "copies_wanted": wanted, "copies_without_a_bound": free}
            lost = 0
            for share in SHARES[1:]:
                capacity = int(fullest * share)
                bounded = tables_of(load, capacity, sample)
                copies, _, missing = judged(load, *bounded)
                lost += missing
                peak = max(bounded[1].peak(switch) for switch in network.topology.switches)
                assert peak <= capacity, "a table exceeded its capacity for a moment"
                rows[f"extra_copies_per_wanted_at_{share:.0%}"] = rounded((copies - free) / wanted)
            what = "weighted by a sample" if sample else "by volume"
            figures[f"{name}, {what}"] = rows
            goals[f"{name}, {what}: wanted copies lost"] = at_most(lost, 0)
            if name == "zipf" and sample:
                goals["zipf: extra copies at 25 %"] = at_most(rows["extra_copies_per_wanted_at_25%"], 0.03)
    return Result("capacity", figures, goals=goals)
