"""How many entries each kind of table takes, and how many a request changes: what the default is chosen by."""

from __future__ import annotations

from typing import Any

from benchmarks.bench import Goal, Result, at_most, rounded
from benchmarks.loads import LOADS
from benchmarks.network import Churn, dz_of, small_fat_tree
from flowsieve.flow.tables.compiler import Tables

SEEDS = (1, 2, 3)
SUBSCRIPTIONS, REQUESTS = 1_000, 400


def run() -> Result:
    figures: dict[str, Any] = {}
    goals: dict[str, Goal] = {}
    for name, load in LOADS.items():
        entries = dict.fromkeys(Tables, 0)
        operations, busiest = dict.fromkeys(Tables, 0), dict.fromkeys(Tables, 0)
        for seed in SEEDS:
            dz = dz_of(load(SUBSCRIPTIONS + REQUESTS, 0, seed=seed))
            for tables in Tables:
                churn = Churn(small_fat_tree(16), dz, SUBSCRIPTIONS, 4, tables, seed)
                entries[tables] += churn.entries()
                for update in churn.requests(REQUESTS):
                    operations[tables] += len(update)
                    busiest[tables] += max(update.operations().values(), default=0)
        requests = len(SEEDS) * REQUESTS
        figures[name] = {
            tables.value: {
                "entries": entries[tables] // len(SEEDS),
                "operations_per_request": rounded(operations[tables] / requests),
                "operations_on_the_busiest_switch": rounded(busiest[tables] / requests),
            }
            for tables in Tables
        }
        overlay = entries[Tables.OVERLAY]
        goals[f"{name}: free tables against the overlay"] = at_most(entries[Tables.FREE] / overlay, 0.80)
        goals[f"{name}: smallest tables against the overlay"] = at_most(entries[Tables.SMALLEST] / overlay, 1)
    return Result("entries", figures, goals=goals)
