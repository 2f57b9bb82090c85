"""Covers chosen for a whole table: one cut of the tree of cells, the best that so many entries can make.

Every cell of the cut is an entry, whose label is all subscriptions that touch the cell; a subscription's DZ is the
cells of the cut that it touches. Nothing that matches is lost, since the cells that nobody touches are the only ones
left out. What a cell costs is its events times the subscriptions that touch it, so the best cut for a price per
entry follows from the bottom up: one entry here, or what the halves need. The price is bisected until the table fits.

Later events fall elsewhere than those of the sample. So further ones are made up, each of two events that lie close
to each other; for how much they count is chosen on events that are kept back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.errors import BadInput
from flowsieve.index.dzset import DzSet
from flowsieve.index.plan import IndexPlan
from flowsieve.pipeline.evaluation import table_cut_kernel as kernel

COPIES = 4  # made-up events for each of the sample
REACH = 64  # how far apart the two events stand that one is made of
SHARES = (0.0, 0.1, 0.5, 1.0)  # for how much a made-up event may count
FEWEST = 2  # events that a cell is divided for
KEPT_BACK = 0.25  # of the sample, to choose the share by
LEAST_PRICE, STEPS = 1e-4, 40
SEED = 5


@dataclass(frozen=True, eq=False)
class TableCut:
    """The cells of a cut that somebody touches, sorted; none lies inside another."""

    plan: IndexPlan
    hi: NDArray[np.uint64]
    lo: NDArray[np.uint64]
    length: NDArray[np.int64]
    share: float = 0.0  # for how much made-up events counted

    def __len__(self) -> int:
        return len(self.hi)

    @cached_property
    def corners(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """The first and the last place of each cell, a row per cell and a column per axis."""
        plan = self.plan
        first, last = (np.zeros((len(self), len(plan.shape)), np.uint64) for _ in range(2))
        kernel.corners_of(plan.splitter, plan.axis_last, self.hi, self.lo, self.length, first, last)
        return first, last

    def touched(self, wanted: Filter) -> NDArray[np.bool_]:
        """Which cells a filter touches: the definition of its DZ under the cut."""
        first, last = self.corners
        boxes = boxes_of(self.plan, [wanted])
        out = np.zeros(len(self), np.bool_)
        for low, high in zip(boxes.first, boxes.last, strict=True):
            out |= ((first <= high) & (last >= low)).all(axis=1)
        return out

    def cover(self, wanted: Filter) -> DzSet:
        """The filter's DZ. Entries that are siblings are one dz of it."""
        own = self.touched(wanted)
        return DzSet.from_arrays(self.hi[own], self.lo[own], self.length[own])

    def find(self, hi: NDArray[np.uint64], lo: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The cell that each dz of an event lies in, by number; -1 where nobody touches the place."""
        found: NDArray[np.int64] = kernel.find_cells(self.hi, self.lo, self.length, hi, lo)
        return found


def cut_table(plan: IndexPlan, filters: Sequence[Filter], events: EventBatch, capacity: int) -> TableCut:
    """The best cut of at most so many entries, for subscriptions and a sample of events in the order of time."""
    if capacity < 1:
        raise BadInput(f"a table of {capacity} entries; right is a number from 1 on")
    boxes = boxes_of(plan, filters)
    kept = int(len(events) * KEPT_BACK)
    share = SHARES[0]
    if kept:
        learn, judge = np.split(np.arange(len(events)), [len(events) - kept])
        tree = CellTree.of(plan, boxes, events.take(learn))
        column = plan.encode_batch(events.take(judge))
        cuts = {share: tree.cut(capacity, share) for share in SHARES}
        share = min(cuts, key=lambda share: tree.deliveries(cuts[share], column.hi, column.lo))
    tree = CellTree.of(plan, boxes, events)
    cells, nodes = tree.cut(capacity, share), tree.nodes
    return TableCut(plan, nodes.hi[cells], nodes.lo[cells], nodes.length[cells], share)


@dataclass(frozen=True, eq=False)
class CellTree:
    """All cells that a cut may be made of, with the events in each and how many subscriptions touch it."""

    nodes: kernel.Nodes

    @classmethod
    def of(cls, plan: IndexPlan, boxes: kernel.BoxColumns, events: EventBatch) -> CellTree:
        column = plan.encode_batch(events)
        seen = plan.places(events)[np.lexsort((column.lo, column.hi))]
        places = np.concatenate([seen, made_up(seen, COPIES, REACH)])
        return cls(kernel.grow(plan.splitter, plan.bits, plan.axis_last, boxes, places, len(seen), FEWEST))

    def cut(self, capacity: int, share: float) -> NDArray[np.int64]:
        """The nodes of the best cut of at most so many entries, in order."""
        nodes, size = self.nodes, len(self.nodes.high)
        cost, whole = np.empty(size), np.empty(size, np.bool_)
        entries, ends = np.empty(size, np.int64), np.empty(size, np.int64)

        def needs(price: float) -> int:
            return int(kernel.best_cut(nodes, share, price, cost, entries, ends, whole))

        low = LEAST_PRICE
        if needs(low) > capacity:
            high = low + float(nodes.seen[0] + nodes.made[0]) * float(nodes.touching[0])  # one entry for all
            for _ in range(STEPS):
                middle = (low * high) ** 0.5
                if needs(middle) > capacity:
                    low = middle
                else:
                    high = middle
            needs(high)
        out = np.empty(size, np.int64)
        return out[: kernel.list_cut(nodes.touching, ends, whole, out)]

    def deliveries(self, cells: NDArray[np.int64], hi: NDArray[np.uint64], lo: NDArray[np.uint64]) -> int:
        """What a cut delivers of events with such dz, to all subscriptions."""
        nodes = self.nodes
        found = kernel.find_cells(nodes.hi[cells], nodes.lo[cells], nodes.length[cells], hi, lo)
        return int(nodes.touching[cells[found[found >= 0]]].sum())


def made_up(places: NDArray[np.uint64], copies: int, reach: int) -> NDArray[np.uint64]:
    """Events that might come: each takes its places on some axes from one event, on the others from one near it.

    The events stand in the order of their dz, so that neighbours lie close together. The same events give the same.
    """
    rng = np.random.default_rng(SEED)
    number = len(places)
    made = []
    for _ in range(copies if number else 0):
        step = rng.integers(1, reach + 1, number) * rng.choice([-1, 1], number)
        other = places[np.clip(np.arange(number) + step, 0, number - 1)]
        made.append(np.where(rng.random(places.shape) < 0.5, places, other))
    return np.concatenate(made) if made else places[:0]


def boxes_of(plan: IndexPlan, filters: Sequence[Filter]) -> kernel.BoxColumns:
    """The boxes of all filters on the plan's axes."""
    boxes = [plan.boxes(wanted) for wanted in filters]
    owner = np.repeat(np.arange(len(filters)), [len(some) for some in boxes])
    spans = np.array([box for some in boxes for box in some], np.uint64).reshape(len(owner), -1, 4)
    return kernel.BoxColumns(owner, *np.ascontiguousarray(spans.transpose(2, 0, 1)))
