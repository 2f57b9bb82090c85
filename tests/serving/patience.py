"""An event loop whose time passes only when there is nothing to do: hours in a moment, and the same each time."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class _Idle(selectors.DefaultSelector):
    """Where a loop would wait, its time goes on instead."""

    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        assert timeout is not None, "everybody waits for something that never comes"
        self.now += timeout
        return super().select(0)


class PatientLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._idle = _Idle()
        super().__init__(self._idle)

    def time(self) -> float:
        return self._idle.now


def run(work: Coroutine[Any, Any, Result]) -> Result:
    with asyncio.Runner(loop_factory=PatientLoop) as runner:
        return runner.run(work)
