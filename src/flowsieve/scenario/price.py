"""What tables and subscriptions cost in unwanted traffic, measured on the scenario's own events or on even draws."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flowsieve.client.publisher import packets_of, screen
from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Attribute
from flowsieve.control.state import ControlState
from flowsieve.flow.diff import FlowOp, Kind
from flowsieve.flow.entry import Flow
from flowsieve.index.dzset import DzSet
from flowsieve.scenario.read import EventStep, Scenario
from flowsieve.southbound.embedded import EmbeddedNetwork

DRAWS = 20_000


def traffic(scenario: Scenario, state: ControlState, seed: int = 0) -> EventBatch:
    """The events to price by: those of the scenario that its publishers may still send, else even draws from what is advertised."""
    steps = [step.events for step in scenario.steps if isinstance(step, EventStep)]
    found = [events.take(screen(events, state.advertisements.values()).good) for events in steps]
    found = [events for events in found if len(events)]
    if found:
        return EventBatch.joined(found)
    hosts = sorted({interest.host for interest in state.advertisements.values()})
    if not hosts:
        return EventBatch.from_events(scenario.schema, "", [])
    rng = np.random.default_rng(seed)
    columns = {attribute.name: _draw(attribute, rng) for attribute in scenario.schema}
    ids = np.array([str(i) for i in range(DRAWS)], dtype=object)
    draws = EventBatch(scenario.schema, ids, np.array(hosts, dtype=object)[rng.integers(0, len(hosts), DRAWS)], columns)
    return draws.take(screen(draws, state.advertisements.values()).good)


def _draw(attribute: Attribute, rng: np.random.Generator) -> NDArray[Any]:
    if attribute.kind == "string":
        return np.array([f"{word:016x}" for word in rng.integers(0, 2**63, DRAWS)], dtype=object)
    if attribute.kind == "float":
        return np.clip(rng.uniform(attribute.min, attribute.max, DRAWS), attribute.min, attribute.max)
    return rng.integers(int(attribute.min), int(attribute.max) + 1, DRAWS).astype(float)


def false_positive_share(scenario: Scenario, state: ControlState, tables: Mapping[str, Iterable[Flow]]) -> float:
    """The share of the copies delivered by these tables that nobody at the host wanted."""
    events = traffic(scenario, state)
    network = EmbeddedNetwork(scenario.topology)
    for switch, flows in tables.items():
        network.apply(switch, [FlowOp(Kind.INSTALL, flow) for flow in flows])
    network.settle()
    packets = packets_of(events, state.plan, scenario.tag)
    number = {host: i for i, host in enumerate(scenario.topology.hosts)}
    source = np.array([number[host] for host in events.hosts], dtype=np.int64)
    batch = network.deliver(source[packets.rows], packets.hi, packets.lo, scenario.tag.group.family)
    got = np.zeros((len(number), len(events)), np.bool_)
    got[batch.host, packets.rows[batch.event]] = True
    wanted = np.zeros_like(got)
    for interest in state.subscriptions.values():
        wanted[number[interest.host]] |= interest.filter.matches_batch(events)
    return float((got & ~wanted).sum() / max(1, got.sum()))


def unwanted_share(scenario: Scenario, state: ControlState, host: str, filter: Filter, dz: DzSet) -> float:
    """The share of what a subscription's dz bring to its host that the filter does not match."""
    events = traffic(scenario, state)
    events = events.take(events.hosts != host)
    encoded = state.plan.encode_batch(events)
    brought = np.unique(encoded.rows[dz.covers_many(encoded.hi, encoded.lo, encoded.length)])
    if not len(brought):
        return 0.0
    return float(1 - filter.matches_batch(events.take(brought)).mean())
