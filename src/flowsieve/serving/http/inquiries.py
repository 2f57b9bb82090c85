"""What anybody may ask without a token, and what takes the controller's time to answer.

It is worked out on the loop that also takes requests and mends. So what came in at one address is answered one by one,
with a rest after each that is longer than the work: all who ask there have a third of the time, and a tenth while there
is something more important to do. Peers take turns, however much each of them asks.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import thread_time
from typing import NamedTuple, TypeVar

from flowsieve.errors import Busy
from flowsieve.serving.fair_shares import FairShares
from flowsieve.serving.http.listener import Listener
from flowsieve.southbound.leisure import BUSY, REST

MOST_WAITING = 64  # questions at each address that is listened at
REFUSED_SECONDS = 1.0  # before one that finds no room is told so, if there is still none

R = TypeVar("R")


class Asker(NamedTuple):
    """Who asks: where it came in, and its address, None where peers are not told apart."""

    listener: Listener | None = None
    peer: str | None = None


class Inquiries:
    """Questions that are answered in turn, while it may be `busy` with something more important."""

    def __init__(self, busy: Callable[[], bool]) -> None:
        self._busy = busy
        self._counters: defaultdict[Listener | None, _Counter] = defaultdict(_Counter)

    async def answered(self, asker: Asker, work: Callable[[], R]) -> R:
        """Work an answer out when it is the asker's turn.

        Raises Busy where so many wait that it would take from others; not at once, since to say so takes time, too.
        """
        counter = self._counters[asker.listener]
        if not counter.room(asker.peer):
            await asyncio.sleep(REFUSED_SECONDS)
        with counter.waiting(asker.peer) as line:
            async with line, counter.turn:
                await asyncio.sleep(counter.rests_until - _now())
                begin = thread_time()
                try:
                    return work()
                finally:
                    rest = REST * (thread_time() - begin)
                    counter.rests_until = _now() + (BUSY * rest if self._busy() else rest)


class _Counter:
    """Those who came in at one address that is listened at."""

    def __init__(self) -> None:
        self.turn = asyncio.Lock()
        self.rests_until = 0.0
        self._shares = FairShares(MOST_WAITING)
        self._lines: dict[str, asyncio.Lock] = {}

    def room(self, peer: str | None) -> bool:
        """Whether another question of a peer may wait."""
        return self._shares.room(peer)

    @contextmanager
    def waiting(self, peer: str | None) -> Iterator[asyncio.Lock]:
        """Count a question while it waits; the line is where those of one peer wait for their turn."""
        if not self._shares.take(peer):
            raise Busy("too many questions are waiting, in all or from your address; try again later")
        try:
            yield asyncio.Lock() if peer is None else self._lines.setdefault(peer, asyncio.Lock())
        finally:
            self._shares.give_back(peer)
            if peer is not None and not self._shares.of(peer):
                del self._lines[peer]


def _now() -> float:
    return asyncio.get_running_loop().time()
