"""Plans for a whole table (`plan --table N`) against plans for 32 dz a filter, and gs+asi: all judged in such a table.

23 bits, 5,000 subscriptions, 30,000 events to plan on, 30,000 later ones to judge on; a table of 2,000 entries, cut by
the events that the plans were made from. A rate is that of `evaluate --table`: the share of unwanted events in what
all subscriptions get. The seeds are not those that the cut or the portfolio was developed with.

A workload takes two to three minutes: `LOADS=PADRES` in the environment picks workloads, `SEEDS=21` seeds.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from benchmarks.bench import Goal, Result, at_most, rounded
from benchmarks.workloads import REAL, Judged, zipfsel
from flowsieve.index.plan import IndexPlan
from flowsieve.pipeline.evaluation.cut_coverage import candidate_of
from flowsieve.pipeline.evaluation.evaluation import evaluate_here
from flowsieve.pipeline.evaluation.table_cut import cut_table
from flowsieve.pipeline.matching.boxes import BoxTable
from flowsieve.pipeline.planning.methods import Method, Workshop, make
from flowsieve.pipeline.planning.portfolio import auto_here

BITS, BUDGET, TABLE, PEER = 23, 32, 2_000, "gs+asi"
DEADLINE = 60.0
NEVER_WORSE = 0.01  # beyond a point, what was kept back told the wrong thing
LOADS = {"zipfsel": zipfsel} | {name: REAL[name] for name in ("PADRES", "METR-LA") if name in REAL}
SEEDS = (21, 22)


def rates(load: Judged) -> tuple[dict[str, float], dict[str, str]]:
    """By plan its rate in the table, and what was chosen."""
    known = load.schema, load.filters, BITS
    budgeted = auto_here(Workshop(*known, BUDGET, load.events), DEADLINE)
    shop = Workshop(*known, 0, load.events, table=TABLE)
    whole = auto_here(shop, DEADLINE)
    plans: dict[str, IndexPlan] = {
        "for 32 dz": budgeted.plan,
        "for the table": whole.plan,
        PEER: make(Method.parse(PEER), shop),
    }
    cuts = [cut_table(plan, load.filters, load.events, TABLE) for plan in plans.values()]
    candidates = [candidate_of(cut, load.filters) for cut in cuts]
    scores = evaluate_here(candidates, BoxTable.of(load.schema, load.filters), load.later)
    assert not any(score.false_negatives for score in scores)
    found = {name: score.fpr for name, score in zip(plans, scores, strict=True)}
    return found, {"for 32 dz": budgeted.name, "for the table": whole.name}


def run() -> Result:
    names = os.environ.get("LOADS", ",".join(LOADS)).split(",")
    seeds = [int(text) for text in os.environ.get("SEEDS", ",".join(map(str, SEEDS))).split(",")]
    figures: dict[str, Any] = {"settings": f"{BITS} bits, a table of {TABLE:,} entries"}
    goals: dict[str, Goal] = {}
    for name in names:
        for seed in seeds:
            found, chosen = rates(LOADS[name](seed))
            figures[f"{name}, seed {seed}"] = {
                "rates": {plan: rounded(rate) for plan, rate in found.items()},
                "chosen": chosen,
            }
            print(name, seed, found, chosen, file=sys.stderr, flush=True)
            rest = min(rate for plan, rate in found.items() if plan != "for the table")
            more = found["for the table"] - rest
            goals[f"{name}, seed {seed}: worse than the better of the others by"] = at_most(more, NEVER_WORSE)
    return Result("table_plans", figures, goals=goals)
