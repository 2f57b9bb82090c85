"""Covers of many filters, made on Spark: each is a search of its own, and there are thousands.

Those of a whole table are one search, over a bounded sample, and are made here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.index.dzset import DzSet
from flowsieve.index.plan import IndexPlan
from flowsieve.index.sample import EventSample
from flowsieve.pipeline.coverage import Listed, Touching
from flowsieve.pipeline.cut_coverage import candidate_of
from flowsieve.pipeline.evaluation import Candidate
from flowsieve.pipeline.planning.table_cut import cut_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = "number bigint, count bigint, hi binary, lo binary, length binary"
TASKS = 8
LEAST = 500  # covers that are worth a task of their own


def candidates_on(
    spark: SparkSession,
    plans: Sequence[IndexPlan],
    filters: Sequence[Filter],
    max_dz: int,
    events: EventBatch | None = None,
) -> list[Candidate]:
    """Candidates for an evaluation: covers of at most `max_dz` dz (0: exact), weighed by events if there are any."""
    tasks = max(1, min(TASKS, len(plans) * len(filters) // LEAST))
    frame = spark.range(0, len(plans) * len(filters), 1, tasks)
    rows = frame.mapInArrow(_cover(list(plans), list(filters), max_dz, events), COLUMNS).collect()
    rows.sort(key=lambda row: row["number"])
    out = []
    for i, plan in enumerate(plans):
        own = rows[i * len(filters) : (i + 1) * len(filters)]
        prefixes = np.array([row["count"] for row in own], np.int64)
        if max_dz:
            covers = [
                DzSet.from_arrays(
                    np.frombuffer(row["hi"], np.uint64),
                    np.frombuffer(row["lo"], np.uint64),
                    np.frombuffer(row["length"], np.int64),
                )
                for row in own
            ]
            out.append(Candidate(plan, Listed.of(plan, covers), prefixes))
        else:
            out.append(Candidate(plan, Touching.of(plan, filters), prefixes))
    return out


def table_candidates(
    plans: Sequence[IndexPlan], filters: Sequence[Filter], capacity: int, samples: Sequence[EventBatch]
) -> list[Candidate]:
    """Candidates whose covers are those of a whole table of at most so many entries, cut by a sample for each plan."""
    pairs = zip(plans, samples, strict=True)
    return [candidate_of(cut_table(plan, filters, some, capacity), filters) for plan, some in pairs]


def _cover(
    plans: list[IndexPlan], filters: list[Filter], max_dz: int, events: EventBatch | None
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def cover(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        samples: dict[int, EventSample | None] = {}
        for batch in batches:
            numbers = batch.column(0).to_pylist()
            pairs = [divmod(number, len(filters)) for number in numbers]
            for i in {i for i, _ in pairs} - samples.keys():
                samples[i] = EventSample.of(plans[i], events) if events is not None and max_dz else None
            if max_dz:
                sets = [plans[i].cover(filters[j], max_dz, samples[i]) for i, j in pairs]
                counts = [len(dz) for dz in sets]
                words = [[getattr(dz, name).tobytes() for dz in sets] for name in ("hi", "lo", "length")]
            else:
                counts = [plans[i].count_cover(filters[j]) for i, j in pairs]
                words = [[b""] * len(numbers)] * 3
            columns = [pa.array(numbers, pa.int64()), pa.array(counts, pa.int64())]
            columns += [pa.array(column, pa.binary()) for column in words]
            yield pa.RecordBatch.from_arrays(columns, names=["number", "count", "hi", "lo", "length"])

    return cover
