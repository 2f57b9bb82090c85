"""Figures that are looked up when somebody asks for them: tables, switches, links, queues."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from flowsieve.control.discovery.differences import Difference, DifferenceKind
from flowsieve.control.discovery.findings import SwitchPort
from flowsieve.control.dispatcher import Dispatcher
from flowsieve.control.transition.crossing import CrossingPhase
from flowsieve.network.mend import Edge, tree_edges
from flowsieve.serving.telemetry.intake import ReportIntake
from flowsieve.serving.telemetry.rows import REASONS, ROW_KINDS


@dataclass(frozen=True)
class Sources:
    """The parts of a service that are looked at; those that it does not have are left out."""

    dispatcher: Dispatcher
    connected: Callable[[], Collection[str]]
    suppressed: Callable[[], Collection[Edge]] = frozenset
    queues: Mapping[str, Callable[[], int]] = field(default_factory=dict)
    clients: Callable[[], int] | None = None
    journal_bytes: Callable[[], int] | None = None
    inband: Callable[[], Mapping[str, int]] = dict
    late_events: Callable[[], Mapping[str, int]] = dict
    differences: Callable[[], Collection[Difference]] = tuple
    floods: Callable[[], Mapping[SwitchPort, float]] = dict
    sharing: Callable[[], Mapping[str, Any]] | None = None
    telemetry: ReportIntake | None = None


class Gauges(Collector):
    """Reads its sources at each collection, once it has some."""

    def __init__(self) -> None:
        self.sources: Sources | None = None

    def describe(self) -> Iterator[Metric]:
        """Nothing is known of it before there are sources."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        if self.sources is not None:
            yield from _switches(self.sources)
            yield from _links(self.sources)
            yield from _service(self.sources)
            yield from _index(self.sources.dispatcher)
            if self.sources.sharing is not None:
                yield from _sharing(self.sources.sharing())
            if self.sources.telemetry is not None:
                yield from _telemetry(self.sources.telemetry)


def _switches(sources: Sources) -> Iterator[Metric]:
    dispatcher, state = sources.dispatcher, sources.dispatcher.state
    connected, troubles = frozenset(sources.connected()), dispatcher.troubles
    flows = _gauge("flows", "Entries that a switch's table should have", "switch")
    capacity = _gauge("flow_capacity", "Entries that a switch has room for; absent if unbounded", "switch")
    reached = _gauge("switch_connected", "Whether a switch is connected", "switch")
    settled = _gauge("switch_settled", "Whether a switch has acknowledged all that it should hold", "switch")
    hindered = _gauge("switch_hindered", "Whether others keep events from their way at a switch", "switch")
    in_the_way = dispatcher.hindrances
    for switch in state.topology.switches:
        hindered.add_metric([switch], switch in in_the_way)
        flows.add_metric([switch], state.size(switch))
        room = state.capacity(switch)
        if room is not None:
            capacity.add_metric([switch], room)
        reached.add_metric([switch], switch in connected)
        settled.add_metric([switch], switch not in troubles)
    guarded = _gauge("guard_entries", "Entries by which a switch takes in events", "switch")
    for switch, guard in dispatcher.guards.items():
        guarded.add_metric([switch], guard.entries)
    yield from (flows, capacity, reached, settled, hindered, guarded)
    yield _one("switches", "Switches of the network", len(state.topology.switches))
    there = connected.intersection(state.topology.switches)
    yield _one("switches_connected", "Switches that are connected", len(there))
    done = "Flow operations that switches have acknowledged"
    yield CounterMetricFamily("flowsieve_flow_operations", done, dispatcher.operations)


def _links(sources: Sources) -> Iterator[Metric]:
    state = sources.dispatcher.state
    yield _one("links", "Links of the network", len(state.topology.links))
    yield _one("links_down", "Links that are down or flapping", len(state.down))
    ways, edges = sources.dispatcher.detours, tree_edges(state.trees)
    yield _one("links_protected", "Edges of trees with a detour around them", len(edges & ways.keys()))
    over = len(state.down & edges & ways.keys())
    yield _one("links_bridged", "Edges of trees that are down and bridged by a detour", over)
    yield _one("links_suppressed", "Links left out as flapping", len(sources.suppressed()))
    whole = "Whether the trees follow the cabling and no edge of them is fenced"
    yield _one("trees_whole", whole, sources.dispatcher.mended)
    kinds = Counter(difference.kind for difference in sources.differences())
    differences = _gauge("differences", "Points in which the network is not as configured", "kind")
    for kind in DifferenceKind:
        differences.add_metric([kind.value], kinds[kind])
    yield differences
    yield _one("ports_flooding", "Ports from which too many LLDP frames come", len(sources.floods()))


def _service(sources: Sources) -> Iterator[Metric]:
    state = sources.dispatcher.state
    interests = _gauge("interests", "Subscriptions and advertisements in force", "side")
    interests.add_metric(["subscription"], len(state.subscriptions))
    interests.add_metric(["advertisement"], len(state.advertisements))
    queues = _gauge("queue_length", "What waits in a queue", "queue")
    for name, length in sources.queues.items():
        queues.add_metric([name], length())
    inband = CounterMetricFamily(
        "flowsieve_inband_packets", "Packets of in-band control, by what became of them", labels=["what"]
    )
    for what, count in sources.inband().items():
        inband.add_metric([what], count)
    late = CounterMetricFamily(
        "flowsieve_late_events",
        "Events of an index that is not used any more, by what became of them",
        labels=["what"],
    )
    for what, count in sources.late_events().items():
        late.add_metric([what], count)
    yield from (interests, queues, inband, late)
    known, text = sources.dispatcher.publishers, "Publishers that do not hold all filters that they should"
    yield _one("publishers_behind", text, 0 if known is None else len(known.behind))
    if sources.clients is not None:
        yield _one("clients", "Sessions of clients", sources.clients())
    if sources.journal_bytes is not None:
        yield _one("journal_bytes", "Size of the journal", sources.journal_bytes())


def _index(dispatcher: Dispatcher) -> Iterator[Metric]:
    transition = dispatcher.transition
    yield _one("index_version", "The version of the index in force", dispatcher.index.version)
    phase = _gauge(
        "index_phase", "1 for the phase of the way to another index that the network is in", "phase"
    )
    for each in CrossingPhase:
        at = transition.crossing is not None and transition.crossing.phase is each
        phase.add_metric([each.value], float(at))
    yield phase
    yield _one(
        "index_hosts_behind", "Hosts whose publishers use a former index", len(transition.hosts_behind)
    )
    seconds = _gauge("transition_seconds", "What the phases of the last transition took", "phase")
    operations = _gauge("transition_operations", "Flow operations of the last transition", "phase")
    last = {each.phase: each for each in transition.records[-1].phases} if transition.records else {}
    for each in CrossingPhase:
        seconds.add_metric([each.value], last[each].seconds if each in last else 0.0)
        operations.add_metric([each.value], float(last[each].operations) if each in last else 0.0)
    yield from (seconds, operations)


def _sharing(told: Mapping[str, Any]) -> Iterator[Metric]:
    owned = _gauge("partitions_owned", "Partitions that a configurator owns", "configurator")
    waiting = _gauge("parts_waiting", "Parts of requests that wait for a configurator", "configurator")
    for name, each in told["configurators"].items():
        owned.add_metric([name], each["partitions"])
        waiting.add_metric([name], each["waiting"])
    yield from (owned, waiting)
    unowned = sum(not each["ready"] for each in told["partitions"])
    yield _one("partitions_not_taken_up", "Partitions that nobody decides on at the moment", unowned)
    moved = "Partitions that went over to another configurator since the controller leads"
    yield CounterMetricFamily("flowsieve_migrations", moved, told["migrations"])
    lost = "Configurators that others took over from since the controller leads"
    yield CounterMetricFamily("flowsieve_configurators_lost", lost, told["takeovers"])


def _telemetry(intake: ReportIntake) -> Iterator[Metric]:
    counters = intake.counters
    yield _one("telemetry_share", "Share of events that clients are to report; 0: none", intake.terms.share)
    landed = CounterMetricFamily("flowsieve_telemetry_rows", "Rows of telemetry landed", labels=["kind"])
    for kind in ROW_KINDS:
        landed.add_metric([kind], counters.landed[kind])
    aside = CounterMetricFamily(
        "flowsieve_telemetry_set_aside", "Rows of telemetry set aside, by what is wrong", labels=["reason"]
    )
    for reason in REASONS:
        aside.add_metric([reason], counters.aside[reason])
    yield from (landed, aside)
    for name, text, value in (
        ("reports", "Reports of telemetry taken", counters.reports),
        ("turned_away", "Rows of telemetry turned away: there were too many", counters.turned_away),
        ("lost", "Rows of telemetry that could not be written", counters.lost),
        ("bytes", "Bytes of telemetry written", counters.bytes),
        ("files_removed", "Files of telemetry removed when their time was over", counters.removed),
    ):
        yield CounterMetricFamily(f"flowsieve_telemetry_{name}", text, value)
    yield _one("telemetry_files", "Files of telemetry that are kept", counters.files)


def _gauge(name: str, text: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"flowsieve_{name}", text, labels=labels)


def _one(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"flowsieve_{name}", text, value)
