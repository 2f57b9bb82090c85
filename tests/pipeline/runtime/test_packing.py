"""Attributes that share a column come out of it as they went in."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from flowsieve.content.schema import Schema
from flowsieve.errors import BadValue
from flowsieve.pipeline.runtime.packing import ROOM, Packing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = Schema.parse(
    {
        "a": {"type": "int", "min": -5, "max": 1000},
        "ratio": {"type": "float", "min": 0.0, "max": 1.0},
        "b": {"type": "int", "min": 7, "max": 7},
        "side": {"type": "enum", "values": ["buy", "sell"]},
        "far": {"type": "int", "min": -(2**50), "max": 2**50},
        "c": {"type": "int", "min": 0, "max": 2**30 - 1},
        "d": {"type": "int", "min": -(2**20), "max": -3},
        "e": {"type": "int", "min": 1_000_000, "max": 1_000_200},
    }
)
COLUMNS = "a int, ratio double, b bigint, side string, far bigint, c bigint, d bigint, e bigint"
TYPES = dict(column.split() for column in COLUMNS.split(", "))
ROWS = [
    (-5, 0.5, 7, "sell", -(2**50), 2**30 - 1, -3, 1_000_000),
    (1000, 0.25, 7, "buy", 2**50, 0, -(2**20), 1_000_200),
    (0, 1.0, 7, "buy", 1, 12345, -77, 1_000_100),
]


def frame_of(spark: SparkSession, rows: list[tuple[object, ...]]) -> DataFrame:
    return spark.createDataFrame(rows, COLUMNS)


def test_only_short_whole_numbers_share_columns() -> None:
    packing = Packing.of(SCHEMA, TYPES)
    names = [[field.name for field in fields] for fields in packing.columns]
    assert names == [["a", "b", "c", "d"]]  # e would not fit into the same, and has no neighbour in the next
    for fields in packing.columns:
        ends = [(field.shift, field.shift + field.bits) for field in fields]
        assert all(end <= begin for (_, end), (begin, _) in pairwise(ends))
        assert ends[-1][1] <= ROOM
    assert Packing.of(SCHEMA, dict.fromkeys(SCHEMA.names, "double")).columns == ()


def test_what_is_packed_by_spark_is_unpacked_exactly(spark: SparkSession) -> None:
    frame = frame_of(spark, ROWS)
    packing = Packing.of(SCHEMA, dict(frame.dtypes))
    packed = packing.packed(frame)
    assert len(packed.columns) < len(SCHEMA)
    events = packing.event_batch(packed.toArrow().combine_chunks().to_batches()[0])
    assert list(events.columns) == list(SCHEMA.names)
    for i, attribute in enumerate(SCHEMA):
        points = [attribute.point(value) for value in (row[i] for row in ROWS)]
        assert np.array_equal(events.columns[attribute.name], np.array(points, np.float64))


@pytest.mark.parametrize(("place", "value"), [(0, -6), (0, 2000), (0, None), (5, 2**30), (6, 1), (2, 6)])
def test_a_value_beyond_its_bits_is_no_other_event(
    spark: SparkSession, place: int, value: int | None
) -> None:
    row = [*ROWS[0]]
    row[place] = value
    frame = frame_of(spark, [ROWS[1], tuple(row)])
    packing = Packing.of(SCHEMA, dict(frame.dtypes))
    with pytest.raises(BadValue, match="1 events have no value for one of a, b, c, d"):
        packing.event_batch(packing.packed(frame).toArrow().combine_chunks().to_batches()[0])


def test_columns_that_are_not_packed_stay_as_they_are() -> None:
    batch = pa.RecordBatch.from_pydict({"x": [0.5, 0.25]})
    schema = Schema.parse({"x": {"type": "float", "min": 0.0, "max": 1.0}})
    events = Packing.of(schema, {"x": "double"}).event_batch(batch)
    assert events.columns["x"].tolist() == [0.5, 0.25]
    assert len(events) == 2
