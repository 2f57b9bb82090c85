"""Small workloads of mixed types for tests of planning and evaluation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Attribute, Schema
from flowsieve.pipeline.runtime.spark_sample import SparkSample

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = Schema.parse(
    {
        "level": {"type": "int", "min": 0, "max": 999},
        "ratio": {"type": "float", "min": -1.0, "max": 1.0},
        "side": {"type": "enum", "values": ["buy", "sell", "hold"]},
        "name": {"type": "string"},
    }
)
NAMES = ("ant", "bee", "cat", "dog")


def events_of(seed: int, number: int) -> EventBatch:
    rng = np.random.default_rng(seed)
    columns = {
        "level": np.clip(np.rint(rng.normal(300, 150, number)), 0, 999),
        "ratio": np.clip(rng.normal(0.2, 0.3, number), -1.0, 1.0),
        "side": rng.integers(0, 3, number).astype(np.float64),
        "name": np.array(NAMES, dtype=object)[rng.integers(0, len(NAMES), number)],
    }
    ids = np.array([f"e{i}" for i in range(number)], dtype=object)
    return EventBatch(SCHEMA, ids, np.full(number, "", dtype=object), columns)


def filters_of(seed: int, number: int) -> tuple[Filter, ...]:
    """Boxes around where events are, some of them unions, some open in a dimension."""
    rng = np.random.default_rng(seed)
    out = []
    for i in range(number):
        low, width = int(rng.normal(280, 150)), int(rng.integers(0, 150))
        low = min(max(low, 0), 998)
        text = f"{low} <= level <= {low + width}"
        if i % 2:
            centre = float(np.clip(rng.normal(0.2, 0.3), -0.9, 0.9))
            text += f" and {centre - 0.15!r} < ratio <= {centre + 0.1!r}"
        if i % 5 == 0:
            text += f" and name == '{NAMES[i % 4]}'"
        if i % 7 == 0:
            text = f"({text}) or (side == 'sell' and level < {low // 2 + 1})"
        out.append(Filter.parse(text, SCHEMA))
    return tuple(out)


def workload(seed: int) -> tuple[Schema, tuple[Filter, ...], EventBatch, EventBatch]:
    """Six dimensions of which two tell subscriptions apart."""
    rng = np.random.default_rng(seed)
    schema = Schema(tuple(Attribute(f"a{i}", "int", 0, 1023) for i in range(6)))
    centre = np.clip(rng.normal(400, 200, (300, 6)), 0, 1023)
    width = np.array([2000, 80, 2000, 2000, 120, 2000])
    filters = tuple(
        Filter.parse(
            " and ".join(
                f"{int(c - w / 2)} <= a{i} <= {int(c + w / 2)}"
                for i, (c, w) in enumerate(zip(row, width, strict=True))
            ),
            schema,
        )
        for row in centre
    )

    def events() -> EventBatch:
        points = np.clip(np.rint(rng.normal(400, 200, (4000, 6))), 0, 1023)
        empty = np.full(len(points), "", dtype=object)
        return EventBatch(schema, empty, empty, {f"a{i}": points[:, i].copy() for i in range(6)})

    return schema, filters, events(), events()


def frame_of(spark: SparkSession, events: EventBatch, parts: int) -> DataFrame:
    side = SCHEMA["side"].values
    rows = [
        (f"e{i}", int(level), float(ratio), side[int(place)], name)
        for i, (level, ratio, place, name) in enumerate(zip(*events.columns.values(), strict=True))
    ]
    columns = "id string, level bigint, ratio double, side string, name string"
    return spark.createDataFrame(rows, columns).repartition(parts)


def sampled(sample: SparkSample) -> EventBatch:
    """The events of a sample, brought here to be looked at."""
    try:
        return sample.ask(lambda events: events)
    finally:
        sample.forget()
