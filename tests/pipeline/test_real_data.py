"""Real data goes through the pipeline: quotes with their subscriptions, and readings with gaps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest

from flowsieve.pipeline.matching.statistics import statistics
from flowsieve.pipeline.reading.infer import infer_schema
from flowsieve.pipeline.reading.ingest import read_events
from flowsieve.pipeline.reading.subscriptions import read_subscriptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_padres_quotes_match_their_subscriptions_as_often_as_was_counted(
    spark: SparkSession, shared: Path
) -> None:
    path = shared / "data" / "stock_padres_1984_2004.parquet"
    schema = infer_schema(spark, path).schema
    assert [(attribute.name, attribute.kind) for attribute in schema] == [
        ("symbol", "enum"),
        ("open", "float"),
        ("high", "float"),
        ("low", "float"),
        ("close", "float"),
        ("volume", "int"),
    ]
    file = shared / "data" / "padres_stock_subscriptions_10k.csv.gz"
    read = read_subscriptions(spark, file, schema)
    assert (read.account.rows, read.account.broken) == (10_000, 0)
    boxes = read.checked().boxes
    found = statistics(read_events(spark, path, schema).checked(), boxes)
    assert found.events == 245_189
    wanted = counted(pd.read_parquet(path), pd.read_csv(file))
    left_out = {aside.row - 2 for aside in read.aside}
    assert found.traffic.tolist() == [count for i, count in enumerate(wanted) if i not in left_out]


def counted(quotes: pd.DataFrame, subscriptions: pd.DataFrame) -> list[int]:
    """How many quotes match each subscription, in plain pandas; the file's own counts, where these are exact.

    The file's counts compare prices in 32 bits. We compare the numbers themselves, as the core does.
    """
    by_symbol = dict(iter(quotes.groupby("symbol")))
    counts = []
    for row in subscriptions.itertuples():
        some = by_symbol[row.symbol] if isinstance(row.symbol, str) else quotes
        count = len(some)
        if isinstance(row.attr, str):
            values = some[row.attr].astype(float)
            count = int(((values > row.value) if row.op == ">" else (values < row.value)).sum())
        if row.attr not in ("high", "low"):
            assert count == row.matches
        counts.append(count)
    return counts


@pytest.mark.parametrize(
    ("name", "rows", "missing"),
    [
        ("sensor_beijing_airquality", 420_768, 38_600),
        ("sensor_occupancy", 20_560, 0),
        ("traffic_metr_la_week", 417_312, 0),
    ],
)
def test_readings_are_taken_in_and_those_with_gaps_set_aside(
    spark: SparkSession, shared: Path, name: str, rows: int, missing: int
) -> None:
    path = shared / "data" / f"{name}.parquet"
    schema = infer_schema(spark, path).schema
    intake = read_events(spark, path, schema)
    account = intake.account
    assert (account.rows, account.missing, account.broken, account.outside) == (rows, missing, 0, 0)
    gaps = int(pd.read_parquet(path).isna().any(axis=1).sum())
    assert gaps == missing
    assert "time" in intake.events.columns
