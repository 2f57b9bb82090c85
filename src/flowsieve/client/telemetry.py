"""What an application reports of its events, where the controller asks for that: kept within bounds, told now and then.

Publishing and receiving cost a hash more; whatever does not fit, or is not taken, is dropped and counted.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

import msgpack

from flowsieve.client.stats import Stats
from flowsieve.content.event import check_event
from flowsieve.content.schema import Schema
from flowsieve.errors import BadMessage, BadValue, FlowsieveError
from flowsieve.protocol.call import REPORT
from flowsieve.protocol.limits import LONGEST_PAUSE
from flowsieve.protocol.report import NO_TELEMETRY, NOTHING, EventCounts, Report, TelemetryTerms
from flowsieve.protocol.sampling import ALL, event_hash

MOST_KEPT = 1 << 14  # rows that wait to be reported; each has no more bytes than an event
REPORTS = 8  # at a time, one after the other
LIST_BYTES = 4  # before the items of a list or a map, at most
REPORT_SECONDS = 10.0  # for an answer, be it of a controller that is restarted meanwhile
SILENCE_SECONDS = 5.0  # after a report that was not answered
LAST_SECONDS = 1.0  # for what is left when the application leaves
JITTER = 0.2  # of a pause, so that those who began together do not report together


class PublishedRow(NamedTuple):
    """An event that was published: its number, the time in microseconds, and what it said."""

    seq: int
    at_us: int
    event: Mapping[str, object]


class CameRow(NamedTuple):
    """An event that came, and whether the application wanted it."""

    publisher: bytes
    seq: int
    wanted: bool


class Telemetry:
    """The rows that wait. `published` and `came` are called for each event while `terms` ask for some of them."""

    def __init__(self, schema: Schema, publisher: bytes) -> None:
        self.terms = NO_TELEMETRY
        self.dropped = 0  # rows that are never reported
        self._schema, self._publisher = schema, publisher
        self._threshold = 0
        self._published: deque[PublishedRow] = deque()
        self._came: deque[CameRow] = deque()
        self._told = NOTHING  # with the last report that was taken

    def __len__(self) -> int:
        return len(self._published) + len(self._came)

    def adopt(self, terms: TelemetryTerms) -> None:
        """Report by these terms; rows that were chosen by another share are dropped."""
        if terms.share != self.terms.share:
            self.dropped += len(self)
            self._published.clear()
            self._came.clear()
        self.terms, self._threshold = terms, terms.threshold

    def published(self, seq: int, event: Mapping[str, object]) -> None:
        """An event was published."""
        if self._threshold < ALL and event_hash(self._publisher, seq) >= self._threshold:
            return
        if len(self) >= MOST_KEPT:
            self.dropped += 1
        else:
            self._published.append(PublishedRow(seq, time.time_ns() // 1000, dict(event)))

    def came(self, publisher: bytes, seq: int, wanted: bool) -> None:
        """An event of another publisher came for the first time."""
        if self._threshold < ALL and event_hash(publisher, seq) >= self._threshold:
            return
        if len(self) >= MOST_KEPT:
            self.dropped += 1
        else:
            self._came.append(CameRow(publisher, seq, wanted))

    def report(self, counts: EventCounts, room: int) -> Report | None:
        """The next report, of as many rows as there are bytes of room for; None if there is nothing new to say."""
        if not self and counts == self._told:
            return None
        names = self._schema.names
        bare = Report(self.terms.share, self._publisher, counts, self._told, names).to_json()
        names_bytes = _size({"names": names, "events": [], "wanted": {}, "unwanted": {}}) + 3 * LIST_BYTES
        room -= _size(bare) + names_bytes
        events, wanted, unwanted = [], dict[str, list[int]](), dict[str, list[int]]()
        left = self.terms.rows
        while left and self._published:
            row = self._event_row(self._published[0])
            room -= _size(row) if row is not None else 0
            if room < 0:
                break
            self._published.popleft()
            if row is None:
                self.dropped += 1
            else:
                events.append(row)
                left -= 1
        while left and self._came and room >= 0:
            publisher, seq, fits = self._came[0]
            came, name = wanted if fits else unwanted, publisher.hex()
            room -= _size(seq) + (0 if name in came else _size(name) + LIST_BYTES)
            if room < 0:
                break
            self._came.popleft()
            came.setdefault(name, []).append(seq)
            left -= 1
        if left == self.terms.rows and self:  # not even one of them fits
            self.dropped += 1
            (self._published or self._came).popleft()
        return Report(self.terms.share, self._publisher, counts, self._told, names, events, wanted, unwanted)

    def taken(self, report: Report) -> None:
        """The controller has it."""
        self._told = report.counts

    def lost(self, report: Report) -> None:
        """Nobody has it; its counts are told with the next one."""
        self.dropped += report.rows

    def _event_row(self, row: PublishedRow) -> list[Any] | None:
        try:
            return [row.seq, row.at_us, list(check_event(self._schema, row.event).values())]
        except BadValue:  # the application has changed it since
            return None


def counts_of(stats: Stats) -> EventCounts:
    """What a report counts, from what a client counts: of what came, each event once."""
    unwanted = stats.false_positives + stats.passed_over
    received = stats.received - stats.duplicates - stats.repeats
    return EventCounts(stats.sent, received, received - unwanted, unwanted)


class ReportingConnection(Protocol):
    """What carries reports."""

    @property
    def report_room(self) -> int:
        """How many bytes a report may have, as MessagePack."""
        ...

    async def ask(
        self, op: str, deadline: float = ..., *, margin: float = ..., **fields: Any
    ) -> Mapping[str, Any]: ...


class Reporter:
    """Sends reports in the background, while there is something to tell and the controller asks for it.

    `counts` are those of now; `switched` hears whether events are to be told of.
    """

    def __init__(
        self,
        telemetry: Telemetry,
        connection: ReportingConnection,
        counts: Callable[[], EventCounts],
        switched: Callable[[bool], None],
    ) -> None:
        self._telemetry, self._connection, self._counts = telemetry, connection, counts
        self._switched = switched
        self._running: asyncio.Task[None] | None = None

    def hear(self, told: object) -> None:
        """Go over to the terms of an answer; those that cannot be read change nothing."""
        with suppress(BadMessage):
            self.adopt(TelemetryTerms.parse(told))

    def adopt(self, terms: TelemetryTerms) -> None:
        """Report by these terms from now on."""
        self._telemetry.adopt(terms)
        self._switched(terms.on)
        if terms.on and (self._running is None or self._running.done()):
            self._running = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Tell what is left, if that can be done in a moment."""
        if self._running is None:
            return
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)
        if self._telemetry.terms.on:
            with suppress(TimeoutError):
                async with asyncio.timeout(LAST_SECONDS):
                    await self._tell()
        self._telemetry.adopt(NO_TELEMETRY)  # what is left is dropped

    async def _run(self) -> None:
        pause = self._telemetry.terms.every * random.random()
        while self._telemetry.terms.on:
            await asyncio.sleep(pause)
            wait = await self._tell()
            pause = max(wait, self._telemetry.terms.every) * (1 - JITTER + 2 * JITTER * random.random())

    async def _tell(self) -> float:
        """Report what there is; how many seconds the controller does not want to hear of us."""
        for _ in range(REPORTS):
            report = self._telemetry.report(self._counts(), self._connection.report_room)
            if report is None:
                return 0
            taken = False
            try:
                told = await self._connection.ask(REPORT, REPORT_SECONDS, margin=0.0, report=report.to_json())
                taken = "wait" not in told
            except FlowsieveError:
                return SILENCE_SECONDS  # it is not there, or does not understand us
            finally:  # also if we are cancelled
                (self._telemetry.taken if taken else self._telemetry.lost)(report)
            self.hear(told.get("telemetry"))
            if not taken:
                return _seconds(told["wait"])
            if not self._telemetry.terms.on:
                return 0
        return 0


def _size(value: object) -> int:
    return len(msgpack.packb(value))


def _seconds(found: object) -> float:
    return min(float(found), LONGEST_PAUSE) if isinstance(found, int | float) and found > 0 else 1.0
