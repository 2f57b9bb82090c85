"""What guards have refused, read from the switches when somebody looks: all who look at a time share one reading."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping

from flowsieve.control.dispatcher import Dispatcher
from flowsieve.flow.guard import Refusals

FRESH_SECONDS = 1.0  # for so long a reading is as good as another
LONGEST_SECONDS = 2.0  # to wait for switches that do not answer; what was read before is told then


class GuardCounts:
    """The events of each host that its switch did not take in."""

    def __init__(self, dispatcher: Dispatcher, clock: Callable[[], float] = time.monotonic) -> None:
        self._dispatcher = dispatcher
        self._clock = clock
        self._last: Mapping[str, Refusals] = {}
        self._read_at = float("-inf")
        self._reading: asyncio.Task[None] | None = None

    async def now(self) -> Mapping[str, Refusals]:
        """As of a second ago, at most."""
        if self._clock() - self._read_at >= FRESH_SECONDS:
            if self._reading is None or self._reading.done():
                self._reading = asyncio.create_task(self._read())
            await asyncio.wait({self._reading}, timeout=LONGEST_SECONDS)
            if self._reading.done():
                self._reading.result()  # an error of ours is told to whoever looks
        return self._last

    async def _read(self) -> None:
        self._last = await self._dispatcher.refusals()
        self._read_at = self._clock()
