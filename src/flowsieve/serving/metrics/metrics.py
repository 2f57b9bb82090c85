"""What the service counts, in the form that Prometheus reads.

Whoever does something says so by a plain method; what can be looked up at any time is read when somebody asks (see
`gauges`). Nothing here is global: each service has its own. All of it belongs on the service's event loop.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TypeGuard

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from flowsieve.client.stats import Stats
from flowsieve.control.discovery.findings import SwitchPort
from flowsieve.protocol.answer import KINDS
from flowsieve.protocol.call import OPS
from flowsieve.serving.metrics.gauges import Gauges, Sources

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OK = "ok"
# Clients choose what they report, but not labels: one client could fill the memory of all monitoring tools.
KNOWN_OPS = frozenset(OPS)
OUTCOMES = frozenset({OK, *KINDS})
OTHER = "other"
MOST_SESSIONS = 100_000  # whose last report is remembered
MOST_COUNTED = 1 << 53  # by one client; beyond it a counter loses single steps
MOST_FIRST = 1000  # first events of one report

ACKNOWLEDGED = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
APPENDED = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0)
CLIENT_COUNTS = {
    "sent": "Events that clients have published",
    "received": "Events that came to clients",
    "delivered": "Events handed to subscriptions, once for each",
    "false_positives": "Events that came within the dz of a client's subscriptions and match none of its filters",
    "passed_over": "Events that came to a client for another one of its host, or let through by a small table",
    "duplicates": "Second copies of an event that came to clients",
    "repeats": "Events that came to clients again, to another of their addresses",
    "malformed": "Datagrams that came to clients and are no events",
    "forged": "Datagrams that came to clients and were not signed by the publisher that they name",
    "overflow": "Events for which a client's queue or its host's receive buffer had no room",
    "lost": "Packets wanted by clients that were sent and never came",
    "unchecked": "Events for which clients could not tell whether some before them were lost",
    "late": "Events that clients published with filters that were past their lease, since they were stopped meanwhile",
    "unsent": "Events that clients published and that never left their hosts",
    "unreported": "Rows of telemetry that clients dropped: there were too many, or the controller did not take them",
}
# How many subscriptions have got a first event, and how long all of them together had waited since they were asked for.
FIRST_EVENTS = ("first_events", "first_event_us")
assert set(CLIENT_COUNTS) == {field.name for field in fields(Stats)}


class Metrics:
    """The counters and histograms of one service; `watch` adds what is read from its parts."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._reports: dict[str, dict[str, int]] = {}
        self._requests = self._counter("requests", "Requests, by kind and outcome", "op", "outcome")
        self._asked: dict[tuple[str, str], tuple[Counter, Histogram | None]] = {}
        self._acknowledgement = self._histogram(
            "acknowledgement_seconds",
            "From a request to its acknowledgement: the switches that it depends on have followed",
            ACKNOWLEDGED,
            "op",
        )
        self._first_event = self._histogram(
            "first_event_seconds",
            "From a subscription to the first event that it got, as clients report it",
            ACKNOWLEDGED,
        )
        self._clients = {
            name: self._counter(f"client_{name}", f"{text}, as clients report it")
            for name, text in CLIENT_COUNTS.items()
        }
        self._forgotten = self._counter(
            "client_reports_forgotten",
            "Clients that reported longest ago and had to make room; they are counted anew if they report again",
        )
        self._strange = self._counter(
            "client_reports_strange", "Numbers in reports of clients that are no counts, and were passed over"
        )
        self._repairs = self._counter(
            "repairs", "Tables that were not as they should be, and set right", "switch"
        )
        self._repair_ops = self._counter("repair_operations", "Flow operations that repairs took", "switch")
        self._mendings = self._counter(
            "mendings", "Times that trees were mended, or followed a link come back"
        )
        self._mending = self._histogram(
            "mending_seconds", "From the report of a link to trees that do without it", ACKNOWLEDGED
        )
        self._append = self._histogram("journal_append_seconds", "Time of an append to the journal", APPENDED)
        self._entries = self._counter("journal_entries", "Entries appended to the journal")
        self._gauges = Gauges()
        self.registry.register(self._gauges)

    # Requests.

    def asked(self, op: str, outcome: str, seconds: float) -> None:
        """A request was answered; what counts as time to acknowledgement are those that were served."""
        op = op if op in KNOWN_OPS else OTHER
        outcome = outcome if outcome in OUTCOMES else OTHER
        if (op, outcome) not in self._asked:  # a few dozen
            timed = self._acknowledgement.labels(op) if outcome == OK else None
            self._asked[op, outcome] = self._requests.labels(op, outcome), timed
        count, timed = self._asked[op, outcome]
        count.inc()
        if timed is not None:
            timed.observe(seconds)

    # Clients.

    def client_reported(self, session: str, stats: Mapping[str, object]) -> None:
        """A client says what it has counted since it connected; what is new since its last report is added.

        Reports may come twice, late or in another order: a count that is lower than it was adds nothing. Beside the
        counts of `Stats`, a report may have `FIRST_EVENTS`; where several are new at once, each gets their mean.
        A client may have been told nonsense by others: what is no count is passed over, and counted as strange.
        """
        told = {name: stats[name] for name in (*CLIENT_COUNTS, *FIRST_EVENTS) if name in stats}
        counts = {name: count for name, count in told.items() if _is_count(count)}
        self._strange.inc(len(told) - len(counts))
        before = self._reports.pop(session, {})
        new = {name: max(0, count - before.get(name, 0)) for name, count in counts.items()}
        self._reports[session] = before | {name: before.get(name, 0) + more for name, more in new.items()}
        if len(self._reports) > MOST_SESSIONS:
            del self._reports[next(iter(self._reports))]
            self._forgotten.inc()
        for name, counter in self._clients.items():
            counter.inc(new.get(name, 0))
        times, microseconds = (new.get(name, 0) for name in FIRST_EVENTS)
        for _ in range(min(times, MOST_FIRST)):
            self._first_event.observe(microseconds / times / 1e6)

    def client_left(self, session: str) -> None:
        """A session has ended; no report of it comes any more."""
        self._reports.pop(session, None)

    # The network.

    def repaired(self, switch: str, operations: int) -> None:
        """A table was read and set right, with so many operations."""
        self._repairs.labels(switch).inc()
        self._repair_ops.labels(switch).inc(operations)

    def mended(self, seconds: float) -> None:
        """The trees follow the cabling again; it took so long since the first report."""
        self._mendings.inc()
        self._mending.observe(seconds)

    # The journal.

    def appended(self, entries: int, seconds: float) -> None:
        """So many entries are safe in the journal."""
        self._entries.inc(entries)
        self._append.observe(seconds)

    # For the tools.

    def watch(self, sources: Sources) -> None:
        """From now on, read these whenever somebody asks."""
        self._gauges.sources = sources

    @property
    def floods(self) -> Mapping[SwitchPort, float]:
        """The ports from which too many LLDP frames come, and how many in a second."""
        sources = self._gauges.sources
        return sources.floods() if sources is not None else {}

    def render(self) -> bytes:
        """All figures as they are now, in Prometheus' text format (`CONTENT_TYPE`)."""
        return generate_latest(self.registry)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"flowsieve_{name}", text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        return Histogram(f"flowsieve_{name}", text, labels, registry=self.registry, buckets=buckets)


def _is_count(value: object) -> TypeGuard[int]:
    return type(value) is int and 0 <= value <= MOST_COUNTED
