"""How long a client may be silent before what it asked for ends, also if the controller is restarted meanwhile."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from flowsieve.control.memory.journal import Promised
from flowsieve.control.memory.scribe import Scribe
from flowsieve.control.requests.ledger import Ledger
from flowsieve.errors import JournalError

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0


class Leases:
    """Sessions, and when each ends unless it is heard of again; the time is the caller's.

    >>> leases = Leases(30)
    >>> leases.renew("ann", now=0)
    >>> leases.ended(now=29), leases.ended(now=30)
    ((), ('ann',))
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._until: dict[str, float] = {}

    def renew(self, session: str, now: float, promised: float = 0.0) -> None:
        """A session is heard of; a longer time that it was promised before stays."""
        self._until[session] = max(now + max(self.seconds, promised), self._until.get(session, now))

    def end(self, session: str) -> None:
        """A session is over."""
        self._until.pop(session, None)

    def runs(self, session: str) -> bool:
        """Whether a session was heard of since it ended, if it ever did."""
        return session in self._until

    def ended(self, now: float) -> tuple[str, ...]:
        """The sessions whose time is up."""
        return tuple(session for session, until in self._until.items() if until <= now)

    def longest(self, now: float) -> float:
        """For how long some session may yet be silent."""
        return max(self._until.values(), default=now) - now

    def __len__(self) -> int:
        return len(self._until)


class Promises:
    """The longest lease that a client may count on, journalled: a controller restarted with a shorter one keeps to it.

    More is written before it is promised. Less is written only when nobody counts on more: its sessions were heard of
    since, and so told, or are over.
    """

    def __init__(
        self, leases: Leases, ledger: Ledger, scribe: Scribe, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._leases, self._ledger, self._scribe, self._clock = leases, ledger, scribe, clock
        self._floor = 0.0  # what is about to be promised
        self._turn = asyncio.Lock()  # what is being written is not yet to be seen

    async def allow(self, seconds: float) -> None:
        """From now on leases of so many seconds may be given."""
        async with self._turn:
            if seconds > self._ledger.promised:
                await self._write(seconds)

    @asynccontextmanager
    async def allowing(self, seconds: float) -> AsyncIterator[None]:
        """Have leases of so many seconds allowed for a block that goes over to them, or fails to."""
        self._floor = seconds
        try:
            await self.allow(seconds)
            yield
        finally:
            self._floor = 0.0

    async def run(self) -> None:
        """Until cancelled, see whether a promise has been kept."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await self._look()
            except JournalError as error:
                log.error("%s", error)

    async def _look(self) -> None:
        async with self._turn:
            seconds = max(self._leases.seconds, self._floor)
            if self._ledger.promised > seconds >= self._leases.longest(self._clock()):
                await self._write(seconds)

    async def _write(self, seconds: float) -> None:
        await self._scribe.write(Promised(seconds), lambda: self._ledger.promise(seconds))
