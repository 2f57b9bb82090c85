"""The sums over a micro-batch of landed files, in one job: every partition gives one row of them.

What they are summed by (subscriptions as boxes, the running plan's covers) goes to executors as bytes, and is taken
apart there once for all micro-batches that have the same.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from flowsieve.content.schema import Schema
from flowsieve.pipeline.evaluation.evaluation import Bench, Candidate, MatchCounter
from flowsieve.pipeline.matching import match_kernel as kernel
from flowsieve.pipeline.matching.boxes import BoxTable
from flowsieve.pipeline.matching.statistics import empty_sums, places
from flowsieve.pipeline.reading.cell_values import SPARK_TYPES
from flowsieve.pipeline.runtime.sums import worker
from flowsieve.pipeline.stream.landed_files import (
    COUNTED,
    COUNTS,
    DELIVERIES,
    FileAccount,
    LandedRows,
    TimeLimits,
    read_landed,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BINS = 64  # parts of each dimension's line in which events are counted
ARRAYS = ("histogram", "along", "moments", "matched", "covered", "missed")


@dataclass(frozen=True, eq=False)
class Yardstick:
    """What events are counted by: a schema, the subscriptions as boxes, and their covers under the running plan."""

    schema: Schema
    boxes: BoxTable
    candidate: Candidate | None  # None where nobody subscribes

    @property
    def bench(self) -> Bench | None:
        return None if self.candidate is None else Bench.of([self.candidate], self.boxes)


@dataclass(frozen=True, eq=False)
class LandedSums:
    """What landed, added up. Per subscription there are `matched`, `covered` and `missed`, per dimension the others."""

    events: int
    weight: float  # of all events; each stands for so many that were published
    judged: int  # events of which matches were counted
    wanted: float  # deliveries, by weight
    unwanted: float
    counts: dict[str, int]
    histogram: NDArray[np.float64]  # weights of events in each part of each dimension
    along: NDArray[np.int64]  # subscriptions that events match along each dimension
    moments: NDArray[np.int64]
    matched: NDArray[np.int64]
    covered: NDArray[np.int64]
    missed: NDArray[np.int64]

    @classmethod
    def nothing(cls, dimensions: int, subscriptions: int) -> LandedSums:
        whole = [np.zeros(subscriptions, np.int64) for _ in range(3)]
        shapes = np.zeros(dimensions, np.int64), np.zeros((dimensions, 3), np.int64)
        counts = dict.fromkeys(COUNTED, 0)
        return cls(0, 0.0, 0, 0.0, 0.0, counts, np.zeros((dimensions, BINS)), *shapes, *whole)

    @classmethod
    def total(cls, parts: Sequence[LandedSums], nothing: LandedSums) -> LandedSums:
        every = (nothing, *parts)
        numbers = {
            name: sum(getattr(each, name) for each in every)
            for name in ("events", "weight", "judged", "wanted", "unwanted")
        }
        arrays = {name: np.sum([getattr(each, name) for each in every], axis=0) for name in ARRAYS}
        counts = {name: sum(each.counts[name] for each in every) for name in COUNTED}
        return cls(counts=counts, **numbers, **arrays)


@dataclass(frozen=True, eq=False)
class MicroBatch:
    """What a micro-batch came to, what became of each of its files, and the executors that took part."""

    sums: LandedSums
    files: tuple[FileAccount, ...]
    workers: tuple[str, ...]


def summed_up(files: DataFrame, yardstick: bytes, limits: TimeLimits, nothing: LandedSums) -> MicroBatch:
    """The sums over files (`path`, `content`), by a pickled yardstick."""
    rows = (
        files.select("path", "content")
        .mapInArrow(partial(_sum_part, yardstick, limits), "found binary")
        .collect()
    )
    parts = sorted((pickle.loads(row["found"]) for row in rows), key=lambda part: part[1][0].path)
    accounts = sorted((file for _, files, _ in parts for file in files), key=lambda file: file.path)
    workers = tuple(sorted({name for *_, name in parts}))
    return MicroBatch(LandedSums.total([sums for sums, *_ in parts], nothing), tuple(accounts), workers)


def window_events(files: DataFrame, schema: Schema, limits: TimeLimits) -> DataFrame:
    """The events in files (`path`, `content`) that count, as a batch command would have read them."""
    columns = [f"`{each.name}` {SPARK_TYPES[each.kind]}" for each in schema]
    own = [f"{name} {type}" for name, (_, _, type) in OWN.items() if name not in schema]
    read = partial(_read_part, schema, limits)
    return files.select("path", "content").mapInArrow(read, ", ".join(own + columns))


OWN = {  # what events have beside their attributes: the landed column, and its types
    "id": ("id", pa.string(), "string"),
    "host": ("host", pa.string(), "string"),
    "time": ("at", pa.timestamp("us", "UTC"), "timestamp"),
}
ARROW_TYPES = {
    "int": pa.int64(),
    "float": pa.float64(),
    "enum": pa.string(),
    "bool": pa.bool_(),
    "string": pa.string(),
}


def _files(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[str, Any]]:
    for batch in batches:
        for path, content in zip(batch.column("path").to_pylist(), batch.column("content"), strict=True):
            yield path, content.as_buffer()


def _sum_part(
    yardstick: bytes, limits: TimeLimits, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    schema, boxes, bench = _taken_apart(yardstick)
    sums, accounts = [], []
    for path, content in _files(batches):
        landed = read_landed(path, content, schema, limits)
        accounts.append(landed.account)
        if landed.account.good:
            sums.append(_sums(landed, boxes, bench))
    if accounts:
        total = LandedSums.total(sums, LandedSums.nothing(len(schema), boxes.subscriptions))
        found = pickle.dumps((total, accounts, worker()))
        yield pa.RecordBatch.from_pydict({"found": pa.array([found], pa.binary())})


@lru_cache(maxsize=1)
def _taken_apart(yardstick: bytes) -> tuple[Schema, BoxTable, Bench | None]:
    found: Yardstick = pickle.loads(yardstick)
    return found.schema, found.boxes, found.bench


def _sums(landed: LandedRows, boxes: BoxTable, bench: Bench | None) -> LandedSums:
    sums = LandedSums.nothing(len(boxes.schema), boxes.subscriptions)
    table, kind, given = landed.table, landed.account.kind, dict(vars(sums))
    if kind == COUNTS:
        given["counts"] = {name: int(pc.sum(table.column(name)).as_py() or 0) for name in COUNTED}
        return LandedSums(**given)
    weight = pc.cast(table.column("weight"), pa.float64()).to_numpy()
    if kind == DELIVERIES:
        wanted = table.column("wanted").to_numpy()
        given |= {"wanted": float(weight[wanted].sum()), "unwanted": float(weight[~wanted].sum())}
        return LandedSums(**given)
    events = landed.events
    assert events is not None
    where = places(boxes.schema, events)
    histogram = np.stack(
        [np.bincount(_bins(line), weights=weight, minlength=BINS)[:BINS] for line in where]
        if len(boxes.schema)
        else [np.zeros(BINS)]
    )
    statistics = empty_sums(boxes)
    kernel.add_moments(where, statistics)
    given |= {
        "events": len(events),
        "weight": float(weight.sum()),
        "histogram": histogram,
        "moments": statistics.moments,
    }
    if bench is not None:
        rows = bench.matcher.rows(boxes.points(events))
        kernel.add_along(bench.matcher.subscriptions.bits, bench.matcher.counts, rows, False, statistics)
        count = MatchCounter.of(bench)
        count.add(events)
        counted = count.settled().sums
        given |= {
            "judged": len(events),
            "along": np.diagonal(statistics.along).copy(),
            "matched": counted["matched"],
            "covered": counted["covered"][0],
            "missed": counted["missed"][0],
        }
    return LandedSums(**given)


def _bins(line: NDArray[np.int64]) -> NDArray[np.int64]:
    """In which of the equal parts of a dimension events are."""
    return np.minimum(line * BINS // kernel.SCALE, BINS - 1)


def _read_part(
    schema: Schema, limits: TimeLimits, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for path, content in _files(batches):
        landed = read_landed(path, content, schema, limits)
        if landed.account.good:
            taken = [(name, *own[:2]) for name, own in OWN.items() if name not in schema]
            taken += [(each.name, each.name, ARROW_TYPES[each.kind]) for each in schema]
            cells = [pc.cast(landed.table.column(column), type) for _, column, type in taken]
            yield from pa.table(cells, names=[name for name, *_ in taken]).to_batches()
