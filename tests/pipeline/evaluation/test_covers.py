"""Covers made on Spark are those that are made here."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from plan_workloads import SCHEMA, events_of, filters_of, frame_of, sampled

from flowsieve.index.plan import IndexPlan
from flowsieve.index.sample import EventSample
from flowsieve.pipeline.evaluation import covers
from flowsieve.pipeline.evaluation.covers import candidates_on, table_candidates
from flowsieve.pipeline.evaluation.cut_coverage import candidate_of
from flowsieve.pipeline.evaluation.evaluation import Candidate
from flowsieve.pipeline.evaluation.table_cut import cut_table
from flowsieve.pipeline.planning.methods import INDEXERS, Method, Workshop, make
from flowsieve.pipeline.runtime.spark_sample import SparkSample

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


FILTERS = filters_of(11, 60)


@pytest.fixture(scope="module")
def plans() -> list[IndexPlan]:
    shop = Workshop(SCHEMA, FILTERS, 10, 0, events_of(12, 1200))
    return [make(Method.parse(text), shop) for text in INDEXERS]


def test_covers_made_on_spark_weigh_by_the_events_that_they_are_given(
    spark: SparkSession, plans: list[IndexPlan], monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = SparkSample.of(frame_of(spark, events_of(15, 400), 3), SCHEMA, 400, 300)
    monkeypatch.setattr(covers, "LEAST", len(FILTERS) // 3)  # so that there are several tasks
    there = candidates_on(spark, plans[:2], FILTERS, 4, drawn)
    weights = sampled(drawn)
    for plan, found in zip(plans, there, strict=False):
        here = Candidate.of(plan, FILTERS, 4, EventSample.of(plan, weights))
        assert found.coverage.digest == here.coverage.digest


def test_tables_are_cut_where_the_sample_is(spark: SparkSession, plans: list[IndexPlan]) -> None:
    drawn = SparkSample.of(frame_of(spark, events_of(15, 400), 3), SCHEMA, 400, 300)
    (there,) = table_candidates(plans[:1], FILTERS, 30, [drawn])
    assert drawn.ask(lambda events: os.getpid()) != os.getpid()
    here = candidate_of(cut_table(plans[0], FILTERS, sampled(drawn), 30), FILTERS)
    assert there.coverage.digest == here.coverage.digest
