"""A clock that moves only when it is told to: time as an argument."""

from __future__ import annotations

import heapq
from collections.abc import Callable

from flowsieve.errors import SwitchError

# What one call of `advance` or `settle` will do before it takes the network for a storm.
MAX_STEPS = 5_000_000


class VirtualClock:
    """Things to be done at their time; those of one moment in the order in which they were asked for.

    >>> clock, seen = VirtualClock(), []
    >>> clock.after(2.0, lambda: seen.append("late"))
    >>> clock.after(1.0, lambda: seen.append("early"))
    >>> clock.advance(1.5)
    >>> clock.now, seen
    (1.5, ['early'])
    """

    def __init__(self, max_steps: int = MAX_STEPS) -> None:
        self.now = 0.0
        self._max_steps = max_steps
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._asked = 0

    def after(self, seconds: float, do: Callable[[], None]) -> None:
        """Have something done in a while."""
        self._asked += 1
        heapq.heappush(self._agenda, (self.now + seconds, self._asked, do))

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        until = self.now + seconds
        self._run(until)
        self.now = until

    def settle(self) -> None:
        """Let as much time pass as it takes until nothing is left to be done."""
        self._run(float("inf"))

    def _run(self, until: float) -> None:
        steps = 0
        while self._agenda and self._agenda[0][0] <= until:
            if steps == self._max_steps:
                left = len(self._agenda)
                raise SwitchError(
                    f"{left:,} things are under way after {steps:,} steps: packets multiply on a loop"
                )
            self.now, _, do = heapq.heappop(self._agenda)
            do()
            steps += 1
