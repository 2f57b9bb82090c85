"""Figures 8(g) to 8(i) of [PLEROMA] over the whole grid, simulated: configurators, partitions, with balancing or not.

Service times are measured and queues simulated, as in `balancing`, which has the method and the figures at the usual
numbers. Throughput is what is served where more is offered than can be. Latencies are at one rate for all partitions:
a share of what so many configurators can serve with the usual ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.balancing import (
    ACTIVE,
    BEYOND,
    LOADS,
    MEASURED,
    PARTITIONS,
    SIMULATED,
    STEADY,
    USUAL_PARTITIONS,
    WARM,
    Measured,
    Trace,
    balanced,
    dealt,
    mean_of,
    played,
)
from benchmarks.bench import Goal, Result, at_least
from benchmarks.network import dz_of
from benchmarks.seed_loads import Chart, write

CONFIGURATORS, DRAWS = (1, 2, 4), 3
ARMS = {"without": False, "with": True}
AT = f"at {STEADY:.0%} of what they can serve with {USUAL_PARTITIONS} partitions"
SHOWN = {
    "requests_per_second": ("g", "throughput", "more offered than can be served", "requests a second", False),
    "mean_ms": ("i", "latency", AT, "mean, ms", True),
    "p99_ms": ("i", "latency of the slowest in a hundred", AT, "p99, ms", True),
}

Grid = dict[str, dict[int, dict[int, dict[str, float]]]]  # by balancing, configurators, partitions


def grid(traces: Mapping[int, Trace]) -> Grid:
    found: Grid = {}
    for arm, watched in ARMS.items():
        found[arm] = {}
        for n in CONFIGURATORS:
            rate = STEADY * traces[USUAL_PARTITIONS].capacity(n)
            found[arm][n] = {size: at(trace, n, rate, watched) for size, trace in traces.items()}
    return found


def at(trace: Trace, configurators: int, rate: float, watched: bool) -> dict[str, float]:
    """One place of the grid; without balancing, the mean over random assignments."""
    owners = [balanced(trace.measured, configurators)]
    if not watched:
        owners = [dealt(trace.measured, configurators, draw) for draw in range(DRAWS)]
    beyond, found = BEYOND * trace.capacity(configurators), list[dict[str, float]]()
    for some in owners:
        most = played(trace, beyond, "poisson", some, watched).throughput
        usual = played(trace, rate, "poisson", some, watched)
        found.append(usual.to_json() | {"requests_per_second": most})
    return mean_of(found)


def charts(found: Mapping[str, Grid]) -> dict[str, Chart]:
    return {
        f"8{place}-{load}-{what}": Chart(
            f"Figure 8({place}): {title}, {load}",
            f"simulated, Poisson, {about}",
            "partitions",
            {
                f"{n} configurator{'s' * (n > 1)}, {arm} balancing": {
                    size: each[what] for size, each in line.items()
                }
                for arm, lines in made.items()
                for n, line in lines.items()
            },
            upright,
            False,
            log,
        )
        for load, made in found.items()
        for what, (place, title, about, upright, log) in SHOWN.items()
    }


def run() -> Result:
    found: dict[str, Grid] = {}
    for load, make in LOADS.items():
        dz = dz_of(make(ACTIVE + WARM + MEASURED, 0))
        found[load] = grid({n: Trace.drawn(Measured.of(dz, n)) for n in PARTITIONS})
    figures: dict[str, Any] = {"simulated": SIMULATED, **found}
    write("balancing_grid", figures, charts(found))
    zipfian = found["zipf"]
    gains = {
        size: zipfian["with"][4][size]["requests_per_second"] / without["requests_per_second"]
        for size, without in zipfian["without"][4].items()
    }
    goals: dict[str, Goal] = {
        f"zipf, {size} partitions: throughput of 4 with balancing to without": at_least(gain, 1.0)
        for size, gain in gains.items()
        if size >= USUAL_PARTITIONS
    }
    return Result("balancing_grid", figures, goals=goals)
