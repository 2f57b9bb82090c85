"""Work that goes on in the background while a block lasts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from flowsieve.tasks import Tasks

Chore = Callable[[], Coroutine[Any, Any, None]]


@asynccontextmanager
async def at_work(*chores: Chore) -> AsyncIterator[None]:
    """Chores that go on for the time of an `async with` block, which ends should one of them die."""
    async with Tasks() as tasks:
        for chore in chores:
            tasks.start(chore())
        yield
