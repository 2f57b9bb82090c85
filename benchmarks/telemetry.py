"""What telemetry costs: processor time for each event, on its way out and in, with telemetry off, of 1 % and of all.

A publisher's outbox and a subscriber's inbox work turn by turn, each turn with other terms, without a network: what is
compared is the library's own work, and a socket's would make the differences look smaller. Then what a report costs
the client that puts it together and the controller that takes, checks and lands it; and what a hundred clients cost a
controller that each have more to tell than it takes.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.bench import Result, at_most, rounded
from flowsieve.client.inbox import Inbox
from flowsieve.client.outbox import EventDatagram, Outbox
from flowsieve.client.stats import Stats
from flowsieve.client.telemetry import Telemetry, counts_of
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.header.encoding import encoding_of
from flowsieve.index.dzset import DzSet
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.protocol.call import REPORT, Call
from flowsieve.protocol.event_keys import EventKeys
from flowsieve.protocol.event_mac import MacChecker, Signer, publisher_key
from flowsieve.protocol.limits import REPORT_BYTES
from flowsieve.protocol.report import Report, TelemetryTerms
from flowsieve.serving.telemetry.intake import ReportIntake
from flowsieve.serving.telemetry.landing import TelemetryFolder
from flowsieve.serving.telemetry.settings import TelemetrySettings

SCHEMA = Schema.parse(
    {
        "price": {"type": "int", "min": 0, "max": 1023},
        "volume": {"type": "float", "min": 0.0, "max": 1e6},
        "side": {"type": "enum", "values": ["buy", "sell"]},
    }
)
TERMS = {"off": TelemetryTerms(), "1 %": TelemetryTerms(0.01), "all": TelemetryTerms(1.0)}
TURNS, EVENTS = 60, 400  # of each kind, and of each turn
PUBLISHER, EPOCH_KEY, DATA = bytes(range(8)), bytes(16), bytes(50)
CLIENTS, SECONDS = 100, 5
MOST_SAMPLED, MOST_CORE = 10.0, 0.35


class Pair:
    """A publisher and a subscriber, and what each reports."""

    def __init__(self) -> None:
        encoding = encoding_of("ipv6")
        self.outbox = Outbox(
            RegularPlan.make(SCHEMA, room=encoding.room),
            encoding,
            PUBLISHER,
            Signer(1, publisher_key(EPOCH_KEY, PUBLISHER)),
        )
        self.outbox.advertised["all"] = Filter.parse("True", SCHEMA)
        self.stats = Stats()
        self.inbox = Inbox(SCHEMA, encoding, bytes(8), self.stats)
        self.inbox.checker = MacChecker(EventKeys(2, (1, EPOCH_KEY), ((1, EPOCH_KEY),)).check)
        self.inbox.open("some", Filter.parse("price < 512", SCHEMA))
        self.inbox.confirm("some", DzSet.of([""]))
        self.near, self.far = Telemetry(SCHEMA, PUBLISHER), Telemetry(SCHEMA, bytes(8))
        self.row: list[EventDatagram] = []

    def adopt(self, terms: TelemetryTerms) -> None:
        for each in (self.near, self.far):
            each.adopt(terms)
        self.inbox.came = self.far.came if terms.on else None

    def publish(self, events: list[dict[str, object]]) -> None:
        """As a client's `publish_nowait` does it, less the socket."""
        for event in events:
            self.row += self.outbox.event(event, DATA)
            if self.near.terms.share:
                self.near.published(self.outbox.seq, event)

    def receive(self) -> None:
        for datagram in self.row:
            self.inbox.take(datagram.payload)
        self.row.clear()

    def reports(self) -> list[Report]:
        """All that is to be told."""
        told = []
        for telemetry, counts in (
            (self.near, counts_of(Stats(sent=self.outbox.seq))),
            (self.far, counts_of(self.stats)),
        ):
            while (report := telemetry.report(counts, REPORT_BYTES)) is not None:
                telemetry.taken(report)
                told.append(report)
        return told


def processor(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def on_the_way() -> tuple[dict[str, float], dict[str, float], float, list[Report]]:
    """Seconds to publish and to receive an event by what is reported, those to put a row together, and reports."""
    pair = Pair()
    publishing: dict[str, list[float]] = {name: [] for name in TERMS}
    receiving: dict[str, list[float]] = {name: [] for name in TERMS}
    putting, told = [], []
    events = [
        {"price": n * 37 % 1024, "volume": n * 7.25, "side": ("buy", "sell")[n % 2]} for n in range(EVENTS)
    ]
    for _, name in zip(range(len(TERMS) * TURNS), cycle(TERMS), strict=False):
        pair.adopt(TERMS[name])
        publishing[name].append(processor(lambda: pair.publish(events)) / EVENTS)
        receiving[name].append(processor(pair.receive) / EVENTS)
        made: list[Report] = []
        spent = processor(lambda made=made: made.extend(pair.reports()))  # type: ignore[misc]
        if name == "all":
            putting.append(spent / sum(report.rows for report in made))
            told += made
    found = [
        {name: statistics.median(each) for name, each in some.items()} for some in (publishing, receiving)
    ]
    return found[0], found[1], statistics.median(putting), told


def body(report: Report, number: int, session: str, host: str) -> bytes:
    call = Call(session, number, host, "0" * 32, REPORT, deadline=10.0, report=report.to_json())
    return json.dumps(call.to_json()).encode()


def taken(intake: ReportIntake, body: bytes) -> dict[str, object]:
    """As the controller takes a call, less what all calls cost."""
    call = Call.parse(json.loads(body))
    return intake.take(call.host, call.session, call.number, None, Report.parse(call.report), SCHEMA)


def at_the_controller(reports: list[Report]) -> tuple[float, float, float]:
    """Seconds to take and check a row, to land it, and the bytes that it takes."""
    intake = ReportIntake(TelemetrySettings(share=1.0, rate=1_000_000))
    bodies = [body(report, n, "0" * 32, "h1") for n, report in enumerate(reports, 1)]
    checking = processor(lambda: [taken(intake, each) for each in bodies])
    pending = intake.drain()
    rows = len(pending.rows)
    with TemporaryDirectory() as place:
        folder = TelemetryFolder(Path(place) / "telemetry")
        folder.prepare()
        folder.land(pending.rows, SCHEMA, 0)  # what is imported is no row's
        sizes: list[int] = []
        landing = processor(lambda: sizes.append(folder.land(pending.rows, SCHEMA, 1)[1]))
    return checking / rows, landing / rows, sizes[0] / rows


def a_hundred_at_once(report: Report) -> tuple[float, int, int]:
    """The share of a core that clients cost which all tell as much as they can, and rows taken and turned away."""
    intake = ReportIntake(TelemetrySettings(share=1.0))
    numbers, spent = [0] * CLIENTS, 0.0
    rows = 0
    intervals = round(SECONDS / intake.settings.interval)
    for _ in range(intervals):
        for client in range(CLIENTS):
            for _ in range(8):  # reports that a client makes at a time
                numbers[client] += 1
                # Another publisher each: what one has told before is not checked as far.
                one = Report(
                    1.0,
                    client.to_bytes(8),
                    report.counts,
                    report.counts,
                    report.names,
                    _later(report, numbers[client]),
                )
                said = body(one, numbers[client], f"{client:032x}", f"h{client}")
                start = time.process_time()
                told = taken(intake, said)
                spent += time.process_time() - start
                if "wait" in told:
                    break
        pending = intake.drain()
        rows += len(pending.rows)
        intake.landed(pending)
    return spent / SECONDS, rows, intake.counters.turned_away


def _later(report: Report, number: int) -> list[list[object]]:
    return [[number * 4096 + n, at, values] for n, (_, at, values) in enumerate(report.events)]


def run() -> Result:
    publishing, receiving, putting, reports = on_the_way()
    checking, landing, size = at_the_controller(reports)
    core, rows, away = a_hundred_at_once(next(report for report in reports if report.events))
    more = {
        name: (
            100 * (publishing[name] / publishing["off"] - 1),
            100 * (receiving[name] / receiving["off"] - 1),
        )
        for name in ("1 %", "all")
    }
    return Result(
        "telemetry",
        {
            **{f"to publish an event, {name}, us": rounded(1e6 * each) for name, each in publishing.items()},
            **{f"to receive an event, {name}, us": rounded(1e6 * each) for name, each in receiving.items()},
            "more to publish with 1 % and all, %": [rounded(more["1 %"][0]), rounded(more["all"][0])],
            "more to receive with 1 % and all, %": [rounded(more["1 %"][1]), rounded(more["all"][1])],
            "to put a row of a report together, us": rounded(1e6 * putting),
            "controller, to take and check a row, us": rounded(1e6 * checking),
            "controller, to land a row, us": rounded(1e6 * landing),
            "bytes of a landed row": rounded(size),
            "a hundred clients at once: rows taken a second": rounded(rows / SECONDS),
            "the same: rows turned away a second": rounded(away / SECONDS),
        },
        goals={
            "what 1 % adds to publishing, %": at_most(more["1 %"][0], MOST_SAMPLED),
            "what 1 % adds to receiving, %": at_most(more["1 %"][1], MOST_SAMPLED),
            "a hundred clients that tell all they can, cores": at_most(core, MOST_CORE),
        },
    )
