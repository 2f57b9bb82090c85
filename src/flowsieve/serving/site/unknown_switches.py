"""Switches that connect, and that nobody has named: told once, counted as long as they come, and not served."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from flowsieve.control.discovery.findings import Difference, Kind

log = logging.getLogger(__name__)

KEPT_SECONDS = 60.0  # after the last time; a switch that is refused comes again within seconds
MOST = 64


class UnknownSwitches:
    """`met` takes note of a datapath id."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: dict[int, float] = {}  # when it was last; the latest comes last

    def met(self, datapath: int) -> None:
        """A switch of that datapath id was refused."""
        if datapath not in self._current():
            log.warning("not as configured: %s", _sentence(datapath))
        self._seen.pop(datapath, None)
        self._seen[datapath] = self._clock()
        if len(self._seen) > MOST:
            del self._seen[next(iter(self._seen))]

    @property
    def differences(self) -> tuple[Difference, ...]:
        """Those that came of late, as differences from the configuration."""
        return tuple(Difference(Kind.SWITCH_UNKNOWN, _sentence(each)) for each in sorted(self._current()))

    def _current(self) -> dict[int, float]:
        now = self._clock()
        self._seen = {each: at for each, at in self._seen.items() if now - at < KEPT_SECONDS}
        return self._seen


def _sentence(datapath: int) -> str:
    return f"a switch of the datapath id {datapath:016x} connects, and [switches] has none of that id; it is not served"
