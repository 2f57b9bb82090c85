"""Evaluation counts exactly what covers deliver, for many plans in one pass, however the events are split."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from plan_workloads import SCHEMA, events_of, filters_of, frame_of

from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.index.plan import IndexPlan
from flowsieve.pipeline.evaluation.covers import candidates_on
from flowsieve.pipeline.evaluation.evaluation import Candidate, Score, evaluate, evaluate_here
from flowsieve.pipeline.matching.boxes import BoxTable
from flowsieve.pipeline.planning.methods import INDEXERS, Method, Workshop, make

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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


def test_no_event_at_all_gives_counts_of_none(spark: SparkSession, plans: list[IndexPlan]) -> None:
    none = frame_of(spark, events_of(1, 4), 1).where("level < 0")
    (score,) = evaluate(candidates_on(spark, plans[:1], FILTERS, 0), BoxTable.of(SCHEMA, FILTERS), none)
    assert (score.events, score.deliveries, score.fpr) == (0, 0, 0.0)
