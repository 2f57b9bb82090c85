"""How soon a subscription takes effect on slow switches, against one operation on the busiest of them."""

from __future__ import annotations

import statistics
from typing import Any

from benchmarks.bench import Result, rounded
from benchmarks.loads import LOADS
from benchmarks.network import BUDGET, controlled, subscriptions
from flowsieve.control.state import Settings
from flowsieve.flow.tables.compiler import Tables

UPDATES_PER_SECOND = 50
THERE, NEW = 1_000, 200


def run() -> Result:
    figures: dict[str, Any] = {"one operation, seconds": 1 / UPDATES_PER_SECOND}
    for name, make in LOADS.items():
        load = make(THERE + NEW, 0)
        first, later = load.taken(slice(THERE)), load.taken(slice(THERE, None))
        for tables in Tables:
            controller, network = controlled(
                first, 16, 4, Settings(BUDGET, tables=tables), updates_per_second=UPDATES_PER_SECOND
            )
            spent, busiest = [], []
            for request in subscriptions(later.filters(), list(network.topology.hosts), THERE):
                start = network.now
                outcome = controller.submit([request])
                if outcome.changes:
                    spent.append(network.now - start)
                    busiest.append(max(map(len, outcome.changes.values())))
            one = 1 / UPDATES_PER_SECOND
            figures[f"{name}, {tables.value}"] = {
                "share_in_effect_at_once": rounded(1 - len(spent) / NEW),
                "seconds_median": rounded(statistics.median(spent)),
                "seconds_worst": rounded(max(spent)),
                "times_one_operation_median": rounded(statistics.median(spent) / one),
                "times_the_operations_on_the_busiest_median": rounded(
                    statistics.median(time / one / n for time, n in zip(spent, busiest, strict=True))
                ),
            }
    return Result("effect", figures)
