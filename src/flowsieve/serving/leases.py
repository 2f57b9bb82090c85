"""How long what a client asked for stays in force without a word from it."""

from __future__ import annotations

from collections.abc import Iterable


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

    def renew(self, session: str, now: float) -> None:
        """A session is heard of; a longer time that it was promised before stays."""
        self._until[session] = max(now + self.seconds, self._until.get(session, now))

    def renew_all(self, sessions: Iterable[str], now: float) -> None:
        for session in sessions:
            self.renew(session, now)

    def end(self, session: str) -> None:
        """A session is over."""
        self._until.pop(session, None)

    def runs(self, session: str) -> bool:
        """Whether a session was heard of since it ended, if it ever did."""
        return session in self._until

    def ended(self, now: float) -> tuple[str, ...]:
        """The sessions whose time is up."""
        return tuple(session for session, until in self._until.items() if until <= now)

    def __len__(self) -> int:
        return len(self._until)
