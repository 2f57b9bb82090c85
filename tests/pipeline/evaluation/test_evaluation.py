"""Evaluation counts exactly what covers deliver, for many plans in one pass, however the events are split."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pytest
from plan_workloads import SCHEMA, events_of, filters_of

from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.index.plan import IndexPlan
from flowsieve.index.sample import EventSample
from flowsieve.pipeline.evaluation import covers
from flowsieve.pipeline.evaluation.boxes import BoxTable
from flowsieve.pipeline.evaluation.covers import candidates_on, table_candidates
from flowsieve.pipeline.evaluation.cut_coverage import candidate_of
from flowsieve.pipeline.evaluation.evaluation import Candidate, Score, evaluate, evaluate_here
from flowsieve.pipeline.planning.holdout import Holdout, fingerprint
from flowsieve.pipeline.planning.methods import INDEXERS, Method, Workshop, make
from flowsieve.pipeline.planning.portfolio import Trial, candidates
from flowsieve.pipeline.planning.spark_planning import SparkWorkshop, make_plan, workshop_on
from flowsieve.pipeline.planning.table_cut import cut_table
from flowsieve.pipeline.reading.subscriptions import Subscriptions
from flowsieve.pipeline.runtime.event_sample import Drawn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FILTERS = filters_of(11, 60)
SINGLE = tuple(wanted for wanted in FILTERS if len(wanted.boxes) == 1)  # which are counted in another way


@pytest.fixture(scope="module")
def plans() -> list[IndexPlan]:
    shop = Workshop(SCHEMA, FILTERS, 10, 0, events_of(12, 1200))
    return [make(Method.parse(text), shop) for text in INDEXERS]


def brute_force(
    plan: IndexPlan, filters: tuple[Filter, ...], max_dz: int, events: EventBatch
) -> list[tuple[int, ...]]:
    """(covered, matched, missed, prefixes) of each subscription, dz by dz."""
    column = plan.encode_batch(events)
    out = []
    for wanted in filters:
        cover = plan.cover(wanted, max_dz)
        got = np.zeros(len(events), np.bool_)
        for entry in range(len(column.rows)):
            got[column.rows[entry]] |= cover.covers(column.dz(entry))
        matched = wanted.matches_batch(events)
        out.append((int(got.sum()), int(matched.sum()), int((matched & ~got).sum()), len(cover)))
    return out


def counted(score: Score) -> list[tuple[int, ...]]:
    columns = (score.covered, score.matched, score.missed, score.prefixes)
    return list(zip(*(column.tolist() for column in columns), strict=True))


@pytest.mark.parametrize("max_dz", [0, 5])
@pytest.mark.parametrize("filters", [FILTERS, SINGLE], ids=["unions too", "boxes alone"])
def test_counts_are_those_of_brute_force(
    plans: list[IndexPlan], filters: tuple[Filter, ...], max_dz: int
) -> None:
    events, boxes = events_of(13, 300), BoxTable.of(SCHEMA, filters)
    scores = evaluate_here([Candidate.of(plan, filters, max_dz) for plan in plans], boxes, events)
    for plan, score in zip(plans, scores, strict=True):
        assert counted(score) == brute_force(plan, filters, max_dz, events)
        (alone,) = evaluate_here([Candidate.of(plan, filters, max_dz)], boxes, events)
        assert counted(alone) == counted(score)
        assert score.false_positives == score.deliveries - score.matches
        assert 0.0 < score.fpr < 1.0


def test_a_lost_event_is_seen(plans: list[IndexPlan]) -> None:
    """Covers of other filters than those that are judged."""
    events = events_of(13, 300)
    for filters, max_dz in ((FILTERS, 0), (FILTERS, 5), (SINGLE, 0)):
        boxes = BoxTable.of(SCHEMA, filters)
        (score,) = evaluate_here([Candidate.of(plans[0], filters[::-1], max_dz)], boxes, events)
        lost = [
            wanted.matches_batch(events) & ~other.matches_batch(events)
            for wanted, other in zip(filters, filters[::-1], strict=True)
        ]
        assert 0 < score.false_negatives <= sum(int(some.sum()) for some in lost)
        assert score.false_positives == int(score.covered.sum()) - score.matches + score.false_negatives


def frame_of(spark: SparkSession, events: EventBatch, parts: int) -> DataFrame:
    side = SCHEMA["side"].values
    rows = [
        (f"e{i}", int(level), float(ratio), side[int(place)], name)
        for i, (level, ratio, place, name) in enumerate(zip(*events.columns.values(), strict=True))
    ]
    columns = "id string, level bigint, ratio double, side string, name string"
    return spark.createDataFrame(rows, columns).repartition(parts)


@pytest.mark.parametrize("max_dz", [0, 5])
def test_spark_counts_the_same_however_events_are_split(
    spark: SparkSession, plans: list[IndexPlan], max_dz: int
) -> None:
    events, boxes = events_of(14, 700), BoxTable.of(SCHEMA, FILTERS)
    here = evaluate_here([Candidate.of(plan, FILTERS, max_dz) for plan in plans], boxes, events)
    candidates = candidates_on(spark, plans, FILTERS, max_dz)
    for parts in (1, 5):
        there = evaluate(candidates, boxes, frame_of(spark, events, parts))
        assert [counted(score) for score in there] == [counted(score) for score in here]
        assert [score.events for score in there] == [700] * len(plans)


def test_covers_made_on_spark_weigh_by_the_events_that_they_are_given(
    spark: SparkSession, plans: list[IndexPlan], monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = Drawn.of(frame_of(spark, events_of(15, 400), 3), SCHEMA, 400, 300)
    monkeypatch.setattr(covers, "LEAST", len(FILTERS) // 3)  # so that there are several tasks
    there = candidates_on(spark, plans[:2], FILTERS, 4, drawn)
    weights = _seen(drawn)
    for plan, found in zip(plans, there, strict=False):
        here = Candidate.of(plan, FILTERS, 4, EventSample.of(plan, weights))
        assert found.coverage.digest == here.coverage.digest


def test_tables_are_cut_where_the_sample_is(spark: SparkSession, plans: list[IndexPlan]) -> None:
    drawn = Drawn.of(frame_of(spark, events_of(15, 400), 3), SCHEMA, 400, 300)
    (there,) = table_candidates(plans[:1], FILTERS, 30, [drawn])
    assert drawn.ask(lambda events: os.getpid()) != os.getpid()
    here = candidate_of(cut_table(plans[0], FILTERS, _seen(drawn), 30), FILTERS)
    assert there.coverage.digest == here.coverage.digest


def test_no_event_at_all_gives_counts_of_none(spark: SparkSession, plans: list[IndexPlan]) -> None:
    none = frame_of(spark, events_of(1, 4), 1).where("level < 0")
    (score,) = evaluate(candidates_on(spark, plans[:1], FILTERS, 0), BoxTable.of(SCHEMA, FILTERS), none)
    assert (score.events, score.deliveries, score.fpr) == (0, 0, 0.0)


def test_plans_do_not_depend_on_how_events_are_split(spark: SparkSession) -> None:
    wanted = Subscriptions(SCHEMA, tuple(f"s{i}" for i in range(len(FILTERS))), FILTERS)
    events = events_of(16, 900)
    made = []
    for parts in (1, 5):
        frame = frame_of(spark, events, parts)
        with workshop_on(frame, wanted, 10, 0, len(events), most=500) as shop:
            made.append(
                [make_plan(text, shop).plan for text in ("evs+ri", "cs+asi", "gs+asi", "lw", "kd", "auto")]
            )
    assert made[0] == made[1]


def test_auto_gives_up_what_executors_have_not_finished_when_its_time_is_over(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = Subscriptions(SCHEMA, tuple(f"s{i}" for i in range(len(FILTERS))), FILTERS)
    with workshop_on(frame_of(spark, events_of(16, 900), 2), wanted, 10, 4, 900, most=500) as shop:
        monkeypatch.setattr(SparkWorkshop, "try_out", _late_but_for("lw"))
        start = time.monotonic()
        made = make_plan("auto", shop, deadline=4.0)
        assert time.monotonic() - start < 60  # and not the ten minutes that the others would take
    assert made.portfolio is not None
    assert made.portfolio["chosen"] == "lw"
    assert set(made.portfolio["passed_over"]) == {*candidates(4)} - {"lw"}


def test_a_candidate_that_fails_fails_the_portfolio(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = Subscriptions(SCHEMA, tuple(f"s{i}" for i in range(len(FILTERS))), FILTERS)
    with workshop_on(frame_of(spark, events_of(16, 900), 2), wanted, 10, 4, 900, most=500) as shop:
        monkeypatch.setattr(SparkWorkshop, "try_out", _failing)
        with pytest.raises(Exception, match="no such luck"):
            make_plan("auto", shop)


def _late_but_for(name: str) -> Callable[[SparkWorkshop, str, float], Trial]:
    """Candidates that take their time in executors, all but one."""
    there = SparkWorkshop.try_out

    def try_out(shop: SparkWorkshop, other: str, seconds: float) -> Trial:
        if other != name:
            shop.drawn.ask(lambda events: time.sleep(600))
        return there(shop, other, seconds)

    return try_out


def _failing(shop: SparkWorkshop, name: str, seconds: float) -> Trial:
    def work(events: EventBatch) -> Trial:
        raise ValueError("no such luck")

    return shop.drawn.ask(work)


def test_a_sample_is_bounded_and_drawn_by_the_ids_alone(spark: SparkSession) -> None:
    events = events_of(17, 3000)
    drawn = [_seen(Drawn.of(frame_of(spark, events, parts), SCHEMA, 3000, 400)) for parts in (1, 4)]
    assert [len(some) for some in drawn] == [400, 400]
    for name in SCHEMA.names:
        assert (drawn[0].columns[name] == drawn[1].columns[name]).all()


def test_a_sample_of_no_event_is_asked_as_well(spark: SparkSession) -> None:
    none = frame_of(spark, events_of(1, 4), 1).where("level < 0")
    drawn = Drawn.of(none, SCHEMA, 0, 10)
    assert drawn.ask(len) == 0
    assert {name: len(column) for name, column in _seen(drawn).columns.items()} == dict.fromkeys(
        SCHEMA.names, 0
    )


def test_events_are_held_back_by_time_or_else_by_lot(spark: SparkSession) -> None:
    frame = frame_of(spark, events_of(18, 2000), 3)
    rule = Holdout.latest(frame, 0.25)
    assert rule.since is None
    planned, judged = rule.planned_on(frame).count(), rule.judged_on(frame).count()
    assert planned + judged == 2000
    assert 400 < judged < 600
    timed = frame.selectExpr("*", "timestamp_seconds(cast(substr(id, 2) as bigint)) as time")
    rule = Holdout.latest(timed, 0.25)
    assert rule.since is not None
    late = {int(row["id"][1:]) for row in rule.judged_on(timed).select("id").collect()}
    assert late == set(range(2000 - len(late), 2000))
    assert 495 <= len(late) <= 510
    assert Holdout.from_json(rule.to_json()) == rule


def test_a_fingerprint_tells_events_apart_but_not_their_order(spark: SparkSession) -> None:
    one, other = events_of(19, 200), events_of(20, 200)
    assert fingerprint(frame_of(spark, one, 1)) == fingerprint(frame_of(spark, one, 4))
    assert fingerprint(frame_of(spark, one, 1)) != fingerprint(frame_of(spark, other, 1))


def _seen(drawn: Drawn) -> EventBatch:
    """The events of a sample, brought here to be looked at."""
    try:
        return drawn.ask(lambda events: events)
    finally:
        drawn.forget()
