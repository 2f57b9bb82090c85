"""How good plans are: what each subscription gets under each of them, counted exactly over all events in one pass.

A false positive is an event that a subscription's DZ covers and that it does not match; the rate is over all that is
covered. Every partition gives one row of counts, and these are added up: nothing that is kept grows with the events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.index.plan import IndexPlan
from flowsieve.index.sample import EventSample
from flowsieve.pipeline import coverage_kernel as kernel
from flowsieve.pipeline.batches import event_batch
from flowsieve.pipeline.boxes import BoxTable
from flowsieve.pipeline.coverage import Coverage, Listed, Matched, Tally, Touching
from flowsieve.pipeline.matcher import Matcher, matcher_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CHUNK = 1 << 10  # events that are counted in one go
PARTIAL = "events bigint, matched array<bigint>, covered array<bigint>, missed array<bigint>"


@dataclass(frozen=True, eq=False)
class Candidate:
    """A plan, the covers of all subscriptions under it, and how many dz each of these has."""

    plan: IndexPlan
    coverage: Coverage
    prefixes: NDArray[np.int64]

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
            return cls(plan, Listed.of(plan, covers), np.array([len(cover) for cover in covers], np.int64))
        prefixes = [plan.count_cover(wanted) if count else 0 for wanted in filters]
        return cls(plan, Touching.of(plan, filters), np.array(prefixes, np.int64))


@dataclass(frozen=True, eq=False)
class Score:
    """What a plan does to some events: counts per subscription."""

    plan: IndexPlan
    events: int
    matched: NDArray[np.int64]
    covered: NDArray[np.int64]
    missed: NDArray[np.int64]
    prefixes: NDArray[np.int64]

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
            "prefixes": int(self.prefixes.sum()),
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
class Count:
    """The sums over some events, for several candidates."""

    candidates: Sequence[Candidate]
    boxes: BoxTable
    matched: NDArray[np.int64]
    tallies: list[Tally]
    events: NDArray[np.int64]

    @classmethod
    def of(cls, candidates: Sequence[Candidate], boxes: BoxTable) -> Count:
        number = boxes.subscriptions
        tallies = [Tally.of(number) for _ in candidates]
        return cls(candidates, boxes, np.zeros(number, np.int64), tallies, np.zeros(1, np.int64))

    def add(self, events: EventBatch, matcher: Matcher) -> None:
        for start in range(0, len(events), CHUNK):
            some = events.take(np.arange(start, min(start + CHUNK, len(events))))
            rows = matcher.rows(self.boxes.points(some))
            matched = self._matched(matcher, rows)
            self.events[0] += len(some)
            for candidate, tally in zip(self.candidates, self.tallies, strict=True):
                candidate.coverage.add(some, matched, tally)

    def _matched(self, matcher: Matcher, rows: NDArray[np.int64]) -> Matched:
        """Who matches the events, in the forms that the candidates take; and count it."""
        by_bits = [candidate.coverage.by_bits for candidate in self.candidates]
        single = len(self.boxes) == self.boxes.subscriptions
        start, who = np.zeros(len(rows) + 1, np.int64), np.empty(64 * len(rows), np.int64)
        bits = np.empty((len(rows) if single and any(by_bits) else 0, matcher.boxes.bits.shape[1]), np.uint64)
        if len(bits):
            kernel.join_rows(matcher.boxes.bits, rows, bits)
        if len(bits) and all(by_bits):
            kernel.count_columns(bits, self.matched)
        else:
            who = kernel.list_matches(matcher.boxes.bits, rows, matcher.owner, start, who)
            self.matched[:] += np.bincount(who[: start[-1]], minlength=len(self.matched))
        return Matched(start, who, bits)

    def scores(self) -> list[Score]:
        return [
            Score(
                candidate.plan,
                int(self.events[0]),
                self.matched,
                tally.covered,
                tally.missed,
                candidate.prefixes,
            )
            for candidate, tally in zip(self.candidates, self.tallies, strict=True)
        ]


def evaluate_here(candidates: Sequence[Candidate], boxes: BoxTable, events: EventBatch) -> list[Score]:
    """Count in this process, over a bounded number of events."""
    count = Count.of(candidates, boxes)
    count.add(events, Matcher.of(boxes))
    return count.scores()


def evaluate(candidates: Sequence[Candidate], boxes: BoxTable, events: DataFrame) -> list[Score]:
    """Count on Spark, all candidates in one pass over the events."""
    partials = events.select(*boxes.schema.names).mapInArrow(_partial(candidates, boxes), PARTIAL)
    row = partials.repartition(1).mapInArrow(_total, PARTIAL).first()
    count = Count.of(candidates, boxes)
    if row is not None:
        count.events[0] = row["events"]
        count.matched[:] = row["matched"]
        for name in ("covered", "missed"):
            columns = np.array(row[name], np.int64).reshape(len(candidates), -1)
            for tally, column in zip(count.tallies, columns, strict=True):
                getattr(tally, name)[:] = column
    return count.scores()


_kept: tuple[bytes, Sequence[Candidate]] | None = None  # with all bitsets that they have made


def _same(candidates: Sequence[Candidate]) -> Sequence[Candidate]:
    """Equal candidates that a task before this one has used already, if these are still there."""
    global _kept
    digest = b"".join(candidate.coverage.digest for candidate in candidates)
    if _kept is None or _kept[0] != digest:
        _kept = digest, candidates
    return _kept[1]


def _partial(
    candidates: Sequence[Candidate], boxes: BoxTable
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def count_up(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        count = Count.of(_same(candidates), boxes)
        for batch in batches:
            if batch.num_rows:
                count.add(event_batch(boxes.schema, batch), matcher_of(boxes))
        yield _row(
            int(count.events[0]),
            count.matched,
            np.concatenate([tally.covered for tally in count.tallies]),
            np.concatenate([tally.missed for tally in count.tallies]),
        )

    return count_up


def _total(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    total: list[Any] = []
    for batch in batches:
        for i in range(batch.num_rows):
            row = [np.array(batch.column(c)[i].as_py(), np.int64) for c in range(batch.num_columns)]
            total = [a + b for a, b in zip(total, row, strict=True)] if total else row
    if total:
        yield _row(int(total[0]), *total[1:])


def _row(events: int, *arrays: NDArray[np.int64]) -> pa.RecordBatch:
    cells = [pa.array([array], pa.list_(pa.int64())) for array in arrays]
    names = ("matched", "covered", "missed")
    return pa.RecordBatch.from_pydict(
        {"events": pa.array([events], pa.int64())} | dict(zip(names, cells, strict=True))
    )
