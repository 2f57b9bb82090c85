"""Statistics on Spark: those of a plain count in NumPy, however the events are split."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.pipeline.matching.boxes import BoxTable
from flowsieve.pipeline.matching.statistics import statistics
from flowsieve.pipeline.synth.synth import synth_events, synth_subscriptions
from flowsieve.pipeline.synth.workload import Workload

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORKLOAD = Workload("stock", seed=9)


@pytest.fixture(scope="module")
def boxes(spark: SparkSession) -> BoxTable:
    texts = [row["filter"] for row in synth_subscriptions(spark, WORKLOAD, 100).collect()]
    texts += ["symbol in ('S000', 'S002') or volume < 9000", "open != 5.0", "True"]
    return BoxTable.of(WORKLOAD.schema, [Filter.parse(text, WORKLOAD.schema) for text in texts])


def test_they_are_those_of_a_plain_count(spark: SparkSession, boxes: BoxTable) -> None:
    frame = synth_events(spark, WORKLOAD, 3_000)
    found = statistics(frame, boxes)
    events = EventBatch.from_frame(WORKLOAD.schema, frame.toPandas(), needs_host=False)
    points = boxes.points(events)
    matches = boxes.matches(points)
    assert found.events == 3_000
    assert found.unwanted == 0
    assert np.array_equal(found.traffic, matches.sum(axis=1))
    for i, attribute in enumerate(WORKLOAD.schema):
        share = (points[i] - attribute.min) / (attribute.max - attribute.min)
        assert found.variance[i] == pytest.approx(np.var(share), rel=1e-4, abs=1e-12)
    along = np.zeros((len(WORKLOAD.schema), *matches.shape), bool)
    for box, owner in enumerate(boxes.owner):
        inside = (boxes.low[box][:, None] <= points) & (points <= boxes.high[box][:, None])
        along[:, owner] |= inside
    similar = np.einsum("ise,jse->ij", along.astype(np.int64), along.astype(np.int64))
    assert np.array_equal(found.matched, similar)
    assert found.covariance == pytest.approx(1 - similar / (3_000 * boxes.subscriptions))
    assert found.selectivity == pytest.approx(along.mean(axis=(1, 2)))
    values, vectors = np.linalg.eigh(found.covariance)
    assert found.principal == pytest.approx(np.abs(vectors[:, np.argmax(values)]))


def test_they_do_not_depend_on_the_partitioning(spark: SparkSession, boxes: BoxTable) -> None:
    one, seven = (statistics(synth_events(spark, WORKLOAD, 3_000, parts), boxes) for parts in (1, 7))
    assert one.to_json() == seven.to_json()
    assert np.array_equal(one.traffic, seven.traffic)
    assert np.array_equal(one.variance, seven.variance)


def test_no_events_give_zeros(spark: SparkSession, boxes: BoxTable) -> None:
    found = statistics(synth_events(spark, WORKLOAD, 10).where("false"), boxes)
    assert found.events == 0
    assert found.traffic.sum() == 0
    assert found.workers == ()
    assert found.to_json()["matches"] == 0
