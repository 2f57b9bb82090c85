"""How good plans are: what each subscription gets under each of them, counted exactly over all events in one pass.

A false positive is an event that a subscription's DZ covers and that it does not match; the rate is over all that is
covered. Every partition gives one row of counts, and these are added up: nothing that is kept grows with the events.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.index.plan import IndexPlan
from flowsieve.index.sample import EventSample
from flowsieve.pipeline.evaluation.coverage import Coverage, ListedCoverage, Matched, Tally, TouchingCoverage
from flowsieve.pipeline.matching import bitset_kernel
from flowsieve.pipeline.matching.boxes import BoxTable
from flowsieve.pipeline.matching.matcher import Matcher, matcher_of
from flowsieve.pipeline.runtime.packing import Packing
from flowsieve.pipeline.runtime.sums import SumRow, summed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CHUNK = 1 << 10  # events that are counted in one go


@dataclass(frozen=True, eq=False)
class Candidate:
    """A plan, the covers of all subscriptions under it, and how many dz each of these has."""

    plan: IndexPlan
    coverage: Coverage
    prefixes: NDArray[np.int64]
    entries: int | None = None  # of the table that the covers were chosen for, where they share its entries

    @classmethod
    def of(
        cls,
        plan: IndexPlan,
        filters: Sequence[Filter],
        max_dz: int,
        sample: EventSample | None = None,
        count: bool = True,
    ) -> Candidate:
        """Covers of at most `max_dz` dz, 0: exact ones, the dz of which are counted only if asked for."""
        if max_dz:
            covers = [plan.cover(wanted, max_dz, sample) for wanted in filters]
            return cls(
                plan, ListedCoverage.of(plan, covers), np.array([len(cover) for cover in covers], np.int64)
            )
        prefixes = [plan.count_cover(wanted) if count else 0 for wanted in filters]
        return cls(plan, TouchingCoverage.of(plan, filters), np.array(prefixes, np.int64))


@dataclass(frozen=True, eq=False)
class Score:
    """What a plan delivers of some events: counts per subscription."""

    plan: IndexPlan
    events: int
    matched: NDArray[np.int64]
    covered: NDArray[np.int64]
    missed: NDArray[np.int64]
    prefixes: NDArray[np.int64]
    entries: int | None = None

    @property
    def deliveries(self) -> int:
        return int(self.covered.sum())

    @property
    def matches(self) -> int:
        return int(self.matched.sum())

    @property
    def false_negatives(self) -> int:
        return int(self.missed.sum())

    @property
    def false_positives(self) -> int:
        return self.deliveries - self.matches + self.false_negatives

    @property
    def fpr(self) -> float:
        return self.false_positives / self.deliveries if self.deliveries else 0.0

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.plan.kind,
            "bits": self.plan.bits,
            "fpr": self.fpr,
            "false_positives": self.false_positives,
            "false_negatives": self.false_negatives,
            "deliveries": self.deliveries,
            "matches": self.matches,
            "prefixes": int(self.prefixes.sum()) if self.entries is None else self.entries,
            "prefixes_max": int(self.prefixes.max(initial=0)),
        }

    def rows(self, ids: Sequence[str]) -> Iterator[dict[str, Any]]:
        """The same for each subscription."""
        for i, id in enumerate(ids):
            covered, missed, matched = int(self.covered[i]), int(self.missed[i]), int(self.matched[i])
            wrong = covered - matched + missed
            yield {
                "id": id,
                "fpr": wrong / covered if covered else 0.0,
                "false_positives": wrong,
                "false_negatives": missed,
                "deliveries": covered,
                "matches": matched,
                "prefixes": int(self.prefixes[i]),
            }


@dataclass(frozen=True, eq=False)
class Bench:
    """What is prepared before the first event is counted: bitsets of subscriptions and of their covers."""

    boxes: BoxTable
    matcher: Matcher
    coverages: tuple[Coverage, ...]

    @classmethod
    def of(cls, candidates: Sequence[Candidate], boxes: BoxTable) -> Bench:
        single = len(boxes) == boxes.subscriptions
        coverages = [candidate.coverage for candidate in candidates]
        arranged = [coverage.arranged(boxes.order) if single else coverage for coverage in coverages]
        return cls(boxes, matcher_of(boxes), tuple(arranged))

    def matched(self, events: EventBatch, lists: bool) -> Matched:
        """Who matches some events: as bits, and also as lists if asked for."""
        rows = self.matcher.rows(self.boxes.points(events))
        words = bitset_kernel.SparseWords.room(len(rows), self.matcher.words)
        bitset_kernel.shared_words(self.matcher.boxes.bits, self.matcher.summary, rows, words)
        start, who = np.zeros(len(rows) + 1, np.int64), np.empty(64 * len(rows) if lists else 0, np.int64)
        if lists:
            who = bitset_kernel.list_owners(words, len(rows), self.matcher.owner, start, who)
        return Matched(start, who, words)


@dataclass(frozen=True, eq=False)
class MatchCounter:
    """The sums over some events, for several candidates."""

    bench: Bench
    events: NDArray[np.int64]
    matched: NDArray[np.int64]
    planes: bitset_kernel.Planes  # what is still to be added to `matched`
    tallies: tuple[Tally, ...]

    @classmethod
    def of(cls, bench: Bench) -> MatchCounter:
        number = bench.boxes.subscriptions
        tallies = tuple(Tally.of(number) for _ in bench.coverages)
        planes = bitset_kernel.Planes.of(number)
        return cls(bench, np.zeros(1, np.int64), np.zeros(number, np.int64), planes, tallies)

    def add(self, events: EventBatch) -> None:
        lists = any(coverage.order is None for coverage in self.bench.coverages)
        for start in range(0, len(events), CHUNK):
            some = events.take(np.arange(start, min(start + CHUNK, len(events))))
            matched = self.bench.matched(some, lists)
            self.events[0] += len(some)
            if lists:
                self.matched[:] += np.bincount(matched.who[: matched.start[-1]], minlength=len(self.matched))
            else:
                bitset_kernel.count_words(matched.words, len(some), self.planes)
            for coverage, tally in zip(self.bench.coverages, self.tallies, strict=True):
                coverage.add(some, matched, tally)

    @property
    def sums(self) -> dict[str, NDArray[np.int64]]:
        """What is counted; of what each candidate covers and misses, a row per candidate."""
        covered = np.stack([tally.covered for tally in self.tallies])
        missed = np.stack([tally.missed for tally in self.tallies])
        return {"events": self.events, "matched": self.matched, "covered": covered, "missed": missed}

    def settled(self) -> MatchCounter:
        """The same sums, with nothing left to add."""
        owner = self.bench.matcher.owner
        bitset_kernel.drain(self.planes, owner, self.matched)
        for tally in self.tallies:
            bitset_kernel.drain(tally.planes, owner, tally.covered)
        return self


def evaluate_here(candidates: Sequence[Candidate], boxes: BoxTable, events: EventBatch) -> list[Score]:
    """Count in this process, over a bounded number of events."""
    count = MatchCounter.of(Bench.of(candidates, boxes))
    count.add(events)
    return _scores(candidates, **count.settled().sums)


def evaluate(candidates: Sequence[Candidate], boxes: BoxTable, events: DataFrame) -> list[Score]:
    """Count on Spark, all candidates in one pass over the events."""
    packing = Packing.of(boxes.schema, dict(events.dtypes))
    digest = b"".join([boxes.digest, *(candidate.coverage.digest for candidate in candidates)])

    def count_up(batches: Iterator[pa.RecordBatch]) -> SumRow:
        count = MatchCounter.of(bench_of(digest, candidates, boxes))
        for batch in batches:
            count.add(packing.event_batch(batch))
        return count.settled().sums

    each = np.zeros((len(candidates), boxes.subscriptions), np.int64)
    nothing = {"events": np.zeros(1, np.int64), "matched": each[0], "covered": each, "missed": each}
    return _scores(candidates, **summed(packing.packed(events), count_up, nothing))


def _scores(
    candidates: Sequence[Candidate],
    events: NDArray[np.int64],
    matched: NDArray[np.int64],
    covered: NDArray[np.int64],
    missed: NDArray[np.int64],
) -> list[Score]:
    counts = zip(candidates, covered, missed, strict=True)
    return [
        Score(each.plan, int(events[0]), matched, got, lost, each.prefixes, each.entries)
        for each, got, lost in counts
    ]


_kept: tuple[bytes, Bench] | None = None


def bench_of(digest: bytes, candidates: Sequence[Candidate], boxes: BoxTable) -> Bench:
    """`Bench.of`, made once for tasks that follow each other in one process and have the same digest."""
    global _kept
    if _kept is None or _kept[0] != digest:
        _kept = digest, Bench.of(candidates, boxes)
    return _kept[1]
