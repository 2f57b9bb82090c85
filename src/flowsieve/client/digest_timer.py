"""When a publisher tells how much it has sent: soon after it has fallen quiet, a few times, and now and then before."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

QUIET_SECONDS = 0.2  # without an event: quiet
BUSY_SECONDS = 1.0  # from one time to the next while there is no quiet
TIMES = 4  # with twice the pause before each, since a digest can be lost, too


class DigestTimer:
    """A timer that costs next to nothing while events are sent, and is at rest when all was told."""

    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._sent = False  # something was, since the last tick
        self._untold = False
        self._told_at = self._loop.time()
        self._left = 0

    def disturb(self) -> None:
        """An event was sent."""
        self._sent = self._untold = True
        if self._left < TIMES:  # it was quiet
            if self._timer is not None:
                self._timer.cancel()
            self._told_at = self._loop.time()
            self._timer = self._loop.call_later(QUIET_SECONDS, self._tick)
            self._left = TIMES

    def close(self) -> None:
        """Tell at once what is untold, for the last time."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._untold:
            self._untold = False
            self._tell()

    def _tick(self) -> None:
        pause = QUIET_SECONDS
        if self._sent:
            self._sent, self._left = False, TIMES
            tell = self._loop.time() - self._told_at >= BUSY_SECONDS
        else:
            tell = True
            self._left -= 1
            pause *= 2 ** (TIMES - self._left)
        self._timer = self._loop.call_later(pause, self._tick) if self._left else None
        if tell:
            self._told_at = self._loop.time()
            self._untold = False
            self._tell()
