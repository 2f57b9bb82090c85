"""Figure 14 of [Expressive]: selection and indexing combined (a, zipfian; b, stock quotes), changing traffic (c).

(c): events come for 600 s, from 95 s on around other hotspots, and those who want them take the place of the
subscribers before. CS chose dimensions before that, and chooses anew at 350 s; until 410 s the network is updated, and
all filters stand for the whole space.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.bench import Goal, Result, at_least, at_most, rounded
from benchmarks.seed_loads import BITS, Chart, by_dimensions, drawn, rates, workshop, write
from benchmarks.workloads import REAL, Judged
from flowsieve.index.plan import IndexPlan
from flowsieve.pipeline.evaluation.evaluation import Candidate, Score, evaluate_here
from flowsieve.pipeline.matching.boxes import BoxTable
from flowsieve.pipeline.planning.methods import Method, make
from flowsieve.pipeline.synth.workload import Workload

SUBSCRIPTIONS, EVENTS = 2_000, 10_000
QUOTE_SUBSCRIPTIONS = 1_000
PAIRS = {"CS": ("cs", "ri"), "GS": ("gs", "ri"), "CS+ASI": ("cs", "asi"), "GS+ASI": ("gs", "asi")}
ON_QUOTES = {"EVS+SI": ("evs", "si"), "CS+SI": ("cs", "si"), "GS+SI": ("gs", "si")}
CHANGE, CHOICE, DONE, END, WINDOW = 95, 350, 410, 600, 5  # seconds
EACH_SECOND = 40  # events
BEFORE = Workload("zipf", selectivity="random", seed=51)
AFTER = replace(BEFORE, seed=52)


def of_quotes() -> dict[str, dict[int, float]]:
    load = REAL["PADRES"](51)
    some = Judged(
        load.schema,
        load.filters[:QUOTE_SUBSCRIPTIONS],
        load.events.take(np.arange(0, len(load.events), len(load.events) // EVENTS)),
        load.later.take(np.arange(0, len(load.later), len(load.later) // EVENTS)),
    )
    lines = by_dimensions(some, ON_QUOTES)
    (regular,) = rates(some, [make(Method.parse("ri"), workshop(some))])
    return {**lines, "RI, all dimensions": dict.fromkeys(lines["GS+SI"], regular)}


def over_time() -> tuple[dict[str, dict[int, float]], dict[str, float]]:
    """The rates window by window, and the means of the phases."""
    before = drawn(BEFORE, SUBSCRIPTIONS, CHANGE * EACH_SECOND)
    after = drawn(AFTER, SUBSCRIPTIONS, (END - CHANGE) * EACH_SECOND)
    old = make(Method.parse("cs+ri"), workshop(before))
    seen = after.later.take(np.arange((CHOICE - CHANGE - 100) * EACH_SECOND, (CHOICE - CHANGE) * EACH_SECOND))
    new = make(Method.parse("cs+ri"), workshop(Judged(after.schema, after.filters, seen, seen)))
    boxes = {id(load): BoxTable.of(load.schema, load.filters) for load in (before, after)}
    covers = {
        (id(load), id(plan)): Candidate.of(plan, load.filters, 0, count=False)
        for load, plan in ((before, old), (after, old), (after, new))
    }

    def score(load: Judged, plan: IndexPlan, start: int) -> Score:
        begin = start if load is before else start - CHANGE
        events = load.later.take(np.arange(begin * EACH_SECOND, (begin + WINDOW) * EACH_SECOND))
        return evaluate_here([covers[id(load), id(plan)]], boxes[id(load)], events)[0]

    line: dict[int, float] = {}
    missed: dict[int, float] = {}
    for start in range(0, END, WINDOW):
        found = score(before if start < CHANGE else after, old if start < CHOICE else new, start)
        whole = found.events * SUBSCRIPTIONS
        updating = CHOICE <= start < DONE
        line[start + WINDOW // 2] = rounded(1 - found.matches / whole if updating else found.fpr)
        missed[start + WINDOW // 2] = float(found.false_negatives)
    spans = {"before": (0, 90), "changed": (105, 345), "updating": (360, 405), "chosen anew": (420, END)}
    phases = {
        name: rounded(float(np.mean([rate for at, rate in line.items() if a <= at <= b])))
        for name, (a, b) in spans.items()
    }
    return {"false positives": line, "false negatives": missed}, phases


def run() -> Result:
    lines: dict[str, Any] = {
        "14a": by_dimensions(drawn(replace(BEFORE, seed=53), SUBSCRIPTIONS, EVENTS), PAIRS),
        "14b": of_quotes() if "PADRES" in REAL else {},
    }
    lines["14c"], phases = over_time()
    figures: dict[str, Any] = {
        "scale": f"{SUBSCRIPTIONS:,} subscriptions ({QUOTE_SUBSCRIPTIONS:,} real ones on quotes), {EVENTS:,} events to "
        f"plan on and as many to judge on, {BITS} bits; c: {EACH_SECOND} events a second for {END} s",
        "a, b: false-positive rate by selected dimensions; c: by seconds": lines,
        "14c, means of phases": phases,
        "differs": DIFFERS,
    }
    about = f"{BITS} bits, any number of prefixes"
    charts = {
        "14a": Chart(
            "Figure 14(a): selection and adaptive indexing", f"zipfian, random selectivity; {about}",
            "selected dimensions", lines["14a"],
        ),
        "14c": Chart(
            "Figure 14(c): traffic that changes", f"CS, chosen anew after a while; {about}", "seconds", lines["14c"],
            upright="share", marks=((CHANGE, "traffic changes"), (CHOICE, "CS anew"), (DONE, "done")),
        ),
    }  # fmt: skip
    goals: dict[str, Goal] = {
        "a: best of GS+ASI to regular indexing of all": at_most(
            min(lines["14a"]["GS+ASI"].values()) / lines["14a"]["GS"][8], 0.25
        ),
        "c: after the change, to before": at_least(phases["changed"] / phases["before"], 1.0),
        "c: chosen anew, to after the change": at_most(phases["chosen anew"] / phases["changed"], 1.0),
        "c: false negatives": at_most(sum(lines["14c"]["false negatives"].values()), 0),
    }
    if lines["14b"]:
        charts["14b"] = Chart(
            "Figure 14(b): selection and selective indexing",
            f"stock quotes with real subscriptions; {about}",
            "selected dimensions",
            lines["14b"],
        )
        best = min(lines["14b"]["GS+SI"].values())
        goals["b: best of GS+SI to regular indexing of all"] = at_most(
            best / lines["14b"]["RI, all dimensions"][1], 0.47
        )
    write("seed_combined", figures, charts)
    return Result("seed_combined", figures, goals=goals)


DIFFERS = (
    "(a) The seed has GS+ASI far below GS. Ours are alike, with ASI a little behind: at the best number of "
    "dimensions, 3, each has 7 or 8 bits, and even cuts are then much narrower than the narrowest boxes, so "
    "that there is little for other cuts to gain. Cuts and orders chosen by deliveries do better (lw and kd, "
    "see `planning`). CS lies a little below GS where bits do not divide evenly: a ranking gives the odd bits "
    "to the most selective dimensions. (b) The shape is the paper's, with a larger gain of CS and GS at 2 "
    "dimensions, symbol and volume, which the real subscriptions name; EVS does not look at subscriptions and "
    "takes a price instead. (c) is counted from plans, not run on switches: the controller does not yet "
    "change its index while it runs."
)
