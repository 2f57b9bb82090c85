"""Who wants what in the story, and what is published, before traffic changes and after.

Readings of a building. First the climate varies and it is quiet; then the climate is steady and machines run. Half of
the subscriptions ask about climate, half about machines: a plan for the one kind of day says little of the other.
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
LEAST = 100  # no subscription asks for less, so that steady attributes interest nobody


def schema_toml() -> str:
    """The schema as a section of a configuration."""
    rows = [f'{name} = {{ type = "int", min = 0, max = {TOP} }}' for name in NAMES]
    return "\n".join(["[schema]", *rows]) + "\n"


def subscriptions(hosts: Sequence[str], count: int) -> dict[str, list[str]]:
    """The filters of each host, `count` in all, narrow in two attributes around what the host cares about."""
    dice = np.random.default_rng(1)
    wanted: dict[str, list[str]] = {host: [] for host in hosts}
    centres = {
        (host, kind): dice.uniform(LEAST + WIDEST, TOP - WIDEST, 2) for host in hosts for kind in (0, 1)
    }
    for number in range(count):
        host, kind = hosts[number % len(hosts)], number // len(hosts) % 2
        sides = []
        for name, centre in zip((CLIMATE, MACHINES)[kind], centres[host, kind], strict=True):
            width = int(dice.integers(WIDEST // 2, WIDEST + 1))
            low = int(np.clip(dice.normal(centre, SPREAD) - width / 2, LEAST, TOP - width))
            sides.append(f"{low} <= {name} < {low + width}")
        wanted[host].append(" and ".join(sides))
    return wanted


@dataclass(frozen=True, slots=True)
class Readings:
    """Draws readings, so many at a time; the columns are those of the schema."""

    dice: np.random.Generator

    def draw(self, count: int, drifted: bool) -> NDArray[np.int64]:
        varied = MACHINES if drifted else CLIMATE
        columns = [
            self.dice.uniform(0, TOP + 1, count)
            if name in varied or name in OTHER
            else self.dice.normal(STEADY, JITTER, count)
            for name in NAMES
        ]
        return np.clip(np.stack(columns, axis=1), 0, TOP).astype(np.int64)
