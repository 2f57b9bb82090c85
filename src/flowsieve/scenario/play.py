"""Play a scenario: requests as slices, events through the tables, and what became of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from flowsieve.client.publisher import SHOWN, packets_of, screen
from flowsieve.content.event import EventBatch
from flowsieve.control.controller import Controller
from flowsieve.control.state import ControlState, Settings
from flowsieve.flow.compiler import Tables
from flowsieve.flow.entry import Flow
from flowsieve.index.sample import EventSample
from flowsieve.network.tree import TreeMap, center_tree
from flowsieve.scenario.read import EventStep, RequestStep, Scenario
from flowsieve.southbound.embedded import EmbeddedNetwork

SLICE = 500  # requests that are served as one net difference
BATCH = 200_000  # events that go through the network at once

Progress = Callable[[str, int, int], None]


def silent(what: str, done: int, of: int) -> None:
    """A progress that nobody watches."""


@dataclass(eq=False)
class Columns:
    """A table that grows by columns."""

    names: tuple[str, ...]
    parts: list[tuple[NDArray[np.object_], ...]] = field(default_factory=list)

    def add(self, *columns: NDArray[np.object_]) -> None:
        self.parts.append(columns)

    def joined(self) -> dict[str, NDArray[np.object_]]:
        empty = np.zeros(0, dtype=object)
        return {
            name: np.concatenate([empty, *(part[i] for part in self.parts)]) for i, name in enumerate(self.names)
        }


@dataclass(eq=False)
class Played:
    """What a run saw."""

    scenario: Scenario
    controller: Controller
    network: EmbeddedNetwork
    counts: dict[str, int]
    seconds: dict[str, float]
    refused: list[str] = field(default_factory=list)
    rejected: list[str] = field(default_factory=list)
    deliveries: Columns = field(default_factory=lambda: Columns(("event", "host", "dst")))
    matches: Columns = field(default_factory=lambda: Columns(("event", "subscription")))
    packets: Columns = field(default_factory=lambda: Columns(("event", "host", "dst")))

    def tables(self) -> dict[str, tuple[Flow, ...]]:
        return {switch: self.network.read(switch) for switch in self.network.topology.switches}

    def report(self) -> dict[str, object]:
        """The figures of the run, as `report.json` has them."""
        flows = {switch: len(table) for switch, table in self.tables().items()}
        counts = self.counts
        return {
            "requests": counts["requests"],
            "refused": len(self.refused),
            "events": counts["events"],
            "rejected": counts["rejected"],
            "deliveries": counts["deliveries"],
            "wanted": counts["wanted"],
            "false_positives": counts["false_positives"],
            "false_negatives": counts["false_negatives"],
            "duplicates": counts["duplicates"],
            "repeats": counts["repeats"],
            "fpr": counts["false_positives"] / counts["deliveries"] if counts["deliveries"] else 0.0,
            "flows": sum(flows.values()),
            "flows_max": max(flows.values(), default=0),
            "flow_ops": self.controller.operations,
            "link_packets": sum(self.network.link_packets.values()),
            "bits": self.scenario.plan.bits,
            "seconds": {phase: round(spent, 3) for phase, spent in self.seconds.items()},
            "coarsened": self.controller.state.waste(),
            "first_refused": self.refused[:SHOWN],
            "first_rejected": self.rejected[:SHOWN],
        }


def state_of(scenario: Scenario) -> ControlState:
    """The control state that a scenario begins with."""
    topology, plan = scenario.topology, scenario.plan
    trees = TreeMap.spread(topology, scenario.trees) if scenario.trees > 1 else TreeMap.single(center_tree(topology))
    sample = EventSample.of(plan, scenario.sample) if scenario.sample is not None else None
    settings = Settings(scenario.budget, scenario.capacity, scenario.tables or Tables.OVERLAY, sample)
    return ControlState(topology, plan, trees, settings)


def serve(controller: Controller, step: RequestStep, progress: Progress = silent) -> list[str]:
    """Serve a step's requests slice by slice; the reasons of those refused."""
    refused: list[str] = []
    for at in range(0, len(step.requests), SLICE):
        outcome = controller.submit(step.requests[at : at + SLICE])
        refused += [f"{request.op.value} {request.id} of {request.host}: {why}" for request, why in outcome.refused]
        progress("requests", min(at + SLICE, len(step.requests)), len(step.requests))
    return refused


def settled(scenario: Scenario, progress: Progress = silent) -> tuple[Controller, EmbeddedNetwork]:
    """The network after all of a scenario's requests, without its events."""
    network = EmbeddedNetwork(scenario.topology, scenario.capacity)
    controller = Controller(state_of(scenario), network, scenario.tag)
    for step in scenario.steps:
        if isinstance(step, RequestStep):
            serve(controller, step, progress)
    return controller, network


def play(scenario: Scenario, progress: Progress = silent) -> Played:
    """Play all steps on an embedded network."""
    network = EmbeddedNetwork(scenario.topology, scenario.capacity)
    controller = Controller(state_of(scenario), network, scenario.tag)
    names = (
        "requests events rejected deliveries wanted false_positives false_negatives duplicates repeats"
    ).split()
    played = Played(scenario, controller, network, dict.fromkeys(names, 0), {"requests": 0.0, "events": 0.0})
    for step in scenario.steps:
        if isinstance(step, RequestStep):
            with _timed(played, "requests"):
                played.refused += serve(controller, step, progress)
            played.counts["requests"] += len(step.requests)
        else:
            with _timed(played, "events"):
                _publish(played, step, progress)
    return played


@contextmanager
def _timed(played: Played, phase: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    played.seconds[phase] += time.perf_counter() - start


def _publish(played: Played, step: EventStep, progress: Progress) -> None:
    n = len(step.events)
    for at in range(0, n, BATCH):
        _publish_batch(played, step.events.take(np.arange(at, min(at + BATCH, n))))
        progress("events", min(at + BATCH, n), n)


def _publish_batch(played: Played, events: EventBatch) -> None:
    state, network, counts = played.controller.state, played.network, played.counts
    screened = screen(events, state.advertisements.values())
    counts["events"] += len(events)
    counts["rejected"] += screened.rejected
    played.rejected += screened.reasons
    events = events.take(screened.good)
    packets = packets_of(events, state.plan, played.scenario.tag)
    number = {host: i for i, host in enumerate(network.topology.hosts)}
    source = np.array([number[host] for host in events.hosts], dtype=np.int64)
    batch = network.deliver(source[packets.rows], packets.hi, packets.lo, played.scenario.tag.group.family)
    addresses = packets.addresses()
    hosts = np.array(list(network.topology.hosts), dtype=object)
    played.packets.add(events.ids[packets.rows], events.hosts[packets.rows], addresses)
    rows = packets.rows[batch.event]
    played.deliveries.add(events.ids[rows], hosts[batch.host], addresses[batch.event])
    got = np.zeros((len(hosts), len(events)), np.bool_)
    got[batch.host, rows] = True
    copies = len(rows)
    packet_pairs = len(np.unique(batch.event * len(hosts) + batch.host))
    counts["deliveries"] += copies
    counts["duplicates"] += copies - packet_pairs
    counts["repeats"] += packet_pairs - int(got.sum())
    wanted = np.zeros_like(got)
    for interest in state.subscriptions.values():
        at = number[interest.host]
        match = interest.filter.matches_batch(events) & (source != at)
        wanted[at] |= match
        mine = np.flatnonzero(match & got[at])
        if len(mine):
            played.matches.add(events.ids[mine], np.full(len(mine), interest.id, dtype=object))
    counts["wanted"] += int(wanted.sum())
    counts["false_positives"] += int((got & ~wanted).sum())
    counts["false_negatives"] += int((wanted & ~got).sum())
