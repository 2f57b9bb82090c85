"""Planning on Spark: the same plans however events are split, and within a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from plan_workloads import SCHEMA, events_of, filters_of, frame_of

from flowsieve.content.event import EventBatch
from flowsieve.pipeline.planning.portfolio import PlannerTrial, candidate_names
from flowsieve.pipeline.planning.spark_planning import SparkWorkshop, make_plan, workshop_on
from flowsieve.pipeline.reading.subscriptions import Subscriptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


FILTERS = filters_of(11, 60)


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
    assert set(made.portfolio["passed_over"]) == {*candidate_names(shop.wanted.schema, 4)} - {"lw"}


def test_a_candidate_that_fails_fails_the_portfolio(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = Subscriptions(SCHEMA, tuple(f"s{i}" for i in range(len(FILTERS))), FILTERS)
    with workshop_on(frame_of(spark, events_of(16, 900), 2), wanted, 10, 4, 900, most=500) as shop:
        monkeypatch.setattr(SparkWorkshop, "try_out", _failing)
        with pytest.raises(Exception, match="no such luck"):
            make_plan("auto", shop)


def _late_but_for(name: str) -> Callable[[SparkWorkshop, str, float], PlannerTrial]:
    """Candidates that take their time in executors, all but one."""
    there = SparkWorkshop.try_out

    def try_out(shop: SparkWorkshop, other: str, seconds: float) -> PlannerTrial:
        if other != name:
            shop.sample.ask(lambda events: time.sleep(600))
        return there(shop, other, seconds)

    return try_out


def _failing(shop: SparkWorkshop, name: str, seconds: float) -> PlannerTrial:
    def work(events: EventBatch) -> PlannerTrial:
        raise ValueError("no such luck")

    return shop.sample.ask(work)
