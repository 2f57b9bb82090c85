"""Which events are held back to judge a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plan_workloads import events_of, frame_of

from flowsieve.pipeline.planning.holdout import Holdout, fingerprint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
