"""Synthetic workloads: always the same for a seed, and like what they are asked to be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.errors import BadInput
from flowsieve.pipeline.synth.synth import synth_events, synth_subscriptions
from flowsieve.pipeline.synth.workload import KINDS, SELECTIVITIES, Terrain, Workload

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def drawn(spark: SparkSession, count: int, parts: int = 2, **given: Any) -> pd.DataFrame:
    return synth_events(spark, Workload(**given), count, parts).toPandas()


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_gives_the_same_data_whatever_the_partitioning(spark: SparkSession, kind: str) -> None:
    workload, other = (
        Workload(kind, attributes=3, drift=0.3, correlation="high", hosts=4, seed=seed) for seed in (5, 6)
    )
    for draw in (synth_subscriptions, synth_events):
        one, seven = (draw(spark, workload, 500, parts) for parts in (1, 7))
        assert seven.rdd.getNumPartitions() == 7
        first, second = (frame.toPandas().sort_values("id", ignore_index=True) for frame in (one, seven))
        assert len(first) == 500
        pd.testing.assert_frame_equal(first, second)
    strange = synth_events(spark, other, 500, 1).toPandas().sort_values("id", ignore_index=True)
    names = list(workload.schema.names)
    assert (strange[names] != first[names]).any(axis=1).sum() > 400


@pytest.mark.parametrize(("kind", "attributes"), [(kind, 12 if kind == "zipf" else 5) for kind in KINDS])
def test_events_lie_in_the_schema_and_every_filter_can_be_read(
    spark: SparkSession, kind: str, attributes: int
) -> None:
    workload = Workload(kind, attributes=attributes, seed=1)
    batch = EventBatch.from_frame(
        workload.schema, drawn(spark, 2_000, kind=kind, attributes=attributes, seed=1), needs_host=False
    )
    assert not batch.faults()[0].any()
    texts = [row["filter"] for row in synth_subscriptions(spark, workload, 300).collect()]
    filters = [Filter.parse(text, workload.schema) for text in texts]
    assert len({filter.text for filter in filters}) > 50
    assert sum(int(filter.matches_batch(batch).sum()) for filter in filters) > 0


def test_zipfsel_is_what_the_figures_are_about(spark: SparkSession) -> None:
    workload = Workload("zipfsel", seed=3)
    terrain = Terrain.of(workload)
    assert sorted(terrain.width) == sorted(SELECTIVITIES)
    assert terrain.centre.shape == terrain.deviation.shape == (8, 8)
    assert (terrain.centre * 4096 >= 400).all() and (terrain.centre * 4096 <= 3700).all()
    assert (terrain.deviation * 4096 >= 50).all() and (terrain.deviation * 4096 <= 800).all()
    texts = [row["filter"] for row in synth_subscriptions(spark, workload, 2_000).collect()]
    narrow = int(np.argmin(terrain.width))
    boxes = [Filter.parse(text, workload.schema).boxes[0][narrow] for text in texts]
    widths = np.array([box.high - box.low + 1 for box in boxes if box.low > 0 and box.high < 4095])
    assert widths.min() > 0.49 * 0.08 * 4096 and widths.max() < 1.51 * 0.08 * 4096 + 2
    assert widths.mean() == pytest.approx(0.08 * 4096, rel=0.05)


def test_hotspots_are_popular_by_zipfs_law(spark: SparkSession) -> None:
    shares = np.diff(Terrain.of(Workload("zipf", hotspots=4)).popularity, prepend=0)
    assert shares * 25 / 12 == pytest.approx([1, 1 / 2, 1 / 3, 1 / 4])
    workload = Workload("zipf", attributes=1, hotspots=2, variance="uniform", seed=11)
    centres = Terrain.of(workload).centre[:, 0] * 4096
    values = drawn(spark, 4_000, kind="zipf", attributes=1, hotspots=2, variance="uniform", seed=11)["a0"]
    mean = centres @ [2 / 3, 1 / 3]
    assert values.mean() == pytest.approx(mean, abs=60)


def test_correlation_ties_most_dimensions_or_two(spark: SparkSession) -> None:
    def strong(correlation: str, kind: str) -> int:
        frame = drawn(
            spark,
            3_000,
            kind=kind,
            attributes=4,
            hotspots=1,
            correlation=correlation,
            variance="uniform",
            seed=2,
        )
        found = frame[["a0", "a1", "a2", "a3"]].corr().to_numpy()
        return int((found[np.triu_indices(4, 1)] > 0.15).sum())

    for kind in ("zipf", "uniform"):
        assert strong("none", kind) == 0
        assert strong("low", kind) == 1
        assert strong("high", kind) == 3


def test_variance_differs_between_dimensions_only_if_asked(spark: SparkSession) -> None:
    names = [f"a{i}" for i in range(6)]
    random, uniform = (
        drawn(spark, 3_000, kind="zipf", attributes=6, hotspots=1, variance=variance, seed=4)[names].std()
        for variance in ("random", "uniform")
    )
    assert random.max() > 2 * random.min()
    assert uniform.max() < 1.2 * uniform.min()


def test_drift_moves_the_hotspots(spark: SparkSession) -> None:
    frame = drawn(spark, 4_000, kind="zipf", attributes=1, hotspots=1, drift=0.5, variance="uniform", seed=1)
    frame = frame.sort_values("time")
    early, late = frame["a0"][:400].mean(), frame["a0"][-400:].mean()
    still = drawn(
        spark, 4_000, kind="zipf", attributes=1, hotspots=1, variance="uniform", seed=1
    ).sort_values("time")
    assert abs(late - early) > 400
    assert abs(still["a0"][:400].mean() - still["a0"][-400:].mean()) < 150


def test_quotes_and_readings_hang_together(spark: SparkSession) -> None:
    quotes = drawn(spark, 3_000, kind="stock")
    assert (quotes["low"] <= quotes[["open", "close"]].min(axis=1) + 0.011).all()
    assert (quotes["high"] >= quotes[["open", "close"]].max(axis=1) - 0.011).all()
    spread = np.log(quotes["close"].clip(lower=0.01))
    within = spread.groupby(quotes["symbol"]).std().median()
    assert within < 0.6 * spread.std()
    assert quotes["symbol"].value_counts().iloc[0] > 5 * quotes["symbol"].value_counts().median()
    readings = drawn(spark, 3_000, kind="sensor")
    assert readings[["temperature", "humidity"]].corr().iloc[0, 1] < -0.5


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"kind": "zip"},
            "kind is 'zip'; right is one of uniform, zipf, zipfsel, stock, sensor; did you mean 'zipf'",
        ),
        ({"hotspots": 9}, "hotspots is 9; right is a number from 1 to 8"),
        ({"correlation": "some"}, "correlation is 'some'; right is one of none, low, high"),
        ({"bits": 0}, "bits is 0"),
    ],
)
def test_a_workload_that_cannot_be_drawn_is_bad_input(given: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput) as error:
        Workload(**given)
    assert message in str(error.value)
