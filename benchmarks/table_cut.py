"""One table size spent in two ways: so many dz for each subscription, or one cut of all cells, the best for the whole.

23 bits, 5,000 subscriptions, a level-wise plan made on 30,000 events; judged on 30,000 later ones. Per subscription:
covers of 8 or of 32 dz, which have C distinct dz in all. Whole table: the cut of at most C entries
(`planning.table_cut`), which knows the events that the plan was made on. Two peers: covers that know nothing of the
events, and covers that are weighed by the very events that the cut knows; each is compared with a cut of its own size.
A rate is that of `evaluate`: the share of unwanted events in what all subscriptions get.

The seeds are not those that the cut was developed with (11 to 15). A seed draws all of `zipfsel`; of real data it draws
the events, and which subscriptions or boxes around events there are. `LOADS=PADRES` in the environment picks workloads,
`SEEDS=11,12` seeds.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.bench import Goal, Result, at_most, rounded
from benchmarks.workloads import REAL, Judged, zipfsel
from flowsieve.index.sample import EventSample
from flowsieve.pipeline.evaluation.coverage import ListedCoverage
from flowsieve.pipeline.evaluation.cut_coverage import candidate_of
from flowsieve.pipeline.evaluation.evaluation import Candidate, evaluate_here
from flowsieve.pipeline.evaluation.table_cut import cut_table
from flowsieve.pipeline.matching.boxes import BoxTable
from flowsieve.pipeline.planning.methods import Method, Workshop, make

BITS, METHOD, MOST = 23, "lw", 0.6
BUDGETS = (8, 32)
PEERS = {"plain": False, "weighed by the same events": True}
SEEDS = {"zipfsel": (16, 17, 18, 19, 20), "PADRES": (16, 17, 18), "METR-LA": (16, 17, 18)}
LOADS = {"zipfsel": zipfsel} | {name: REAL[name] for name in SEEDS if name in REAL}


@dataclass(frozen=True)
class Pair:
    """A table of per-subscription covers, and the cut of its size."""

    capacity: int
    entries: int
    single: float
    cut: float
    lost: int
    share: float  # for how much made-up events counted
    seconds: float  # that the cut took

    @property
    def ratio(self) -> float:
        return self.cut / self.single


def pairs(load: Judged) -> dict[tuple[int, str], Pair]:
    """By budget and peer."""
    plan = make(Method.parse(METHOD), Workshop(load.schema, load.filters, BITS, 0, load.events))
    boxes, found = BoxTable.of(load.schema, load.filters), {}
    for budget in BUDGETS:
        for peer, weighed in PEERS.items():
            sample = EventSample.of(plan, load.events) if weighed else None
            single = Candidate.of(plan, load.filters, budget, sample)
            assert isinstance(single.coverage, ListedCoverage)
            capacity = len(single.coverage.hi)
            start = time.perf_counter()
            cut = cut_table(plan, load.filters, load.events, capacity)
            seconds = time.perf_counter() - start
            assert len(cut) <= capacity
            one, other = evaluate_here([single, candidate_of(cut, load.filters)], boxes, load.later)
            lost = one.false_negatives + other.false_negatives
            found[budget, peer] = Pair(capacity, len(cut), one.fpr, other.fpr, lost, cut.share, seconds)
    return found


def run() -> Result:
    names = os.environ.get("LOADS", ",".join(LOADS)).split(",")
    chosen = os.environ.get("SEEDS")
    figures: dict[str, Any] = {"settings": f"{BITS} bits, {METHOD}"}
    goals: dict[str, Goal] = {}
    lost, slowest = 0, 0.0
    for name in names:
        rows: dict[tuple[int, str], list[Pair]] = {}
        for seed in [int(text) for text in chosen.split(",")] if chosen else SEEDS[name]:
            for key, pair in pairs(LOADS[name](seed)).items():
                rows.setdefault(key, []).append(pair)
                print(name, f"seed {seed}", *key, pair, file=sys.stderr, flush=True)
        for (budget, peer), some in rows.items():
            single, cut = (
                float(np.mean([getattr(pair, what) for pair in some])) for what in ("single", "cut")
            )
            figures[f"{name}, {budget} dz, {peer}"] = {
                "entries": rounded(float(np.mean([pair.capacity for pair in some]))),
                "rate_per_subscription": rounded(single),
                "rate_of_the_cut": rounded(cut),
                "ratio_by_seed": [rounded(pair.ratio) for pair in some],
            }
            goals[f"{name}, {budget} dz, {peer}: the cut to budgets"] = at_most(cut / single, MOST)
            lost += sum(pair.lost for pair in some)
            slowest = max(slowest, *(pair.seconds for pair in some))
    figures["cut_seconds_at_most"] = rounded(slowest)
    goals["wanted events lost"] = at_most(lost, 0)
    return Result("table_cut", figures, goals=goals)
