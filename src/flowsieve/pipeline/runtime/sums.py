"""Sums over events on Spark: each partition gives one row of them, and the rows are added up on an executor.

All numbers are whole, so that the result is the same however the events are split. Words are gathered: the executors
that took part, say.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SumRow = Mapping[str, NDArray[np.int64] | Iterable[str]]


def summed(
    events: DataFrame,
    count: Callable[[Iterator[pa.RecordBatch]], SumRow],
    nothing: Mapping[str, NDArray[np.int64]],
    *words: str,
) -> dict[str, Any]:
    """What `count` makes of each partition's batches, added up: arrays of numbers and lists of words, by their names.

    `nothing` is what the numbers are without any event; the sums have its shapes.
    """

    def part(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield _record(count(batch for batch in batches if batch.num_rows))

    columns = [f"{name} array<bigint>" for name in nothing] + [f"{name} array<string>" for name in words]
    row = ", ".join(columns)
    found = events.mapInArrow(part, row).repartition(1).mapInArrow(_total, row).first()
    if found is None:  # Spark saw that there is no event at all, and asked nobody
        return {**nothing, **dict.fromkeys(words, ())}
    sums = {name: np.array(found[name], np.int64).reshape(none.shape) for name, none in nothing.items()}
    return sums | {name: found[name] for name in words}


def worker() -> str:
    """The executor that this runs on: its host, and the process that is the parent of all its workers."""
    return f"{socket.gethostname()}/{os.getppid()}"


def _total(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    total: dict[str, Any] = {}
    for batch in batches:
        for i in range(batch.num_rows):
            for name in batch.schema.names:
                cell = batch.column(name)[i]
                if pa.types.is_integer(cell.type.value_type):
                    total[name] = total.get(name, 0) + cell.values.to_numpy()
                else:
                    total[name] = total.get(name, set()).union(cell.as_py())
    if total:
        yield _record(total)


def _record(sums: SumRow) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {
            name: pa.array([cell.reshape(-1)], pa.list_(pa.int64()))
            if isinstance(cell, np.ndarray)
            else pa.array([sorted(cell)], pa.list_(pa.string()))
            for name, cell in sums.items()
        }
    )
