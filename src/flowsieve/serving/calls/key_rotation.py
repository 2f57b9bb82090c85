"""When the keys of events are changed: each stage is journalled first, and begins when nobody is behind the last."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from flowsieve.control.memory.journal import Keyed
from flowsieve.control.memory.scribe import Scribe
from flowsieve.control.requests.ledger import Ledger
from flowsieve.errors import JournalError
from flowsieve.protocol.event_keys import EventKeys
from flowsieve.serving.calls.event_secret import EventSecret, signing_epoch

log = logging.getLogger(__name__)

ROTATION_SECONDS = 86_400.0
LOOK_SECONDS = 0.5
RETRY_SECONDS = 30.0  # where the journal cannot be written
DRAIN_SECONDS = 1.0  # for what was under way when the last session went over
GRACE_LEASES = (
    4  # after which a session that says nothing of its keys, though it is heard of, holds up nobody
)


class KeyHolders(Protocol):
    """The sessions that keys were given to."""

    def behind(self, stage: int) -> bool:
        """Whether one of them has not said that it is at a stage."""
        ...


@dataclass(frozen=True, slots=True)
class Clocks:
    """The time that passes, and the time of day, which survives restarts."""

    passing: Callable[[], float] = time.monotonic
    of_day: Callable[[], float] = time.time


class KeyRotation:
    """The stage that is in force, and its keys; `period` is how many seconds the keys of an epoch are used for.

    After a restart the controller knows the sessions that hold something, and they are behind until they have said
    what keys they have. The others are owed nothing before they ask for it, and get the keys of now with the answer.
    """

    def __init__(
        self, secret: EventSecret, ledger: Ledger, scribe: Scribe, period: float, clocks: Clocks | None = None
    ) -> None:
        self.period = period
        self._secret, self._ledger, self._scribe = secret, ledger, scribe
        self._clocks = clocks or Clocks()
        self._due_at: float | None = None  # since when the next stage is to begin
        self._ready_at: float | None = None  # since when nobody is behind
        self._demanded = False

    @property
    def stage(self) -> int:
        return self._ledger.key_stage

    def publisher(self, host: str, session: str) -> bytes:
        """The id that a session publishes under."""
        return self._secret.publisher(host, session)

    def keys(self, host: str, session: str, *, checks: bool = False) -> EventKeys:
        """What a session gets now."""
        return self._secret.keys(self.stage, self.publisher(host, session), checks=checks)

    def rotate(self) -> None:
        """Have new keys as soon as that is possible, whatever the period says."""
        self._demanded = True

    async def run(self, holders: KeyHolders, lease: Callable[[], float]) -> None:
        """Until cancelled, begin stages when it is time for them; `lease` is what sessions are promised now."""
        pause = LOOK_SECONDS
        while True:
            await asyncio.sleep(pause)
            pause = LOOK_SECONDS
            try:
                await self.look(holders, lease())
            except JournalError as error:
                log.error("the keys for events stay as they are: %s", error)
                pause = RETRY_SECONDS

    async def look(self, holders: KeyHolders, lease: float) -> None:
        """Begin the next stage if it is time for it."""
        if not self._ledger.keyed_at:  # nothing was written yet: the period begins
            await self._write(self.stage)
        elif self._due() and self._all_there(holders, max(lease, self._ledger.promised)):
            await self._write(self.stage + 1)
            self._due_at = self._ready_at = None
            if self.stage % 2:
                self._demanded = False
                log.info("events are signed with the keys of epoch %d from now on", signing_epoch(self.stage))
            else:
                log.info("events with keys of epochs before %d are dropped", signing_epoch(self.stage))

    def _due(self) -> bool:
        used = self._clocks.of_day() - self._ledger.keyed_at
        over = not 0 <= used < self.period  # negative: the clock was set back
        return self._demanded or over or bool(self.stage % 2)  # what was begun is finished

    def _all_there(self, holders: KeyHolders, lease: float) -> bool:
        now = self._clocks.passing()
        if self._due_at is None:
            self._due_at = now
        if now >= self._due_at + GRACE_LEASES * lease:
            return True
        if holders.behind(self.stage):
            self._ready_at = None
            return False
        if self._ready_at is None:
            self._ready_at = now
        return now >= self._ready_at + DRAIN_SECONDS

    async def _write(self, stage: int) -> None:
        at = self._clocks.of_day()
        await self._scribe.write(Keyed(stage, at), lambda: self._ledger.keyed(stage, at))
