"""The rows that were set aside, into a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from flowsieve.pipeline.reading.ingest import IngestedEvents
from flowsieve.pipeline.reading.subscriptions import Subscribed
from flowsieve.pipeline.runtime.frame_files import write_frame

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = "file string, row bigint, kind string, reason string, text string"


def write_aside(
    spark: SparkSession, path: Path, ingested: IngestedEvents | None, subscribed: Subscribed | None
) -> None:
    """Write file, row, kind, reason and text of each row, of events and of subscriptions; nothing if there is none."""
    frames = []
    if ingested is not None and ingested.account.good < ingested.account.rows:
        frames.append(ingested.aside)
    if subscribed is not None and subscribed.aside:
        frames.append(spark.createDataFrame([tuple(row) for row in subscribed.aside], COLUMNS))
    if frames:
        write_frame(frames[0] if len(frames) == 1 else frames[0].union(frames[1]), path)
