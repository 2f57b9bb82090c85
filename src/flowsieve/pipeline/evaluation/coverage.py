"""What a plan delivers: of each subscription a cover, in a form that tells quickly which covers hold an event.

Covers without a budget need not be listed: a subscription gets an event if one of its boxes touches the event's cell.
Those under a budget are listed, and their dz are shared by all subscriptions that have them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.index.dzset import DzSet
from flowsieve.index.plan import IndexPlan
from flowsieve.pipeline.evaluation import coverage_kernel as kernel
from flowsieve.pipeline.evaluation.box_bitsets import BoxBitsets
from flowsieve.pipeline.evaluation.table_cut import boxes_of
from flowsieve.pipeline.matching import bitset_kernel
from flowsieve.pipeline.matching.locality import near_order


class Matched(NamedTuple):
    """The subscriptions that each of some events matches: those of event e are `who[start[e]:start[e + 1]]`.

    Or as sets of bits, where all coverages take them as such; the lists are empty then.
    """

    start: NDArray[np.int64]
    who: NDArray[np.int64]
    words: bitset_kernel.SparseWords


class Tally(NamedTuple):
    """Per subscription: events that it gets, and events that it matches and does not get."""

    covered: NDArray[np.int64]
    missed: NDArray[np.int64]
    stamp: NDArray[np.int64]  # the last event that it got
    serial: NDArray[np.int64]  # of the last event
    planes: bitset_kernel.Planes  # what is still to be added to `covered`

    @classmethod
    def of(cls, subscriptions: int) -> Tally:
        covered, missed, stamp = (np.zeros(subscriptions, np.int64) for _ in range(3))
        return cls(covered, missed, stamp, np.zeros(1, np.int64), bitset_kernel.Planes.of(subscriptions))


class Coverage(Protocol):
    """The covers of all subscriptions under one plan, ready for counting."""

    @property
    def digest(self) -> bytes: ...

    @property
    def order(self) -> NDArray[np.int64] | None:
        """The subscriptions of the bits in which it takes matches; None: it takes them as lists."""
        return None

    def arranged(self, order: NDArray[np.int64]) -> Coverage:
        """The same, for matches as bits in such an order if it can take them."""
        return self

    def add(self, events: EventBatch, matched: Matched, tally: Tally) -> None:
        """Add some events to a tally, which has all of them when its planes are drained."""


@dataclass(frozen=True, eq=False)
class TouchingCoverage:
    """Covers without a budget: the boxes of all subscriptions on the plan's axes."""

    plan: IndexPlan
    owner: NDArray[np.int64]
    first: NDArray[np.uint64]  # a row per box, a column per axis
    last: NDArray[np.uint64]
    order: NDArray[np.int64] | None = None

    @classmethod
    def of(cls, plan: IndexPlan, filters: Sequence[Filter]) -> TouchingCoverage:
        boxes = boxes_of(plan, filters)
        return cls(plan, boxes.owner, boxes.first, boxes.last)

    @cached_property
    def digest(self) -> bytes:
        return digest_of(self.plan, self.owner, self.first, self.last)

    def arranged(self, order: NDArray[np.int64]) -> TouchingCoverage:
        """One box a subscription, and one dz an event: then matches are compared 64 at a time."""
        single = np.array_equal(self.owner, np.arange(len(order)))
        return replace(self, order=order) if single and self.plan.one_dz else self

    @cached_property
    def _sides(self) -> BoxBitsets:
        number = self.order
        if number is None:
            number = near_order(self.first.astype(np.float64), self.last.astype(np.float64))
        cut = not self.plan.single_places
        return BoxBitsets.of(self.first[number], self.last[number], self.owner[number], cut)

    def add(self, events: EventBatch, matched: Matched, tally: Tally) -> None:
        begin = np.arange(len(events) + 1)  # where the entries of each event begin
        if not self.plan.one_dz:
            begin = np.searchsorted(self.plan.encode_batch(events).rows, begin).astype(np.int64)
        sides = self._sides
        rows = sides.rows(*self.plan.cells(self.plan.places(events)))
        if self.order is not None:
            got = bitset_kernel.SparseWords.room(len(rows), sides.bits.shape[1])
            bitset_kernel.shared_words(sides.bits, sides.summary, rows, got)
            bitset_kernel.count_words(got, len(rows), tally.planes)
            bitset_kernel.count_lacking(matched.words, got, len(rows), self.order, tally.missed)
            return
        add_touched(sides, rows, begin, matched.start, matched.who, tally)


def add_touched(
    sides: BoxBitsets,
    rows: NDArray[np.int64],
    begin: NDArray[np.int64],
    start: NDArray[np.int64],
    who: NDArray[np.int64],
    tally: Tally,
) -> None:
    """Add events to a tally, each with its rows of bits from `begin` on; `start` and `who` list its matches."""
    counted = (start, who, tally.stamp, tally.serial[0], tally.covered, tally.missed)
    tally.serial[0] = kernel.add_touched(sides.bits, sides.summary, sides.owner, rows, begin, *counted)


def digest_of(plan: IndexPlan, *arrays: NDArray[Any]) -> bytes:
    """A name for a plan and some arrays."""
    text = repr(plan.to_json()).encode()
    return blake2b(text + b"".join(array.tobytes() for array in arrays)).digest()


@dataclass(frozen=True, eq=False)
class ListedCoverage(Coverage):
    """Covers under a budget: the distinct dz of all, sorted, and who has each."""

    plan: IndexPlan
    hi: NDArray[np.uint64]
    lo: NDArray[np.uint64]
    length: NDArray[np.int64]
    members: NDArray[np.int64]  # dz i belongs to member[members[i]:members[i + 1]]
    member: NDArray[np.int64]

    @classmethod
    def of(cls, plan: IndexPlan, covers: Sequence[DzSet]) -> ListedCoverage:
        owner = np.repeat(np.arange(len(covers)), [len(cover) for cover in covers])
        hi, lo = (np.concatenate([getattr(c, name) for c in covers]) for name in ("hi", "lo"))
        length = np.concatenate([cover.length for cover in covers])
        order = np.lexsort((owner, length, lo, hi))
        hi, lo, length, owner = hi[order], lo[order], length[order], owner[order]
        new = np.ones(len(hi), np.bool_)
        new[1:] = (hi[1:] != hi[:-1]) | (lo[1:] != lo[:-1]) | (length[1:] != length[:-1])
        members = np.append(np.flatnonzero(new), len(hi)).astype(np.int64)
        return cls(plan, hi[new], lo[new], length[new], members, owner)

    @cached_property
    def digest(self) -> bytes:
        return digest_of(self.plan, self.hi, self.lo, self.length, self.members, self.member)

    @cached_property
    def _parents(self) -> NDArray[np.int64]:
        found: NDArray[np.int64] = kernel.parents(self.hi, self.lo, self.length)
        return found

    def add(self, events: EventBatch, matched: Matched, tally: Tally) -> None:
        column = self.plan.encode_batch(events)
        begin = np.searchsorted(column.rows, np.arange(len(events) + 1))
        dz = (self.hi, self.lo, self.length, self._parents, self.members, self.member)
        counted = (matched.start, matched.who, tally.stamp, tally.serial[0], tally.covered, tally.missed)
        tally.serial[0] = kernel.add_listed(*dz, column.hi, column.lo, begin, *counted)
