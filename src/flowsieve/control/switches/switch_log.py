"""Tells an operator which switches connect, for the first time or again, and which are gone, and why."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from flowsieve.southbound.fabric import Connected, Disconnected, SwitchEvent

log = logging.getLogger(__name__)


class SwitchLog:
    """A listener to what switches report, until it is told that the controller ends."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._there: set[str] = set()
        self._gone_at: dict[str, float] = {}  # of those that were there before
        self._ended = False

    def heard(self, event: SwitchEvent) -> None:
        """Take note of an event."""
        if self._ended:
            return
        match event:
            case Connected(switch):
                if switch in self._gone_at:
                    away = self._clock() - self._gone_at.pop(switch)
                    log.info("switch %s is connected again, after %.1f s", switch, away)
                else:
                    log.info("switch %s is connected for the first time since the start", switch)
                self._there.add(switch)
            case Disconnected(switch, reason) if switch in self._there:
                self._there.discard(switch)
                self._gone_at[switch] = self._clock()
                log.warning(
                    "switch %s is gone: %s; it goes on forwarding by what it holds, if it runs",
                    switch,
                    reason,
                )
            case Disconnected(switch, reason):
                log.warning("switch %s cannot be reached: %s", switch, reason)
            case _:
                pass

    def end(self) -> None:
        """That connections are closed from now on is nothing to tell."""
        self._ended = True
