"""Boxes made ready for matching many events."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flowsieve.pipeline import match_kernel as kernel
from flowsieve.pipeline.boxes import BoxTable


@dataclass(frozen=True, eq=False)
class Matcher:
    """The bitsets of a table of boxes: a bit per box for whole matches, a bit per subscription along a dimension."""

    owner: NDArray[np.int64]
    boxes: kernel.Segments
    subscriptions: kernel.Segments  # along a dimension a subscription is the union of its boxes
    counts: NDArray[np.int64]  # how many subscriptions each row has

    @classmethod
    def of(cls, table: BoxTable) -> Matcher:
        boxes = _segments(table, np.arange(len(table)), len(table))
        single = len(table) == table.subscriptions
        along = boxes if single else _segments(table, table.owner, table.subscriptions)
        counts = np.empty(len(along.bits), np.int64)
        kernel.count_rows(along.bits, counts)
        return cls(table.owner, boxes, along, counts)

    def rows(self, points: NDArray[np.float64]) -> NDArray[np.int64]:
        """Per event and dimension the row of bits that its point has, in `boxes` and in `subscriptions`."""
        rows = np.empty((points.shape[1], points.shape[0]), np.int64)
        kernel.find_rows(self.boxes, points, rows)
        return rows


_latest: tuple[bytes, Matcher] | None = None  # an executor's worker serves many tasks with the same boxes


def matcher_of(table: BoxTable) -> Matcher:
    """`Matcher.of`, made once for tasks that follow each other in one process."""
    global _latest
    if _latest is None or _latest[0] != table.digest:
        _latest = table.digest, Matcher.of(table)
    return _latest[1]


def _segments(table: BoxTable, bit: NDArray[np.int64], bits: int) -> kernel.Segments:
    edges = [
        np.unique(np.concatenate([low, np.nextafter(high, np.inf)]))
        for low, high in zip(table.low.T, table.high.T, strict=True)
    ]
    start = np.concatenate([[0], np.cumsum([len(line) + 1 for line in edges])]).astype(np.int64)
    rows = np.zeros((start[-1], (bits + 63) // 64), np.uint64)
    for d, line in enumerate(edges):
        first = np.searchsorted(line, table.low[:, d], side="right")
        last = np.searchsorted(line, table.high[:, d], side="right")
        by_first, by_last = np.argsort(first, kind="stable"), np.argsort(last, kind="stable")
        kernel.fill_rows(first, last, by_first, by_last, bit, rows[start[d] : start[d + 1]])
    return kernel.Segments(np.concatenate(edges), start, rows)
