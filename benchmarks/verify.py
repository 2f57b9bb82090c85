"""How long the proof of 20 switches with 5,000 flows each takes, warm."""

from __future__ import annotations

import statistics

from benchmarks.bench import Result, at_least, at_most, rounded, seconds
from benchmarks.loads import narrow
from benchmarks.network import controlled

SUBSCRIPTIONS, ROUNDS = 750, 5


def run() -> Result:
    load = narrow(SUBSCRIPTIONS, 0)
    controller, _ = controlled(load, 64, 16)
    tables = controller.tables()
    flows = sum(map(len, tables.values()))

    def prove() -> None:
        verdict = controller.verify(tables)
        assert verdict.holds, verdict

    cold = seconds(prove)
    spent = statistics.median(seconds(prove) for _ in range(ROUNDS))
    figures = {
        "switches": len(tables),
        "flows": flows,
        "seconds": rounded(spent),
        "seconds_first": rounded(cold),
    }
    goals = {"flows": at_least(flows, 100_000), "seconds": at_most(spent, 0.5)}
    return Result("verify", figures, goals=goals)
