"""Where reports of clients are taken in: as much as can be worked on, in fair shares, each report once.

Who reports more than its share is told to wait, and drops it; what clients are told to keep to follows how many of them
report. So what telemetry costs is bounded, whoever reports.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from flowsieve.content.schema import Schema
from flowsieve.errors import BadInput
from flowsieve.protocol.limits import LONGEST_PAUSE
from flowsieve.protocol.report import REPORT_ROWS, Report, TelemetryTerms
from flowsieve.serving.fair_shares import FairShares
from flowsieve.serving.telemetry.rows import OTHER_SHARE, Reporting, ReportRows, checked_rows
from flowsieve.serving.telemetry.settings import TelemetrySettings

CALL_ROWS = 32  # as many rows as a call costs, however few it brings
FEWEST_REPORTS = 8  # of as many rows as one may have that there is room for
REPORTS = 100  # in an interval; if more come, clients are told to report more rarely
WAIT_SECONDS = 2.0  # for whoever comes with too much
MOST_SESSIONS = 65_536  # that are known
TOLD_SHARES = 4  # that clients may still hold after the share was changed


@dataclass(slots=True)
class TelemetryCounters:
    """Rows that were landed, set aside, turned away since there were too many, and lost to a disk; bytes and files."""

    landed: Counter[str] = field(default_factory=Counter)
    aside: Counter[str] = field(default_factory=Counter)
    turned_away: int = 0
    lost: int = 0
    reports: int = 0
    bytes: int = 0
    files: int = 0
    removed: int = 0
    trouble: str | None = None  # why nothing can be landed, if so


@dataclass(slots=True)
class Pending:
    """Rows that wait to be landed, and what each host has taken for them."""

    rows: ReportRows = field(default_factory=ReportRows)
    taken: Counter[str] = field(default_factory=Counter)


class ReportIntake:
    """`take` takes a report; `drain` gives what came since the last time, and `landed` says that it was written."""

    def __init__(self, settings: TelemetrySettings) -> None:
        self.counters = TelemetryCounters()
        self._settings = settings
        self._every = settings.interval
        self._shares = FairShares(self._most)
        self._told = [settings.share]
        self._pending = Pending()
        self._calls = 0  # in this interval
        self._sessions: dict[str, Reporting] = {}
        self._homes: dict[bytes, str] = {}  # hosts of publishers

    @property
    def settings(self) -> TelemetrySettings:
        return self._settings

    @settings.setter
    def settings(self, settings: TelemetrySettings) -> None:
        """Go over to other settings; clients hear of them with their next answers."""
        self._settings = settings
        self._shares.whole = self._most
        self._every = max(settings.interval, self._every)
        if settings.share in self._told:
            self._told.remove(settings.share)
        self._told = [*self._told, settings.share][-TOLD_SHARES:]

    @property
    def _most(self) -> int:
        return max(2 * CALL_ROWS, int(self._settings.rate * self._settings.interval))

    @property
    def terms(self) -> TelemetryTerms:
        """What clients are told to report."""
        rows = max(1, min(REPORT_ROWS, self._shares.whole // FEWEST_REPORTS))
        return TelemetryTerms(self._settings.share, min(self._every, LONGEST_PAUSE), rows)

    def meet(self, session: str, host: str, publisher: bytes) -> Reporting:
        """Know a session and the id that it publishes under; the one met longest ago makes room for it."""
        self.left(session)
        if len(self._sessions) >= MOST_SESSIONS:
            self.left(next(iter(self._sessions)))
        known = self._sessions[session] = Reporting(host, publisher)
        self._homes[publisher] = host
        return known

    def take(
        self, host: str, session: str, number: int, publisher: bytes | None, report: Report, schema: Schema
    ) -> dict[str, Any]:
        """The answer to a report of a session; its number grows with each. `publisher` is the session's id, if known.

        Raises BadInput where it speaks for another publisher.
        """
        self._calls += 1
        told: dict[str, Any] = {"taken": 0, "telemetry": self.terms.to_json()}
        if not self._settings.on:
            return told
        if publisher is not None and report.publisher != publisher:
            raise BadInput(
                f"this session publishes as {publisher.hex()}, and reports as {report.publisher.hex()}"
            )
        known = self._sessions.get(session)
        if known is not None and number <= known.last_call:
            return told  # it came before
        cost = max(CALL_ROWS, report.rows)
        if not self._shares.take(host, cost):
            self.counters.turned_away += report.rows
            return told | {"wait": WAIT_SECONDS}
        self._pending.taken[host] += cost
        if known is None or known.publisher != report.publisher:
            known = self.meet(session, host, report.publisher)
        known.last_call = number
        self.counters.reports += 1
        if report.share not in self._told or not report.share:
            self.counters.aside[OTHER_SHARE] += report.rows
            return told
        rows = checked_rows(report, session, known, schema, self._homes)
        self.counters.aside += rows.aside
        rows.aside.clear()
        self._pending.rows.extend(rows)
        return told | {"taken": len(rows)}

    def left(self, session: str) -> None:
        """A session is over."""
        known = self._sessions.pop(session, None)
        if known is not None:
            self._homes.pop(known.publisher, None)

    def drain(self) -> Pending:
        """What came since the last time; an interval is over."""
        ratio, self._calls = self._calls / REPORTS, 0
        self._every = min(max(self._settings.interval, self._every * ratio), LONGEST_PAUSE)
        pending, self._pending = self._pending, Pending()
        return pending

    def landed(self, pending: Pending) -> None:
        """What was drained takes no more room."""
        for host, cost in pending.taken.items():
            self._shares.give_back(host, cost)

    def told(self) -> dict[str, Any]:
        """What an operator is shown."""
        counters = self.counters
        return {
            "mode": self.terms.mode,
            "share": self.terms.share,
            "every": round(self.terms.every, 3),
            "reports": counters.reports,
            "rows": dict(counters.landed),
            "set_aside": dict(counters.aside),
            "turned_away": counters.turned_away,
            "lost": counters.lost,
            "bytes": counters.bytes,
            "files": counters.files,
            "trouble": counters.trouble,
        }
