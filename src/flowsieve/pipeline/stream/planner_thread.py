"""Planning beside the stream: statistics go on while a plan is made, judged and offered.

One order at a time. What came of it is taken up with a later micro-batch; until then the state has the order, so that
a job that was killed carries it out again, under the same number.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as Late
from dataclasses import dataclass
from typing import Any

from flowsieve.pipeline.stream.state_files import PlanningOrder


@dataclass(frozen=True)
class PlanningOutcome:
    """What came of an order: whether it was offered, in words, and the figures."""

    batch: int
    fate: str
    figures: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        return {"batch": self.batch, "fate": self.fate, **self.figures}


class PlannerThread:
    """Carries out orders, one at a time, by a function that never raises."""

    def __init__(self, carry_out: Callable[[PlanningOrder], PlanningOutcome]) -> None:
        self._carry_out = carry_out
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="planner")
        self._at: tuple[int, Future[PlanningOutcome]] | None = None
        self._lock = threading.Lock()

    def start(self, order: PlanningOrder) -> None:
        """Begin with an order, unless it is the one under way."""
        with self._lock:
            if self._at is None or self._at[0] != order.batch:
                self._at = order.batch, self._pool.submit(self._carry_out, order)

    def finished(self) -> PlanningOutcome | None:
        """What came of the last order, once; None while it is under way, or if there is none."""
        with self._lock:
            if self._at is None or not self._at[1].done():
                return None
            outcome, self._at = self._at[1].result(), None
            return outcome

    def wait(self, seconds: float) -> bool:
        """Wait until nothing is under way, for so long at most; whether that is so."""
        with self._lock:
            at = self._at
        if at is not None:
            try:
                at[1].result(seconds)
            except Late:
                return False
        return True

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
