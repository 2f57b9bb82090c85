"""What a controller lands of telemetry is what the planner reads, as it is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.flow.interest import Interest
from flowsieve.index.dzset import EMPTY
from flowsieve.pipeline.reading.ingest import read_events
from flowsieve.pipeline.reading.subscriptions import read_subscriptions
from flowsieve.serving.telemetry.landing import TelemetryFolder
from flowsieve.serving.telemetry.rows import LandedEvent, ReportRows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_landed_events_and_subscriptions_are_read_without_a_fault(
    spark: SparkSession, schema: Schema, tmp_path: Path
) -> None:
    folder = TelemetryFolder(tmp_path / "telemetry")
    folder.prepare()
    event = {"price": 7, "ratio": 0.5, "side": "sell", "live": True, "name": "é"}
    for seq in range(3):
        rows = ReportRows()
        rows.events.append(LandedEvent(f"0102030405060708-{seq}", 1_795_000_000_000_000, "h1", 10.0, event))
        folder.land(rows, schema, 1_795_000_001_000_000 + seq)
    (tmp_path / "telemetry" / "events" / ".20261118T110641.000000-000009.parquet").write_bytes(b"half")
    folder.land_subscriptions([Interest("s1", "h2", Filter.parse("price < 9", schema), EMPTY)], 1)
    read = read_events(spark, folder.folder / "events", schema, time="sent_at")
    assert read.account.rows == read.account.good == 3
    found = sorted(row.asDict()["id"] for row in read.events.collect())
    assert found == [f"0102030405060708-{seq}" for seq in range(3)]
    assert {name: read.events.first()[name] for name in schema.names} == event  # type: ignore[index]
    held = read_subscriptions(spark, folder.folder / "subscriptions" / "000000000001.parquet", schema)
    assert held.checked().ids == ("s1",) and held.subscriptions.hosts == ("h2",)
