"""What tables and subscriptions cost, in entries and in unwanted traffic."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from flowsieve.client.batch_packets import screen
from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Attribute
from flowsieve.control.request import Op, Request
from flowsieve.control.state import ControlState
from flowsieve.errors import SwitchError
from flowsieve.flow.diff import FlowOp, OpKind
from flowsieve.flow.entry import Flow
from flowsieve.flow.interest import Interest
from flowsieve.flow.tables.compiler import Side
from flowsieve.index.dzset import DzSet
from flowsieve.scenario.read import EventStep, Scenario
from flowsieve.southbound.embedded.network import EmbeddedNetwork

if TYPE_CHECKING:
    from flowsieve.scenario.plane import Plane

DRAWS = 20_000


@dataclass(frozen=True, slots=True)
class Quote:
    """What a subscription would cost: entries and operations where tables change, the dz it would have.

    `false_positive_share` is the part of what its dz would bring to the host that its filter does not match.
    Where it cannot be served, `reason` says why, and no table changes. `told` are the publishers that would learn of
    the filter.
    """

    entries: Mapping[str, int]
    operations: Mapping[str, int]
    dz: DzSet
    false_positive_share: float
    reason: str | None
    told: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        return self.reason is None


def quote(scenario: Scenario, state: ControlState, host: str, wanted: Filter) -> Quote:
    """Price a subscription by making it, in a state that is given up for it."""
    before = {switch: len(state.table(switch)) for switch in scenario.topology.switches}
    name = next(name for name in map(str, count()) if name not in state.subscriptions)
    outcome = state.step([Request(Op.SUBSCRIBE, name, host, wanted)])
    fits = not outcome.refused
    dz = state.subscriptions[name].dz if fits else state.cover(wanted)
    changes = outcome.changes if fits else {}
    return Quote(
        entries={switch: len(state.table(switch)) - before[switch] for switch in changes},
        operations={switch: len(parts) for switch, parts in changes.items()},
        dz=dz,
        false_positive_share=unwanted_share(scenario, state, host, wanted, dz),
        reason=None if fits else str(outcome.refused[0][1]),
    )


def unwanted_share(scenario: Scenario, state: ControlState, host: str, wanted: Filter, dz: DzSet) -> float:
    """The share of what a subscription's dz bring to its host that the filter does not match."""
    brought, matched = brought_by_dz(scenario, state, host, wanted, dz)
    return 1 - matched / brought if brought else 0.0


def brought_by_dz(
    scenario: Scenario, state: ControlState, host: str, wanted: Filter, dz: DzSet
) -> tuple[int, int]:
    """How many events a subscription's dz bring to its host, and how many of them its filter matches."""
    events = traffic(scenario, state.advertisements.values())
    events = events.take(events.hosts != host)
    encoded = state.plan.encode_batch(events)
    brought = np.unique(encoded.rows[dz.covers_many(encoded.hi, encoded.lo, encoded.length)])
    return len(brought), int(wanted.matches_batch(events.take(brought)).sum())


def false_positive_share(
    scenario: Scenario, plane: Plane, tables: Mapping[str, Iterable[Flow]]
) -> float | None:
    """The share of the copies delivered by these tables that nobody at the host wanted.

    None where it cannot be told, because packets multiply on a loop of the tables.
    """
    events = traffic(scenario, plane.interests(Side.PUBLISHER).values())
    network = EmbeddedNetwork(scenario.topology)
    for switch, flows in tables.items():
        network.apply(switch, [FlowOp(OpKind.INSTALL, flow) for flow in flows])
    packets = plane.packets(events)
    number = {host: i for i, host in enumerate(scenario.topology.hosts)}
    source = np.array([number[host] for host in events.hosts], dtype=np.int64)
    try:
        batch = network.deliver(source[packets.rows], packets.hi, packets.lo, packets.family, packets.sources)
    except SwitchError:
        return None
    got = np.zeros((len(number), len(events)), np.bool_)
    got[batch.host, packets.rows[batch.event]] = True
    wanted = np.zeros_like(got)
    for interest in plane.interests(Side.SUBSCRIBER).values():
        if interest.filter is not None:
            wanted[number[interest.endpoint]] |= interest.filter.matches_batch(events)
    return float((got & ~wanted).sum() / max(1, got.sum()))


def traffic(scenario: Scenario, advertised: Collection[Interest], seed: int = 0) -> EventBatch:
    """The events to price by: those of the scenario that its publishers may still send, else even draws."""
    steps = [step.events for step in scenario.steps if isinstance(step, EventStep)]
    found = [events.take(screen(events, advertised).good) for events in steps]
    found = [events for events in found if len(events)]
    if found:
        return EventBatch.joined(found)
    hosts = np.array(sorted({interest.endpoint for interest in advertised}), dtype=object)
    if not len(hosts):
        return EventBatch.from_events(scenario.schema, "", [])
    rng = np.random.default_rng(seed)
    columns = {attribute.name: _draw(attribute, rng) for attribute in scenario.schema}
    ids = np.array([str(i) for i in range(DRAWS)], dtype=object)
    draws = EventBatch(scenario.schema, ids, hosts[rng.integers(0, len(hosts), DRAWS)], columns)
    return draws.take(screen(draws, advertised).good)


def _draw(attribute: Attribute, rng: np.random.Generator) -> NDArray[Any]:
    """Values of an attribute, each as likely as any other."""
    if attribute.kind == "string":
        return np.array([f"{word:016x}" for word in rng.integers(0, 2**63, DRAWS)], dtype=object)
    if attribute.kind == "float":
        part = rng.random(DRAWS)  # a range may be wider than the largest float
        return np.clip(attribute.min * (1 - part) + attribute.max * part, attribute.min, attribute.max)
    return rng.integers(int(attribute.min), int(attribute.max) + 1, DRAWS).astype(float)
