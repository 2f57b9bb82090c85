"""Work in the background that cannot die unseen.

`Tasks` is for work that the rest depends on: where a piece of it dies, that is logged with its traceback, and the block
that it was for ends. `noted` is for work that matters to one request alone: its failure is logged, the rest goes on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any

from flowsieve.errors import TaskDied

log = logging.getLogger(__name__)


class Tasks:
    """Work in the background for the time of an `async with` block; what is left at its end is cancelled.

    Where a piece of work dies of what nobody expected, the block is cancelled, and its end raises TaskDied.
    """

    def __init__(self) -> None:
        self._owner: asyncio.Task[Any] | None = None  # whose block it is, while that lasts
        self._tasks: set[asyncio.Task[None]] = set()
        self._death: TaskDied | None = None  # the first one

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Begin with something; it is called by its function's name should it die."""
        task = asyncio.create_task(work, name=getattr(work, "__qualname__", None))
        self._tasks.add(task)
        task.add_done_callback(self._seen)
        return task

    def call_at(self, when: float, function: Callable[[], None]) -> asyncio.TimerHandle:
        """Have a function called at that time of the loop's; it dies as seen as any other work."""

        def call() -> None:
            try:
                function()
            except Exception as error:
                self._died(function.__qualname__, error)

        return asyncio.get_running_loop().call_at(when, call)

    async def __aenter__(self) -> Tasks:
        self._owner = asyncio.current_task()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        owner, self._owner = self._owner, None
        if self._death is not None and owner is not None:
            owner.uncancel()
        cancelled: asyncio.CancelledError | None = None
        for task in self._tasks:
            task.cancel()
        while self._tasks:
            try:
                await asyncio.wait(self._tasks)
            except asyncio.CancelledError as asked:  # they end all the same, and nothing is left behind
                cancelled = asked
        if self._death is not None:
            raise self._death
        if cancelled is not None:
            raise cancelled

    def _seen(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            if (error := task.exception()) is not None:
                self._died(task.get_name(), error)
        elif not task.cancelling():  # what it waited for was cancelled, and nobody asked it to end
            self._died(task.get_name(), asyncio.CancelledError("what it waited for was cancelled"))

    def _died(self, name: str, error: BaseException) -> None:
        if self._death is not None and isinstance(error, asyncio.CancelledError):
            return  # it waited for the one that died first
        log.critical("%s has died, and nothing goes on without it", name, exc_info=error)
        if self._death is None:
            self._death = TaskDied(name, error)
            if self._owner is not None:
                self._owner.cancel()


def noted(task: asyncio.Task[Any]) -> None:
    """To be called when a task is done that nobody waits for: logs what it failed of, if it did."""
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("%s has failed", task.get_name(), exc_info=error)
