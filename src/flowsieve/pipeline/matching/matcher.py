"""Boxes prepared for matching many events.

Their bits are not in the order of the subscriptions, but in one that lets most words of most sets be empty.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flowsieve.pipeline.matching import bitset_kernel
from flowsieve.pipeline.matching import match_kernel as kernel
from flowsieve.pipeline.matching.boxes import BoxTable


@dataclass(frozen=True, eq=False)
class Matcher:
    """The bitsets of a table of boxes: a bit per box for whole matches, a bit per subscription along a dimension."""

    owner: NDArray[np.int64]  # the subscription of each bit of `boxes`, those of one following each other
    boxes: kernel.Segments
    summary: NDArray[np.uint64]  # which words of each row of `boxes` are not empty
    subscriptions: kernel.Segments  # along a dimension a subscription is the union of its boxes
    counts: NDArray[np.int64]  # how many subscriptions each row has

    @classmethod
    def of(cls, table: BoxTable) -> Matcher:
        rank = np.empty(table.subscriptions, np.int64)
        rank[table.order] = np.arange(table.subscriptions)
        order = np.argsort(rank[table.owner], kind="stable")
        bit = np.empty(len(table), np.int64)
        bit[order] = np.arange(len(table))
        boxes = _segments(table, bit, len(table))
        single = len(table) == table.subscriptions
        along = boxes if single else _segments(table, table.owner, table.subscriptions)
        counts = np.empty(len(along.bits), np.int64)
        kernel.count_rows(along.bits, counts)
        return cls(table.owner[order], boxes, bitset_kernel.summarise(boxes.bits), along, counts)

    @property
    def words(self) -> int:
        """Of a set of boxes."""
        return int(self.boxes.bits.shape[1])

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


def bit_rows(first: NDArray[np.int64], last: NDArray[np.int64], places: int) -> NDArray[np.uint64]:
    """A row per place: the bits of the boxes that reach over it."""
    rows = np.zeros((places, (len(first) + 63) // 64), np.uint64)
    _fill_rows(first, last, np.arange(len(first)), rows)
    return rows


def _fill_rows(
    first: NDArray[np.int64], last: NDArray[np.int64], bit: NDArray[np.int64], rows: NDArray[np.uint64]
) -> None:
    by_first, by_last = np.argsort(first, kind="stable"), np.argsort(last, kind="stable")
    kernel.fill_rows(first, last, by_first, by_last, bit, rows)


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
        _fill_rows(first, last, bit, rows[start[d] : start[d + 1]])
    base = np.array([line[0] if len(line) else 0.0 for line in edges])
    scale = np.array([_scale(line) for line in edges])
    hints = np.zeros((len(edges), kernel.BUCKETS + 1), np.int32)
    for d, line in enumerate(edges):
        kernel.fill_hints(line, base[d], scale[d], hints[d])
    return kernel.Segments(np.concatenate(edges), start, rows, base, scale, hints)


def _scale(edges: NDArray[np.float64]) -> float:
    """Buckets to a unit, so that they reach over all edges; 0, which puts all in one, where that is no number."""
    span = float(edges[-1]) - float(edges[0]) if len(edges) else 0.0
    scale = kernel.BUCKETS / span if span > 1e-300 else 0.0
    return scale if np.isfinite(scale) else 0.0
