"""Covers of many filters, made on Spark: each is a search of its own, and there are thousands.

Those of a whole table are a single search, which runs on the executor that has the sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.index.dzset import DzSet
from flowsieve.index.plan import IndexPlan
from flowsieve.index.sample import EventSample
from flowsieve.pipeline.evaluation.coverage import ListedCoverage, TouchingCoverage
from flowsieve.pipeline.evaluation.cut_coverage import candidate_of
from flowsieve.pipeline.evaluation.evaluation import Candidate
from flowsieve.pipeline.evaluation.table_cut import TableCut, cut_table
from flowsieve.pipeline.runtime.spark_sample import SparkSample, copied_events

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

COLUMNS = "number bigint, count bigint, hi binary, lo binary, length binary"
ARRAYS = (("hi", np.uint64), ("lo", np.uint64), ("length", np.int64))  # of a set of dz
TASKS = 8
LEAST = 500  # covers that are worth a task of their own


def candidates_on(
    spark: SparkSession,
    plans: Sequence[IndexPlan],
    filters: Sequence[Filter],
    max_dz: int,
    sample: SparkSample | None = None,
) -> list[Candidate]:
    """Candidates for an evaluation: covers of at most `max_dz` dz (0: exact), weighed by a sample if there is one."""
    rows = _covered(spark, plans, filters, max_dz, sample)
    out = []
    for i, plan in enumerate(plans):
        own = rows[i * len(filters) : (i + 1) * len(filters)]
        prefixes = np.array([row["count"] for row in own], np.int64)
        if max_dz:
            covers = [_dz_set(row) for row in own]
            out.append(Candidate(plan, ListedCoverage.of(plan, covers), prefixes))
        else:
            out.append(Candidate(plan, TouchingCoverage.of(plan, filters), prefixes))
    return out


def covers_on(spark: SparkSession, plan: IndexPlan, filters: Sequence[Filter], max_dz: int) -> list[DzSet]:
    """The covers of filters, each of at most `max_dz` dz."""
    return [_dz_set(row) for row in _covered(spark, [plan], filters, max_dz, None)]


def _covered(
    spark: SparkSession,
    plans: Sequence[IndexPlan],
    filters: Sequence[Filter],
    max_dz: int,
    sample: SparkSample | None,
) -> list[Row]:
    """A row for each plan and filter, in their order."""
    number = len(plans) * len(filters)
    tasks = max(1, min(TASKS, number // LEAST))
    if sample is None or not max_dz:
        frame, share = spark.range(0, number, 1, tasks), _numbered
    else:
        frame, share = sample.copies(tasks), partial(_every, tasks, number)
    cover = partial(_covers, list(plans), list(filters), max_dz)
    rows = frame.mapInArrow(partial(_each, share, cover), COLUMNS).collect()
    rows.sort(key=lambda row: row["number"])
    return rows


def _dz_set(row: Row) -> DzSet:
    return DzSet.from_arrays(*(np.frombuffer(row[name], type) for name, type in ARRAYS))


def table_candidates(
    plans: Sequence[IndexPlan], filters: Sequence[Filter], capacity: int, samples: Sequence[SparkSample]
) -> list[Candidate]:
    """Candidates whose covers are those of a whole table of at most so many entries, cut by a sample for each plan."""
    pairs = zip(plans, samples, strict=True)
    cuts = [sample.ask(partial(_cut, plan, tuple(filters), capacity)) for plan, sample in pairs]
    return [candidate_of(cut, filters) for cut in cuts]


def _cut(plan: IndexPlan, filters: Sequence[Filter], capacity: int, events: EventBatch) -> TableCut:
    return cut_table(plan, filters, events, capacity)


Share = Iterator[tuple[Sequence[int], EventBatch | None]]  # numbers of covers to make, and what weighs them


def _numbered(batch: pa.RecordBatch) -> Share:
    yield batch.column("id").to_pylist(), None


def _every(tasks: int, number: int, batch: pa.RecordBatch) -> Share:
    for part, copy in zip(batch.column("part").to_pylist(), batch.column("found").to_pylist(), strict=True):
        yield range(part, number, tasks), copied_events(copy)


def _each(
    share: Callable[[pa.RecordBatch], Share],
    cover: Callable[[Sequence[int], EventBatch | None], pa.RecordBatch],
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for numbers, events in share(batch):
            yield cover(numbers, events)


def _covers(
    plans: list[IndexPlan],
    filters: list[Filter],
    max_dz: int,
    numbers: Sequence[int],
    events: EventBatch | None,
) -> pa.RecordBatch:
    """The covers with such numbers, which count through all filters for the first plan, then for the next."""
    pairs = [divmod(number, len(filters)) for number in numbers]
    if max_dz:
        samples = {
            i: None if events is None else EventSample.of(plans[i], events) for i in {i for i, _ in pairs}
        }
        sets = [plans[i].cover(filters[j], max_dz, samples[i]) for i, j in pairs]
        counts = [len(dz) for dz in sets]
        words = [[getattr(dz, name).tobytes() for dz in sets] for name, _ in ARRAYS]
    else:
        counts = [plans[i].count_cover(filters[j]) for i, j in pairs]
        words = [[b""] * len(pairs)] * 3
    columns = [pa.array(numbers, pa.int64()), pa.array(counts, pa.int64())]
    columns += [pa.array(column, pa.binary()) for column in words]
    return pa.RecordBatch.from_arrays(columns, names=["number", "count", "hi", "lo", "length"])
