"""When to look again whether a switch that was found to be full has more room by now."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

FIRST_SECONDS, LAST_SECONDS = 10.0, 600.0  # between two attempts; doubled from one that fails to the next
SOON_SECONDS = 1.0  # after something has changed: more may come


@dataclass(slots=True)
class Search:
    """The attempts at one switch."""

    at: float  # the next one
    pause: float  # after it
    tried_at: float | None = None


class RoomSchedule:
    """The switches that are bounded, and when each is tried without its bound."""

    def __init__(self) -> None:
        self._searches: dict[str, Search] = {}

    def bounded(self, switch: str, now: float) -> None:
        """A switch was found to be full, perhaps because it was tried."""
        search = self._searches.setdefault(switch, Search(now, FIRST_SECONDS))
        if search.tried_at is not None:
            failed = now - search.tried_at < search.pause
            search.pause = min(2 * search.pause, LAST_SECONDS) if failed else FIRST_SECONDS
        search.at = now + search.pause

    def changed(self, switch: str, now: float) -> None:
        """There may be more room: it was connected anew, or somebody has changed its table."""
        search = self._searches.get(switch)
        if search is not None:
            earliest = now if search.tried_at is None else search.tried_at + search.pause
            search.at = min(search.at, max(now + SOON_SECONDS, earliest))

    def due(self, bounds: Iterable[str], now: float) -> list[str]:
        """The switches, of those that are bounded, to be tried now; each is then taken for tried."""
        some = [switch for switch in bounds if self._search(switch, now).at <= now]
        for switch in some:
            search = self._searches[switch]
            search.tried_at, search.at = now, now + search.pause
        return some

    def next_at(self, bounds: Iterable[str], now: float) -> float | None:
        """When to look again; None while nothing is bounded."""
        return min((self._search(switch, now).at for switch in bounds), default=None)

    def _search(self, switch: str, now: float) -> Search:
        """The attempts at a switch; one whose bound was remembered is tried like one that was found just now."""
        return self._searches.setdefault(switch, Search(now + FIRST_SECONDS, FIRST_SECONDS))
