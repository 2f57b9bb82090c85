"""Rows of reports, checked one by one: what a client says is not believed further than it can be.

A row is about an event that belongs to the share that was asked for, and a publisher speaks of its own events alone, of
each once, and of nothing that the schema does not know. What is bad is set aside and counted, by its reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from flowsieve.content.event import check_event
from flowsieve.content.schema import Schema, is_unicode
from flowsieve.errors import BadValue
from flowsieve.protocol.event_message import Value
from flowsieve.protocol.limits import MAX_CONTENT, MAX_NUMBER
from flowsieve.protocol.report import EventCounts, Report, publisher_of
from flowsieve.protocol.sampling import is_sampled, threshold_of

LATEST_US = 253_402_300_799_000_000  # the end of the year 9999, the last that a file can tell
SESSION_DIGITS = 16  # of a session that are told: all of them would let others go on with it
MOST_COUNTED = 1_000_000_000  # events of one session from a report to the next

EVENTS, DELIVERIES, COUNTS = ROW_KINDS = ("events", "deliveries", "counts")
# Why rows are set aside.
SHAPE, VALUES, AGAIN, OTHER_SHARE, UNEVEN = "shape", "values", "again", "other_share", "uneven_counts"
REASONS = (SHAPE, VALUES, AGAIN, OTHER_SHARE, UNEVEN)


class LandedEvent(NamedTuple):
    """An event as its publisher reports it, at a host."""

    id: str
    sent_at_us: int
    host: str
    weight: float
    values: Mapping[str, object]


class LandedDelivery(NamedTuple):
    """An event that came to a host, and whether one of its applications wanted it."""

    id: str
    host: str
    wanted: bool
    weight: float


class LandedCounts(NamedTuple):
    """What a session has counted since its last report."""

    host: str
    session: str
    counts: EventCounts


@dataclass(slots=True)
class ReportRows:
    """What was taken of reports, and how many rows were set aside, by reason."""

    events: list[LandedEvent] = field(default_factory=list)
    deliveries: list[LandedDelivery] = field(default_factory=list)
    counts: list[LandedCounts] = field(default_factory=list)
    aside: Counter[str] = field(default_factory=Counter)

    def __len__(self) -> int:
        return len(self.events) + len(self.deliveries) + len(self.counts)

    def extend(self, other: ReportRows) -> None:
        self.events += other.events
        self.deliveries += other.deliveries
        self.counts += other.counts
        self.aside += other.aside


@dataclass(slots=True)
class Reporting:
    """What is known of a session that reports: its publisher's id, the last number of its events, and its counts."""

    host: str
    publisher: bytes
    last_call: int = 0
    last_seq: int = 0
    counts: EventCounts | None = None


def checked_rows(
    report: Report, session: str, known: Reporting, schema: Schema, homes: Mapping[bytes, str]
) -> ReportRows:
    """The rows of a report that a session made; `known` follows. `homes` are hosts of publishers, where known.

    What came from a publisher of the same host is left out: the network has not carried it.
    """
    rows = ReportRows()
    _add_counts(rows, report, session, known)
    if report.events:
        _add_events(rows, report, known, schema)
    for came, wanted in ((report.wanted, True), (report.unwanted, False)):
        for name, numbers in came.items():
            publisher = publisher_of(name)
            if publisher is None:
                rows.aside[SHAPE] += len(numbers)
            elif homes.get(publisher) != known.host:
                _add_deliveries(rows, report, known.host, publisher, numbers, wanted)
    return rows


def _add_counts(rows: ReportRows, report: Report, session: str, known: Reporting) -> None:
    before = known.counts if known.counts is not None else report.since
    new, known.counts = report.counts.since(before), report.counts
    if max(new) > MOST_COUNTED or new.received != new.delivered + new.unwanted:
        rows.aside[UNEVEN] += 1
    elif any(new):
        rows.counts.append(LandedCounts(known.host, session[:SESSION_DIGITS], new))


def _add_events(rows: ReportRows, report: Report, known: Reporting, schema: Schema) -> None:
    publisher, names, weight = known.publisher, report.names, 1 / report.share
    threshold = threshold_of(report.share)
    if sorted(names) != sorted(schema.names):
        rows.aside[VALUES] += len(report.events)
        return
    prefix = publisher.hex()
    for row in report.events:
        if not isinstance(row, list) or len(row) != 3:
            rows.aside[SHAPE] += 1
            continue
        seq, at_us, values = row
        numbers = _is_number(seq, 1, MAX_NUMBER) and _is_number(at_us, 0, LATEST_US)
        if not numbers or not _are_values(values, len(names)):
            rows.aside[SHAPE] += 1
        elif seq <= known.last_seq:
            rows.aside[AGAIN] += 1
        elif not is_sampled(publisher, seq, threshold):
            rows.aside[OTHER_SHARE] += 1
        else:
            try:
                event = check_event(schema, dict(zip(names, values, strict=True)))
            except BadValue:
                rows.aside[VALUES] += 1
                continue
            known.last_seq = seq
            rows.events.append(LandedEvent(f"{prefix}-{seq}", at_us, known.host, weight, event))


def _add_deliveries(
    rows: ReportRows, report: Report, host: str, publisher: bytes, numbers: Sequence[Any], wanted: bool
) -> None:
    prefix, weight, threshold = publisher.hex(), 1 / report.share, threshold_of(report.share)
    for seq in numbers:
        if not _is_number(seq, 1, MAX_NUMBER):
            rows.aside[SHAPE] += 1
        elif not is_sampled(publisher, seq, threshold):
            rows.aside[OTHER_SHARE] += 1
        else:
            rows.deliveries.append(LandedDelivery(f"{prefix}-{seq}", host, wanted, weight))


def _is_number(value: object, least: int, most: int) -> bool:
    return type(value) is int and least <= value <= most


def _are_values(values: object, count: int) -> bool:
    """Whether they could be so many of an event: a datagram has only so much room."""
    if not isinstance(values, list) or len(values) != count:
        return False
    texts = [value for value in values if isinstance(value, str)]
    return (
        all(isinstance(value, Value) for value in values)
        and sum(map(len, texts)) <= MAX_CONTENT
        and all(map(is_unicode, texts))
    )
