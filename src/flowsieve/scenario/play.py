"""Play a scenario: requests as slices, events through the tables, and what became of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from flowsieve.client.batch_packets import SHOWN, screen
from flowsieve.content.event import EventBatch
from flowsieve.control.request import Request
from flowsieve.flow.entry import Flow
from flowsieve.flow.flat import Words
from flowsieve.flow.tables.compiler import Side
from flowsieve.network.topology import Topology
from flowsieve.scenario.plan_step import go_over
from flowsieve.scenario.plane import plane_of
from flowsieve.scenario.read import EventStep, PlanStep, RequestStep, Scenario
from flowsieve.southbound.embedded.batch import Batch
from flowsieve.southbound.embedded.network import EmbeddedNetwork
from flowsieve.southbound.fabric import Switches

SLICE = 500  # requests that are served as one net difference
BATCH = 200_000  # events that go through the network at once

Progress = Callable[[str, int, int], None]


def silent(what: str, done: int, of: int) -> None:
    """A progress that nobody watches."""


class PlayedNetwork(Switches, Protocol):
    """What a scenario is played on: switches under a controller, and hosts that send and receive."""

    topology: Topology

    def deliver(
        self,
        publishers: NDArray[np.int64],
        hi: Words,
        lo: Words,
        family: int,
        sources: Sequence[int] | None = None,
    ) -> Batch:
        """Have hosts, by their numbers, send packets to addresses, given as keys; which host got which.

        They are sent from the `sources`, or from their hosts' own addresses.
        """
        ...

    @property
    def link_packets(self) -> dict[tuple[str, str], int]:
        """How many packets went from one switch to another."""
        ...


class Stage:
    """A scenario's network and the control plane over it, before, while and after requests are served.

    The network has the scenario's topology and empty tables; without one it is an embedded network.
    """

    def __init__(self, scenario: Scenario, network: PlayedNetwork | None = None) -> None:
        self.scenario = scenario
        self.network = network or EmbeddedNetwork(scenario.topology, scenario.capacity)
        self.plane = plane_of(scenario, self.network)
        self.refused: list[str] = []
        self.transitions: list[dict[str, Any]] = []  # to other plans, and how they went

    def tables(self) -> dict[str, tuple[Flow, ...]]:
        """What the switches hold."""
        return self.plane.tables()

    def serve(self, step: RequestStep, progress: Progress = silent) -> None:
        """Serve a step's requests slice by slice; what does not fit is kept in `refused`, with the reason."""
        of = len(step.requests)
        for at in range(0, of, SLICE):
            outcome = self.plane.submit(list(self._due(step.requests[at : at + SLICE])))
            for request, why in outcome.refused:
                self.refused.append(f"{request.op.value} {request.id} of {request.endpoint}: {why}")
            progress("requests", min(at + SLICE, of), of)

    def go_over(
        self,
        step: PlanStep,
        publish: Callable[[EventBatch], None] = lambda events: None,
        unwanted: Callable[[], int] = lambda: 0,
    ) -> None:
        """Go over to a step's plan; where its tables do not fit, that is kept in `refused`, with the reason."""
        gone = go_over(self.plane, step, publish, unwanted)
        if gone.refused is not None:
            self.refused.append(gone.refused)
        if gone.told is not None:
            self.transitions.append(gone.told)

    def _due(self, requests: Sequence[Request]) -> Iterator[Request]:
        """The requests but for those that end what was refused before; a scenario ends nothing else unknown."""
        made: set[tuple[Side, str]] = set()
        for request in requests:
            side, id = request.op.side, request.id
            if request.op.adding:
                made.add((side, id))
            elif (side, id) not in made and id not in self.plane.interests(side):
                continue
            yield request


def settled(scenario: Scenario, progress: Progress = silent) -> Stage:
    """The network after all of a scenario's requests, without its events."""
    stage = Stage(scenario)
    for step in scenario.steps:
        if isinstance(step, RequestStep):
            stage.serve(step, progress)
        elif isinstance(step, PlanStep):
            stage.go_over(replace(step, events=None))
    return stage


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
            name: np.concatenate([empty, *(part[i] for part in self.parts)])
            for i, name in enumerate(self.names)
        }


@dataclass(slots=True)
class Counts:
    """What the report counts; see the design for what each of them means."""

    requests: int = 0
    events: int = 0
    rejected: int = 0
    deliveries: int = 0
    wanted: int = 0
    false_positives: int = 0
    false_negatives: int = 0
    duplicates: int = 0
    repeats: int = 0


@dataclass(eq=False)
class Played:
    """What a run saw."""

    stage: Stage
    counts: Counts = field(default_factory=Counts)
    seconds: dict[str, float] = field(default_factory=lambda: {"requests": 0.0, "events": 0.0})
    rejected: list[str] = field(default_factory=list)
    deliveries: Columns = field(init=False)
    matches: Columns = field(default_factory=lambda: Columns(("event", "subscription")))
    packets: Columns = field(init=False)

    def __post_init__(self) -> None:
        names = ("event", "host", *self.stage.plane.columns)
        self.deliveries, self.packets = Columns(names), Columns(names)

    def report(self) -> dict[str, object]:
        """The figures of the run, as `report.json` has them."""
        stage, counts = self.stage, self.counts
        flows = [len(table) for table in stage.tables().values()]
        return {
            "requests": counts.requests,
            "refused": len(stage.refused),
            **asdict(counts),
            "fpr": counts.false_positives / counts.deliveries if counts.deliveries else 0.0,
            "flows": sum(flows),
            "flows_max": max(flows),
            "flow_ops": stage.plane.operations,
            "link_packets": sum(stage.network.link_packets.values()),
            "seconds": {phase: round(spent, 3) for phase, spent in self.seconds.items()},
            **stage.plane.figures(),
            **({"transitions": stage.transitions} if any_plan(stage.scenario) else {}),
            "first_refused": stage.refused[:SHOWN],
            "first_rejected": self.rejected[:SHOWN],
        }


def play(scenario: Scenario, progress: Progress = silent, network: PlayedNetwork | None = None) -> Played:
    """Play all steps, on an embedded network unless another is given."""
    played = Played(Stage(scenario, network))
    for step in scenario.steps:
        if isinstance(step, RequestStep):
            with _timed(played, "requests"):
                played.stage.serve(step, progress)
            played.counts.requests += len(step.requests)
        elif isinstance(step, PlanStep):
            with _timed(played, "events"):
                played.stage.go_over(
                    step, partial(_publish_batch, played), lambda: played.counts.false_positives
                )
        else:
            with _timed(played, "events"):
                publish(played, step, progress)
    return played


def any_plan(scenario: Scenario) -> bool:
    """Whether a scenario goes over to other plans."""
    return any(isinstance(step, PlanStep) for step in scenario.steps)


@contextmanager
def _timed(played: Played, phase: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    played.seconds[phase] += time.perf_counter() - start


def publish(played: Played, step: EventStep, progress: Progress = silent) -> None:
    """Send a step's events, and add to what was played what became of them."""
    n = len(step.events)
    for at in range(0, n, BATCH):
        _publish_batch(played, step.events.take(np.arange(at, min(at + BATCH, n))))
        progress("events", min(at + BATCH, n), n)


def _publish_batch(played: Played, events: EventBatch) -> None:
    """Send what may be sent, and see who got it, who wanted it and which subscriptions it matches."""
    stage, counts = played.stage, played.counts
    plane, network = stage.plane, stage.network
    screened = screen(events, plane.interests(Side.PUBLISHER).values())
    counts.events += len(events)
    counts.rejected += screened.rejected
    played.rejected += screened.reasons
    events = events.take(screened.good)
    packets = plane.packets(events)
    hosts = np.array(list(network.topology.hosts), dtype=object)
    number = {host: i for i, host in enumerate(hosts)}
    source = np.array([number[host] for host in events.hosts], dtype=np.int64)
    batch = network.deliver(source[packets.rows], packets.hi, packets.lo, packets.family, packets.sources)
    columns = {"src": packets.source_addresses, "dst": packets.addresses}
    addresses = [columns[name]() for name in plane.columns]
    played.packets.add(events.ids[packets.rows], events.hosts[packets.rows], *addresses)
    rows = packets.rows[batch.event]
    played.deliveries.add(events.ids[rows], hosts[batch.host], *(each[batch.event] for each in addresses))
    got = np.zeros((len(hosts), len(events)), np.bool_)
    got[batch.host, rows] = True
    once = len(np.unique(batch.event * len(hosts) + batch.host))
    counts.deliveries += len(rows)
    counts.duplicates += len(rows) - once
    counts.repeats += once - int(got.sum())
    wanted = np.zeros_like(got)
    for interest in plane.interests(Side.SUBSCRIBER).values():
        if interest.filter is None:
            continue  # no host's
        at = number[interest.endpoint]
        match = interest.filter.matches_batch(events) & (source != at)
        wanted[at] |= match
        mine = np.flatnonzero(match & got[at])
        if len(mine):
            played.matches.add(events.ids[mine], np.full(len(mine), interest.id, dtype=object))
    counts.wanted += int(wanted.sum())
    counts.false_positives += int((got & ~wanted).sum())
    counts.false_negatives += int((wanted & ~got).sum())
