"""One question for all who want to know the same at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from flowsieve.errors import SwitchError

T = TypeVar("T")


class Unanswered(SwitchError):
    """Nobody will answer any more."""


class SharedQuestion(Generic[T]):
    """Asked again and again while somebody waits; an answer is for all who came before it was asked.

    So it is never older than who gets it, and at most one question is under way. It goes on though somebody who waits
    for it leaves.
    """

    def __init__(self, ask: Callable[[], Awaitable[T]]) -> None:
        self._ask = ask
        self._current: asyncio.Task[T] | None = None
        self._next: asyncio.Task[T] | None = None

    async def answered(self) -> T:
        """Wait for the answer to a question that was asked after this call."""
        if self._next is None:
            self._next = asyncio.create_task(self._begin(self._current))
        turn = self._next
        try:
            return await asyncio.shield(turn)
        except asyncio.CancelledError:
            if turn.cancelled():
                raise Unanswered("what was to be asked was given up before there was an answer") from None
            raise

    def close(self) -> None:
        """Ask nothing any more."""
        for turn in (self._current, self._next):
            if turn is not None:
                turn.cancel()

    async def _begin(self, before: asyncio.Task[T] | None) -> T:
        if before is not None:
            await asyncio.wait({before})
        self._current, self._next = self._next, None
        return await self._ask()
