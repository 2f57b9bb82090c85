"""How many LLDP frames come in on each port in a second: a link sends one, and a host that sends many floods."""

from __future__ import annotations

from dataclasses import dataclass

from flowsieve.control.discovery.findings import SwitchPort

WINDOW_SECONDS = 1.0
FLOOD = 10  # frames a second; switches hand over no more than a few of a port, see `flow.punt`
KEPT_SECONDS = 5.0  # a flood is over when it was not seen for so long


@dataclass(slots=True)
class _Window:
    """Frames since a time, how many there were in the last whole window, and when that was too many."""

    start: float
    count: int = 0
    rate: float = 0.0
    flooded_at: float | None = None


class FrameRates:
    """Hears of frames with `note`; the time is the caller's.

    >>> rates, place = FrameRates(), SwitchPort("s1", 3)
    >>> for n in range(100):
    ...     rates.note(place, n / 50)
    >>> rates.floods(now=2.0), rates.floods(now=20.0)
    ({SwitchPort(switch='s1', port=3): 50.0}, {})
    """

    def __init__(self) -> None:
        self._windows: dict[SwitchPort, _Window] = {}

    def note(self, place: SwitchPort, now: float) -> None:
        """A frame has come in on a port."""
        window = self._windows.setdefault(place, _Window(now))
        if now - window.start >= WINDOW_SECONDS:
            window.rate = window.count / (now - window.start)
            if window.rate > FLOOD:
                window.flooded_at = now
            window.start, window.count = now, 0
        window.count += 1

    def forget(self, place: SwitchPort) -> None:
        """A port is down, or its switch is gone."""
        self._windows.pop(place, None)

    def floods(self, now: float) -> dict[SwitchPort, float]:
        """The ports that flood, and how many frames of each came in in a second."""
        return {
            place: window.rate
            for place, window in self._windows.items()
            if window.flooded_at is not None and now - window.flooded_at < KEPT_SECONDS and window.rate > 0
        }
