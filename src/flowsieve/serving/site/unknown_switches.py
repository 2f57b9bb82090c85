"""Switches that connect though nobody has named them: logged once, counted while they keep coming, not served."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from flowsieve.control.discovery.differences import Difference, DifferenceKind
from flowsieve.network.names import SwitchId
from flowsieve.southbound.kinds import IDENTITY_KEY

log = logging.getLogger(__name__)

KEPT_SECONDS = 60.0  # after the last time; a switch that is refused comes again within seconds
MOST = 64


class UnknownSwitches:
    """Those that were refused of late; `met` adds one."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: dict[SwitchId, float] = {}  # when it was last; the latest comes last

    def met(self, switch: SwitchId) -> None:
        """A switch that nobody has named was refused."""
        if switch not in self._current():
            log.warning("not as configured: %s", _sentence(switch))
        self._seen.pop(switch, None)
        self._seen[switch] = self._clock()
        if len(self._seen) > MOST:
            del self._seen[next(iter(self._seen))]

    @property
    def differences(self) -> tuple[Difference, ...]:
        """Those that came of late, as differences from the configuration."""
        return tuple(
            Difference(DifferenceKind.SWITCH_UNKNOWN, _sentence(each)) for each in sorted(self._current())
        )

    def _current(self) -> dict[SwitchId, float]:
        now = self._clock()
        self._seen = {each: at for each, at in self._seen.items() if now - at < KEPT_SECONDS}
        return self._seen


def _sentence(switch: SwitchId) -> str:
    kind = IDENTITY_KEY.replace("_", " ")
    return f"a switch of the {kind} {switch} connects, and [switches] has none of that id; it is not served"
