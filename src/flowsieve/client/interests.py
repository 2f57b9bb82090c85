"""What an application holds of its interests: an advertisement to keep or end, a subscription to read events from."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Self

from flowsieve.client.inbox import Event
from flowsieve.content.filter import Filter
from flowsieve.errors import ControlLost, FlowsieveError

TURN = 64  # events that a reader takes at most before others get their turn


class _Interest:
    """A filter in force until it is cancelled, or its `async with` block is left."""

    def __init__(self, id: str, filter: Filter, cancel: Callable[[], Awaitable[None]]) -> None:
        self.id = id
        self.filter = filter
        self._cancel: Callable[[], Awaitable[None]] | None = cancel

    async def cancel(self) -> None:
        """End it; returns when the controller has."""
        cancel, self._cancel = self._cancel, None
        if cancel is not None:
            await cancel()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        with suppress(ControlLost):  # it is over in any case
            await self.cancel()


class Advertisement(_Interest):
    """What a publisher has promised; it may publish what lies in it, and leaving its context ends it."""


class Subscription(_Interest):
    """Events that match a filter exactly, each once, in the order in which they came: `async for event in …`.

    At most `room` events wait; `overflow` counts those that found no room. Iteration ends when the subscription
    is cancelled; if it ends for another reason, that is raised. `checked` says whether losses are counted yet.
    `forbidden` are the publishers of what it wants that may not send to this host, as the operator says.
    """

    def __init__(self, id: str, filter: Filter, room: int, cancel: Callable[[], Awaitable[None]]) -> None:
        super().__init__(id, filter, cancel)
        self.overflow = 0
        self.checked = False
        self.forbidden: tuple[str, ...] = ()
        self.asked_at: float | None = time.monotonic()  # until the first event has come
        self._room = room
        self._events: deque[Event] = deque()
        self._news = asyncio.Event()
        self._ended = False
        self._reason: FlowsieveError | None = None
        self._turn = 0

    def put(self, event: Event) -> bool:
        """Add an event; whether there was room."""
        if len(self._events) >= self._room:
            self.overflow += 1
            return False
        self._events.append(event)
        self._news.set()
        return True

    def end(self, reason: FlowsieveError | None = None) -> None:
        """No more will come; readers get what is there, then the reason."""
        if not self._ended:
            self._ended, self._reason = True, reason
            self._news.set()

    @property
    def waiting(self) -> int:
        """How many events wait to be taken."""
        return len(self._events)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        self._turn += 1
        if self._turn % TURN == 0:
            await asyncio.sleep(0)
        while not self._events:
            if self._reason is not None:
                raise self._reason
            if self._ended:
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        return self._events.popleft()
