"""A sample that stays on Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plan_workloads import SCHEMA, events_of, frame_of, sampled

from flowsieve.pipeline.runtime.spark_sample import SparkSample

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_sample_is_bounded_and_drawn_by_the_ids_alone(spark: SparkSession) -> None:
    events = events_of(17, 3000)
    drawn = [sampled(SparkSample.of(frame_of(spark, events, parts), SCHEMA, 3000, 400)) for parts in (1, 4)]
    assert [len(some) for some in drawn] == [400, 400]
    for name in SCHEMA.names:
        assert (drawn[0].columns[name] == drawn[1].columns[name]).all()


def test_a_sample_of_no_event_is_asked_as_well(spark: SparkSession) -> None:
    none = frame_of(spark, events_of(1, 4), 1).where("level < 0")
    drawn = SparkSample.of(none, SCHEMA, 0, 10)
    assert drawn.ask(len) == 0
    assert {name: len(column) for name, column in sampled(drawn).columns.items()} == dict.fromkeys(
        SCHEMA.names, 0
    )
