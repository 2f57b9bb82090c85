"""How long a network of real switches takes to come up and to go down."""

from __future__ import annotations

import statistics

from benchmarks.bench import Result, at_most, rounded, seconds
from flowsieve.lab.lab import Lab, down, up
from flowsieve.network.generators import generate

RUNS = 5
TOPOLOGIES = ("ring:20", "fat-tree:4", "tree:5,2")


def measured(text: str) -> dict[str, float]:
    """The medians of bringing a topology up and taking it down, in turn."""
    topology = generate(text)
    rising, falling = [], []
    made: list[Lab] = []
    for _ in range(RUNS):
        rising.append(seconds(lambda: made.append(up(topology))))
        falling.append(seconds(lambda: down(made.pop())))
    return {
        "seconds_up": rounded(statistics.median(rising)),
        "seconds_up_worst": rounded(max(rising)),
        "seconds_down": rounded(statistics.median(falling)),
    }


def run() -> Result:
    figures = {text: measured(text) for text in TOPOLOGIES}
    goals = {"seconds until a ring of 20 switches is up": at_most(figures["ring:20"]["seconds_up"], 1)}
    return Result("lab", figures, goals=goals)
