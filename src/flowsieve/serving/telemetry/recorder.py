"""Has telemetry landed: rows as they come, subscriptions and the index when they change; and old files removed.

It works in a thread, so that neither calls nor switches wait for a disk. Where nothing can be written, rows are lost
and counted, and it is tried again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection
from pathlib import Path

from flowsieve.content.schema import Schema
from flowsieve.control.transition.served_index import ServedIndex
from flowsieve.flow.interest import Interest
from flowsieve.serving.telemetry.intake import Pending, ReportIntake
from flowsieve.serving.telemetry.landing import TelemetryFolder

log = logging.getLogger(__name__)

SUBSCRIPTIONS_SECONDS = 3.0  # at least, from one file of subscriptions to the next
SUBSCRIPTION_SECONDS = 2e-5  # more for each subscription in it: it takes about a twentieth of that to write
SWEEP_SECONDS = 30.0
OFF_SECONDS = 1.0  # between looks whether it was turned on


class TelemetryRecorder:
    """`run` has all of it done until it is cancelled. `subscriptions` and `index` are those in force now."""

    def __init__(
        self,
        intake: ReportIntake,
        folder: Path,
        subscriptions: Callable[[], Collection[Interest]],
        index: Callable[[], ServedIndex],
    ) -> None:
        self._intake, self._files = intake, TelemetryFolder(folder)
        self._subscriptions, self._index = subscriptions, index
        self._prepared = False
        self._landed_interests: list[Interest] | None = None
        self._landed_index: ServedIndex | None = None
        self._interests_at = self._sweep_at = 0.0  # when each is done next, at the earliest

    async def run(self) -> None:
        """Until cancelled, and once more then, land what has come."""
        try:
            while True:
                settings = self._intake.settings
                await asyncio.sleep(settings.interval if settings.on else OFF_SECONDS)
                await self.look()
        finally:
            self._land(self._intake.drain(), self._index().plan.schema)

    async def look(self) -> None:
        """Do what is due."""
        pending, index, now = self._intake.drain(), self._index(), time.monotonic()
        interests = self._changed_interests(now) if self._intake.settings.on else None
        work = asyncio.ensure_future(asyncio.to_thread(self._work, pending, index, interests, now))
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError:
            await work  # what was begun is finished: nobody else writes meanwhile
            raise
        finally:
            self._intake.landed(pending)

    def _work(
        self, pending: Pending, index: ServedIndex, interests: list[Interest] | None, now: float
    ) -> None:
        if self._intake.settings.on:
            self._tried(lambda: self._land_standing(index, interests))
        self._land(pending, index.plan.schema)
        if now >= self._sweep_at and self._files.folder.is_dir():
            self._sweep_at = now + SWEEP_SECONDS
            self._tried(self._sweep)

    def _changed_interests(self, now: float) -> list[Interest] | None:
        """All subscriptions, if they are to be landed; they are values, and can be read in a thread."""
        if now < self._interests_at:
            return None
        there = list(self._subscriptions())
        return there if there != self._landed_interests else None

    def _land_standing(self, index: ServedIndex, interests: list[Interest] | None) -> None:
        """What is in force, if that has changed."""
        if not self._prepared:
            self._files.prepare()
            self._prepared = True
        counters = self._intake.counters
        if index != self._landed_index:
            counters.bytes += self._files.land_index(index, _now_us())
            self._landed_index = index
        if interests is not None:
            counters.bytes += self._files.land_subscriptions(interests, _now_us())
            self._landed_interests = interests
            pause = SUBSCRIPTIONS_SECONDS + SUBSCRIPTION_SECONDS * len(interests)
            self._interests_at = time.monotonic() + pause

    def _land(self, pending: Pending, schema: Schema) -> None:
        if len(pending.rows) and not self._tried(lambda: self._land_rows(pending, schema)):
            self._intake.counters.lost += len(pending.rows)

    def _land_rows(self, pending: Pending, schema: Schema) -> None:
        landed, size = self._files.land(pending.rows, schema, _now_us())
        counters = self._intake.counters
        counters.landed += landed
        counters.bytes += size
        counters.trouble = None

    def _sweep(self) -> None:
        gone, left = self._files.sweep(self._intake.settings.keep, time.time())
        self._intake.counters.removed += gone
        self._intake.counters.files = left

    def _tried(self, work: Callable[[], None]) -> bool:
        """Whether some work could be done; what stands in the way is told once."""
        try:
            work()
        except Exception as error:  # a full disk, a folder that is gone, or a mistake of ours: events flow on
            self._prepared, self._landed_index, self._landed_interests = False, None, None
            self._interests_at = 0.0
            if self._intake.counters.trouble is None:
                why = f"telemetry cannot be kept in {self._files.folder}: {error}"
                log.error("%s", why, exc_info=not isinstance(error, OSError))
                self._intake.counters.trouble = why
            return False
        return True


def _now_us() -> int:
    return time.time_ns() // 1000
