"""The rows that were set aside, into a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from flowsieve.pipeline.reading.frame_files import write_frame
from flowsieve.pipeline.reading.ingest import Intake
from flowsieve.pipeline.reading.subscriptions import Subscribed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = "file string, row bigint, kind string, reason string, text string"


def write_aside(
    spark: SparkSession, path: Path, intake: Intake | None, subscribed: Subscribed | None
) -> None:
    """Write file, row, kind, reason and text of each row, of events and of subscriptions; nothing if there is none."""
    frames = []
    if intake is not None and intake.account.good < intake.account.rows:
        frames.append(intake.aside)
    if subscribed is not None and subscribed.aside:
        frames.append(spark.createDataFrame([tuple(row) for row in subscribed.aside], COLUMNS))
    if frames:
        write_frame(frames[0] if len(frames) == 1 else frames[0].union(frames[1]), path)
