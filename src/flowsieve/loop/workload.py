"""Who wants what in the story, and what is published, before traffic changes and after.

Readings of a building. First the climate varies and it is quiet; then it is cool and machines run. Every subscription
has something to ask about either, so a plan for the one kind of day says nothing of the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flowsieve.content.schema import Schema

TOP = 1023
CLIMATE, MACHINES, OTHER = ("temperature", "humidity"), ("noise", "power"), ("light", "co2")
NAMES = (*CLIMATE, *MACHINES, *OTHER)
SCHEMA = Schema.parse({name: {"type": "int", "min": 0, "max": TOP} for name in NAMES})
SPREAD = 60.0  # of a host's subscriptions around what it cares about
WIDEST = 96  # of what a subscription asks for in an attribute
STEADY, JITTER = 30.0, 4.0  # what attributes are like that say nothing at the time
LEAST = 100  # of what varies; below it is quiet, or cool


def schema_toml() -> str:
    """The schema as a section of a configuration."""
    rows = [f'{name} = {{ type = "int", min = 0, max = {TOP} }}' for name in NAMES]
    return "\n".join(["[schema]", *rows]) + "\n"


def subscriptions(hosts: Sequence[str], count: int) -> dict[str, list[str]]:
    """The filters of each host, `count` in all, narrow around what the host cares about.

    Each asks for some climate while no machine is to be heard, or for what machines do while it is cool.
    """
    dice = np.random.default_rng(1)
    wanted: dict[str, list[str]] = {host: [] for host in hosts}
    centres = {host: dice.uniform(LEAST + WIDEST, TOP - WIDEST, 4) for host in hosts}
    for number in range(count):
        host = hosts[number % len(hosts)]
        sides = []
        for name, centre in zip((*CLIMATE, *MACHINES), centres[host], strict=True):
            width = int(dice.integers(WIDEST // 2, WIDEST + 1))
            low = int(np.clip(dice.normal(centre, SPREAD) - width / 2, LEAST, TOP - width))
            sides.append(f"{low} <= {name} < {low + width}")
        climate = f"{sides[0]} and {sides[1]} and {MACHINES[0]} < {LEAST}"
        machines = f"{sides[2]} and {sides[3]} and {CLIMATE[0]} < {LEAST}"
        wanted[host].append(f"({climate}) or ({machines})")
    return wanted


@dataclass(frozen=True, slots=True)
class Readings:
    """Draws readings, so many at a time; the columns are those of the schema."""

    dice: np.random.Generator

    def draw(self, count: int, drifted: bool) -> NDArray[np.int64]:
        varied = MACHINES if drifted else CLIMATE
        columns = [
            self.dice.uniform(LEAST, TOP + 1, count)
            if name in varied or name in OTHER
            else self.dice.normal(STEADY, JITTER, count)
            for name in NAMES
        ]
        return np.clip(np.stack(columns, axis=1), 0, TOP).astype(np.int64)
