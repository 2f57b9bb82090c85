"""The recent window: what the latest micro-batches came to, and what that says of dimensions and subscriptions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flowsieve.content.schema import Schema
from flowsieve.pipeline.matching.statistics import variances
from flowsieve.pipeline.stream.drift import drift
from flowsieve.pipeline.stream.micro_batch import LandedSums

FEW = 100  # events of an entry; fewer say little of how it differs
CHANCE = 1.63  # of what chance makes of no drift at all, less than 1 in 100 is beyond (Kolmogorov-Smirnov)
PER_SUBSCRIPTION = ("matched", "covered", "missed")


@dataclass(frozen=True, eq=False)
class WindowEntry:
    """What a micro-batch came to, under which index, for which subscriptions, and the files that its events are in."""

    batch: int
    version: int
    schema: str  # its digest
    ids: tuple[str, ...]
    first: int
    last: int
    files: tuple[str, ...]
    sums: LandedSums

    def aligned(self, ids: tuple[str, ...]) -> WindowEntry:
        """The same for other subscriptions: those that are gone are forgotten, new ones have had nothing."""
        if self.ids is ids or self.ids == ids:
            return replace(self, ids=ids)
        places = {id: place for place, id in enumerate(self.ids)}
        found = np.array([places.get(id, len(self.ids)) for id in ids], np.int64)
        arrays: dict[str, Any] = {
            name: np.append(getattr(self.sums, name), np.int64(0))[found] for name in PER_SUBSCRIPTION
        }
        return replace(self, ids=ids, sums=replace(self.sums, **arrays))


@dataclass(frozen=True, eq=False)
class Window:
    """The entries of the latest micro-batches that are not over, oldest first."""

    entries: tuple[WindowEntry, ...] = ()

    @property
    def newest(self) -> int:
        """The latest time that was seen, in microseconds since 1970; 0 before the first."""
        return max((entry.last for entry in self.entries), default=0)

    def recent(self, most: int) -> Window:
        """The latest entries with events of the schema of now, of which there are so many at most; one at least."""
        schema = self.entries[-1].schema if self.entries else ""
        known: list[WindowEntry] = []
        events = 0
        for entry in reversed(self.entries):
            if entry.schema != schema or not entry.sums.events:
                continue
            events += entry.sums.events
            if known and events > most:
                break
            known.append(entry)
        return Window(tuple(reversed(known)))

    def alike(self, limit: float) -> Window:
        """The latest entries up to one that differs from the last by a drift of `limit`, beyond what chance does.

        A plan for what traffic is like now is not to be made of what it was like before.
        """
        kept: list[WindowEntry] = []
        for entry in reversed(self.entries):
            many = min(entry.sums.events, self.entries[-1].sums.events)
            if kept and many >= FEW:
                found = drift(entry.sums.histogram, self.entries[-1].sums.histogram)
                if found.max(initial=0.0) >= limit + CHANCE * np.sqrt(2 / many):
                    break
            kept.append(entry)
        return Window(tuple(reversed(kept)))

    @property
    def span(self) -> int:
        """How many microseconds it reaches over."""
        return self.newest - min((entry.first for entry in self.entries), default=self.newest)

    @property
    def files(self) -> tuple[str, ...]:
        """The files that its events are in."""
        return tuple(path for entry in self.entries for path in entry.files)

    @property
    def events(self) -> int:
        return sum(entry.sums.events for entry in self.entries)

    def held_since(self, share: float) -> int | None:
        """From when on the latest events are, so that they are at least that share; None where that would be all."""
        known = self.entries
        wanted, later = share * sum(each.sums.events for each in known), 0
        for each in reversed(known[1:]):
            later += each.sums.events
            if later >= wanted:
                return each.first
        return None

    def taking(self, entry: WindowEntry, span: int) -> Window:
        """With one more entry, and without those that ended so many microseconds before the newest."""
        newest = max(self.newest, entry.last)
        kept = [each.aligned(entry.ids) for each in self.entries if each.last > newest - span]
        return Window((*kept, entry))

    def reading(self, schema: Schema) -> WindowReading:
        """What it says under the index and for the subscriptions of its last entry."""
        last = self.entries[-1]
        nothing = LandedSums.nothing(len(schema), len(last.ids))
        known = [each for each in self.entries if each.schema == last.schema]
        under = [each for each in known if each.version == last.version]
        timed = [each for each in known if each.sums.events] or known
        first, until = min(each.first for each in timed), max(each.last for each in timed)
        total = LandedSums.total([each.sums for each in known], nothing)
        judged = LandedSums.total([each.sums for each in under], nothing)
        return WindowReading(schema, last.version, last.ids, first, until, total, judged)


@dataclass(frozen=True, eq=False)
class WindowReading:
    """A window's figures. `judged` are the sums under the running index alone; rates are None where nothing came."""

    schema: Schema
    version: int
    ids: tuple[str, ...]
    first: int
    until: int
    total: LandedSums
    judged: LandedSums

    @property
    def per_second(self) -> float:
        """Events that were published in a second; each that was sampled stands for several."""
        return self.total.weight / max(1.0, (self.until - self.first) / 1e6)

    @property
    def computed(self) -> float | None:
        """The share of what the running plan delivers to subscriptions that these do not want."""
        covered, matched = int(self.judged.covered.sum()), int(self.judged.matched.sum())
        return _share(covered - matched + int(self.judged.missed.sum()), covered)

    @property
    def measured(self) -> float | None:
        """The share of what hosts received that they did not want, by their counts, or else by sampled deliveries."""
        counts = self.total.counts
        if counts["received"]:
            return _share(counts["unwanted"], counts["received"])
        return _share(self.total.unwanted, self.total.wanted + self.total.unwanted)

    @property
    def fpr(self) -> float | None:
        """The rate that is gone by: measured where hosts report it, else computed."""
        return self.computed if self.measured is None else self.measured

    def dimensions(self, drifts: NDArray[np.float64]) -> dict[str, dict[str, float]]:
        """Per dimension: how far it drifted, the variance of events, the share of events that subscriptions admit."""
        spread = variances(self.total.moments, self.total.events)
        pairs = max(1, self.judged.judged * len(self.ids))
        return {
            name: {
                "drift": float(drifts[i]),
                "variance": float(spread[i]),
                "selectivity": int(self.judged.along[i]) / pairs,
            }
            for i, name in enumerate(self.schema.names)
        }

    def subscriptions(self, which: Sequence[int] | None = None) -> list[dict[str, Any]]:
        """Per subscription, in their order or some of them: what it matched, what it got, the share it did not want."""
        rows = []
        for i in range(len(self.ids)) if which is None else which:
            matched, covered, missed = (int(getattr(self.judged, name)[i]) for name in PER_SUBSCRIPTION)
            wrong = covered - matched + missed
            fpr = wrong / covered if covered else 0.0
            rows.append({"id": self.ids[i], "matches": matched, "deliveries": covered, "fpr": fpr})
        return rows

    def worst(self, most: int) -> list[dict[str, Any]]:
        """Those that get most that they do not want."""
        wrong = self.judged.covered - self.judged.matched
        order = np.argsort(-wrong, kind="stable")[:most]
        return self.subscriptions([int(i) for i in order if wrong[i] > 0])


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None
