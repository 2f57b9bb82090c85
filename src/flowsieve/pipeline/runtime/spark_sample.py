"""A bounded sample of events that stays on Spark: functions are sent to it, and only their results come back.

Which events are drawn depends on the events alone, not on how they are split, so that the same events give the same
sample everywhere.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from flowsieve.content.event import EventBatch
from flowsieve.content.schema import Schema
from flowsieve.pipeline.runtime.batches import event_batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

T = TypeVar("T")
SAMPLE = 60_000  # events, however many there are
PARTS = 1_000_000
MOMENT = "_moment"


@dataclass(frozen=True, eq=False)
class SparkSample:
    """At most so many events in one partition, which executors keep until it is forgotten."""

    schema: Schema
    frame: DataFrame

    @classmethod
    def of(cls, events: DataFrame, schema: Schema, count: int, most: int = SAMPLE) -> SparkSample:
        """Draw at most so many of `count` events, by a hash of their ids."""
        lot = F.xxhash64(F.lit(5), F.col("id")).alias("_lot")
        moment = (F.unix_micros("time") if "time" in events.columns else F.lit(0)).alias(MOMENT)
        some = events.select(lot, moment, "id", *schema.names)
        if count > 4 * most:  # drop most before sorting
            some = some.where(F.pmod("_lot", F.lit(PARTS)) < F.lit(int(2 * most / count * PARTS) + 1))
        return cls(schema, some.orderBy("_lot", "id").limit(most).drop("_lot", "id").persist())

    def ask(self, work: Callable[[EventBatch], T]) -> T:
        """The result of a function on the sample, whose events are in the order of time if they have times."""
        schema = self.schema

        def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            found = pickle.dumps(work(_gathered(schema, batches)))
            yield pa.RecordBatch.from_pydict({"found": pa.array([found], pa.binary())})

        rows = self.frame.mapInArrow(task, "found binary").collect()
        if not rows:  # Spark saw that there is no event at all, and asked nobody
            return work(_gathered(schema, iter(())))
        (row,) = rows
        found: T = pickle.loads(row["found"])
        return found

    def copies(self, number: int) -> DataFrame:
        """The whole sample so many times, each copy one value (`copied_events`) beside the number of its part."""
        schema = self.schema

        def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            copy = pickle.dumps(_gathered(schema, batches))
            for part in range(number):
                yield pa.RecordBatch.from_pydict({"part": [part], "found": pa.array([copy], pa.binary())})

        return self.frame.mapInArrow(task, "part bigint, found binary").repartition(number)

    def forget(self) -> None:
        """Let executors use the room for something else."""
        self.frame.unpersist()


def copied_events(copy: bytes) -> EventBatch:
    """The sample that a row of `SparkSample.copies` holds."""
    events: EventBatch = pickle.loads(copy)
    return events


def _gathered(schema: Schema, batches: Iterator[pa.RecordBatch]) -> EventBatch:
    """All batches of the sample as one, in the order of time."""
    known = [batch for batch in batches if batch.num_rows]
    if not known:
        return EventBatch.from_events(schema, "", [])
    table = pa.Table.from_batches(known).combine_chunks()
    moments = table.column(MOMENT).to_numpy()
    order = np.lexsort((np.arange(len(moments)), moments))
    (batch,) = table.take(pa.array(order)).combine_chunks().to_batches()
    return event_batch(schema, batch)
