"""What a benchmark gives: figures, peers measured in the same run, and the goals that they are held to."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Goal:
    """A figure and the bound that it should keep."""

    value: float
    bound: float
    at_least: bool

    @property
    def holds(self) -> bool:
        return self.value >= self.bound if self.at_least else self.value <= self.bound

    def to_json(self) -> dict[str, Any]:
        return {
            "value": self.value,
            "at_least" if self.at_least else "at_most": self.bound,
            "holds": self.holds,
        }


def at_least(value: float, bound: float) -> Goal:
    return Goal(rounded(value), bound, True)


def at_most(value: float, bound: float) -> Goal:
    return Goal(rounded(value), bound, False)


@dataclass(frozen=True)
class Result:
    """One benchmark's outcome; it holds when all goals do."""

    name: str
    figures: dict[str, Any]
    peers: dict[str, Any] = field(default_factory=dict)
    goals: dict[str, Goal] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        return all(goal.holds for goal in self.goals.values())

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "figures": self.figures,
            "peers": self.peers,
            "goals": {what: goal.to_json() for what, goal in self.goals.items()},
            "holds": self.holds,
        }


def rounded(value: float) -> float:
    """Three significant digits: the machine gives no more."""
    return float(f"{value:.3g}")


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
