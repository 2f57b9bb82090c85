"""Which session addresses events by which index, as far as it has said; so it is known when an old one can go.

A controller that was restarted knows who holds something (the ledger does), and of nobody what index it uses: all are
behind until they say otherwise. Clients that never say, since they are of an older release, stay behind for good.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator

from flowsieve.control.request import Op, Request
from flowsieve.control.requests.ledger import Ledger

LOOK_SECONDS = 0.1  # between two looks at all sessions; interests may end without a word of their session


class IndexHolders:
    """A book of sessions; who holds what is the ledger's to say."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._said: dict[str, int] = {}
        self._news = asyncio.Event()

    def said(self, session: str, version: int) -> None:
        """A session says that it uses an index."""
        if self._said.get(session) != version:
            self._said[session] = version
            self._news.set()

    def ended(self, session: str) -> None:
        """A session is over."""
        self._said.pop(session, None)
        self._news.set()

    def version_of(self, session: str) -> int | None:
        """The index that a session uses; None if it has not said."""
        return self._said.get(session)

    def behind(self, version: int) -> frozenset[str]:
        """The sessions that may publish, and have not said that they use this index."""
        return frozenset(self._others(version, lambda held: held.op is Op.ADVERTISE))

    def unaware(self, version: int) -> frozenset[str]:
        """The sessions that hold anything, and have not said that they use this index.

        One that only subscribes holds up nobody. But as long as it is unaware it takes events under a tag for those
        of the index that it knows: before that tag stands for another index, it has to have said so, too.
        """
        return frozenset(self._others(version, lambda held: True))

    def hosts(self, sessions: Iterable[str]) -> frozenset[str]:
        """The hosts that sessions are of."""
        return frozenset(host for each in sessions if (host := self._ledger.host(each)) is not None)

    async def reached(self, version: int, seconds: float) -> frozenset[str]:
        """Wait until nobody is behind this index, or the time is up; who is behind then."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while behind := self.behind(version):
            left = end - loop.time()
            if left <= 0:
                break
            await asyncio.sleep(min(left, LOOK_SECONDS / 10))  # many say so at once
            self._news.clear()
            try:
                async with asyncio.timeout(min(left, LOOK_SECONDS)):
                    await self._news.wait()
            except TimeoutError:
                pass
        return behind

    def _others(self, version: int, counts: Callable[[Request], bool]) -> Iterator[str]:
        for session in self._ledger.sessions:
            if self._said.get(session) != version and any(map(counts, self._ledger.holds(session))):
                yield session
