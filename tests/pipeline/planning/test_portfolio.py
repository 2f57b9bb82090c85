"""`auto` tries many planners, keeps the best, and keeps its deadline."""

from __future__ import annotations

import time

from plan_workloads import workload

from flowsieve.index.plan import IndexPlan
from flowsieve.pipeline.evaluation.cut_coverage import candidate_of
from flowsieve.pipeline.evaluation.evaluation import Candidate, evaluate_here
from flowsieve.pipeline.evaluation.table_cut import cut_table
from flowsieve.pipeline.matching.boxes import BoxTable
from flowsieve.pipeline.planning.methods import Method, Workshop, make
from flowsieve.pipeline.planning.portfolio import auto_here


def test_planners_beat_the_regular_index_on_later_events_and_auto_is_as_good_as_the_best() -> None:
    schema, filters, events, later = workload(2)
    shop = Workshop(schema, filters, 12, 0, events)
    plans = {text: make(Method.parse(text), shop) for text in ("ri", "gs+ri", "gs+asi", "lw", "kd")}
    plans["auto"] = auto_here(shop, 120).plan
    scores = evaluate_here(
        [Candidate.of(plan, filters, 0, count=False) for plan in plans.values()],
        BoxTable.of(schema, filters),
        later,
    )
    fpr = {text: score.fpr for text, score in zip(plans, scores, strict=True)}
    assert fpr["gs+ri"] < 0.8 * fpr["ri"]
    assert fpr["lw"] < 0.9 * fpr["gs+asi"]
    assert fpr["auto"] <= min(fpr.values()) + 0.01


def test_a_plan_for_a_table_is_chosen_by_the_cut_of_that_table() -> None:
    schema, filters, events, later = workload(4)
    shop = Workshop(schema, filters, 12, 0, events, table=40)
    outcome = auto_here(shop, 120)
    learn, kept = shop.halves()
    by_name = {trial.name: trial for trial in outcome.trials}
    regular = cut_table(make(Method.parse("ri"), shop), filters, learn.events, 40)
    (score,) = evaluate_here([candidate_of(regular, filters)], BoxTable.of(schema, filters), kept)
    assert by_name["ri"].fpr == score.fpr
    assert outcome.name == min(outcome.trials, key=lambda trial: trial.fpr).name

    def rate(plan: IndexPlan) -> float:
        return shop.rate(plan, events, later)

    assert rate(outcome.plan) <= min(rate(trial.plan) for trial in outcome.trials) + 0.03


def test_auto_keeps_its_deadline_and_says_what_it_passed_over() -> None:
    schema, filters, events, _ = workload(3)
    shop = Workshop(schema, filters, 12, 0, events)
    auto_here(shop, 120)  # compiled
    start = time.monotonic()
    outcome = auto_here(shop, 0.01)
    assert time.monotonic() - start < 10
    assert [trial.name for trial in outcome.trials] == ["lw"]
    assert "kd" in outcome.passed_over


def test_auto_keeps_its_deadline_when_everything_takes_long() -> None:
    schema, filters, events, _ = workload(5)
    shop = Workshop(schema, filters, 9, 8, events)
    now = 0.0

    def clock() -> float:  # every look at it costs a second: a busy machine
        nonlocal now
        now += 1.0
        return now

    outcome = auto_here(shop, 120.0, clock=clock)
    assert now <= 120.0
    assert "lw, for the budget" in {trial.name for trial in outcome.trials}
    assert {trial.name for trial in outcome.trials} >= {"lw", "gs+asi", "kd, small"}
