"""Long work on an event loop, a slice at a time, so that nothing urgent has to wait for the end of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from itertools import islice
from time import thread_time
from typing import TypeVar

SLICE = 128  # things that are worked on at a time: a millisecond at most, for entries of a table
REST = 2.0  # times as long as the slice before it took of a processor
BUSY = 5.0  # times longer it is while there is something more important to do

T = TypeVar("T")
R = TypeVar("R")


async def in_slices(work: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """What the work makes of each item, in their order; all else that is ready has a turn after each slice."""
    left, done = iter(items), list[R]()
    while part := [work(item) for item in islice(left, SLICE)]:
        done += part
        await asyncio.sleep(0)
    return done


class Leisure:
    """The time of a loop for those who only look: all of them take turns, and rest after each slice.

    So they have a third of the time, and a tenth while it is `busy` with something more important.
    """

    def __init__(self, busy: Callable[[], bool]) -> None:
        self._busy = busy
        self._turn = asyncio.Lock()

    async def each(self, work: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """What the work makes of each item, in their order."""
        left, done = iter(items), list[R]()
        while True:
            async with self._turn:
                begin = thread_time()
                part = [work(item) for item in islice(left, SLICE)]
                if not part:
                    return done
                done += part
                rest = REST * (thread_time() - begin)
                await asyncio.sleep(BUSY * rest if self._busy() else rest)
