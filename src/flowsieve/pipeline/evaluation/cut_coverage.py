"""What the cut of a table delivers: an event goes to all subscriptions that touch the cell it lies in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.pipeline.evaluation.box_bitsets import BoxBitsets
from flowsieve.pipeline.evaluation.coverage import Coverage, Matched, Tally, add_touched, digest_of
from flowsieve.pipeline.evaluation.evaluation import Candidate
from flowsieve.pipeline.evaluation.table_cut import TableCut, boxes_of
from flowsieve.pipeline.matching.locality import near_order


@dataclass(frozen=True, eq=False)
class CutCoverage(Coverage):
    """A cut, and the boxes of all subscriptions on the plan's axes: who has an entry is never listed."""

    cut: TableCut
    owner: NDArray[np.int64]
    first: NDArray[np.uint64]  # a row per box, a column per axis
    last: NDArray[np.uint64]

    @classmethod
    def of(cls, cut: TableCut, filters: Sequence[Filter]) -> CutCoverage:
        boxes = boxes_of(cut.plan, filters)
        return cls(cut, boxes.owner, boxes.first, boxes.last)

    @cached_property
    def digest(self) -> bytes:
        cut = self.cut
        return digest_of(cut.plan, cut.hi, cut.lo, cut.length, self.owner, self.first, self.last)

    @cached_property
    def _sides(self) -> BoxBitsets:
        order = near_order(self.first.astype(np.float64), self.last.astype(np.float64))
        return BoxBitsets.of(self.first[order], self.last[order], self.owner[order], cut=True)

    @cached_property
    def _rows(self) -> NDArray[np.int64]:
        """The rows of bits that make up the label of each entry."""
        return self._sides.rows(*self.cut.corners)

    def add(self, events: EventBatch, matched: Matched, tally: Tally) -> None:
        column = self.cut.plan.encode_batch(events)
        cell = self.cut.find(column.hi, column.lo)
        known = cell >= 0
        begin = np.searchsorted(column.rows[known], np.arange(len(events) + 1))
        add_touched(self._sides, self._rows[cell[known]], begin, matched.start, matched.who, tally)

    def entries(self, subscriptions: int) -> NDArray[np.int64]:
        """How many entries have each subscription in their labels."""
        tally, cells = Tally.of(subscriptions), len(self.cut)
        nothing = np.zeros(cells + 1, np.int64), np.zeros(0, np.int64)
        add_touched(self._sides, self._rows, np.arange(cells + 1), *nothing, tally)
        return tally.covered


def candidate_of(cut: TableCut, filters: Sequence[Filter]) -> Candidate:
    """A plan with the covers that a cut gives; of its table each entry counts once, however many have it."""
    coverage = CutCoverage.of(cut, filters)
    prefixes = replace(coverage).entries(len(filters))  # a copy, so that no bits are sent along to executors
    return Candidate(cut.plan, coverage, prefixes, len(cut))
