"""Audiences gathered on Spark, sets learned there from a bounded number of them, and packets counted over all events.

Each start of the search is a task of its own. Which audiences are learned from depends on the events alone, not on how
they are split.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from flowsieve.content.event import EventBatch
from flowsieve.pipeline.evaluation.evaluation import CHUNK, Bench, bench_of
from flowsieve.pipeline.matching.boxes import BoxTable
from flowsieve.pipeline.receiver_sets import set_kernel as kernel
from flowsieve.pipeline.receiver_sets.audiences import Audiences, Numbers
from flowsieve.pipeline.receiver_sets.learning import STARTS, SetSizes, learn
from flowsieve.pipeline.runtime.batches import event_batch
from flowsieve.pipeline.runtime.sums import SumRow, summed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST_AUDIENCES = 100_000  # that sets are learned from: the most frequent ones
MOST_MEMBERS = 1_000_000  # of all these together
WORD = np.dtype("<i4")  # a host's number in an audience's key


@dataclass(frozen=True, eq=False)
class HostWants:
    """What the hosts of a network want: the boxes of all subscriptions, and the number of the host of each."""

    hosts: tuple[str, ...]
    boxes: BoxTable
    home: Numbers

    def columns(self, events: DataFrame) -> list[str]:
        """What has to be known of events: their attributes, and who published them where that is told."""
        names = self.boxes.schema.names
        return [*names, *(name for name in ("host",) if name in events.columns and name not in names)]

    def listed(self, batch: pa.RecordBatch) -> Iterator[tuple[Numbers, Numbers]]:
        """Of some events at a time, the hosts that want each: where they begin in a list, and the list."""
        events, source = event_batch(self.boxes.schema, batch), self._source(batch)
        bench = bench_of(self.boxes.digest, (), self.boxes)
        for at in range(0, len(events), CHUNK):
            rows = np.arange(at, min(at + CHUNK, len(events)))
            yield self.audiences(bench, events.take(rows), source[rows])

    def audiences(self, bench: Bench, events: EventBatch, source: Numbers) -> tuple[Numbers, Numbers]:
        """The hosts, but for the publisher, that want each event."""
        matched = bench.matched(events, lists=True)
        begin, out = np.empty(len(events) + 1, np.int64), np.empty(matched.start[-1], np.int64)
        kernel.list_audiences(matched.start, matched.who, self.home, source, begin, out)
        return begin, out[: begin[-1]]

    def _source(self, batch: pa.RecordBatch) -> Numbers:
        if "host" not in batch.schema.names or "host" in self.boxes.schema:
            return np.full(batch.num_rows, kernel.NOWHERE, np.int64)
        found = pc.index_in(batch.column("host"), value_set=pa.array(self.hosts, pa.string()))
        source: Numbers = pc.fill_null(found, kernel.NOWHERE).to_numpy(zero_copy_only=False).astype(np.int64)
        return source


@dataclass(frozen=True, slots=True)
class Learned:
    """The set of each host by each start, and what it was learned from."""

    parts: Mapping[str, Numbers]
    events: int  # that were looked at
    shared: int  # of these, wanted by two hosts or more
    audiences: int  # different ones among those
    used: int  # of them, learned from


def learn_on(events: DataFrame, wants: HostWants, places: Audiences, sizes: SetSizes) -> Learned:
    """Learn sets from events, on Spark; only what is found comes back."""

    def gather(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            found: Counter[bytes] = Counter()
            for begin, host in wants.listed(batch):
                members = host.astype(WORD)
                ends = begin.tolist()
                found.update(members[first:last].tobytes() for first, last in pairwise(ends))
            keys = pa.array([*found], pa.binary())
            yield pa.RecordBatch.from_pydict(
                {"audience": keys, "events": pa.array([*found.values()], pa.int64())}
            )

    listed = events.select(*wants.columns(events)).mapInArrow(gather, "audience binary, events bigint")
    known = listed.groupBy("audience").agg(F.sum("events").alias("events")).persist()
    try:
        shared = F.length("audience") > WORD.itemsize
        row = known.agg(
            F.sum("events").alias("events"),
            F.sum(F.when(shared, F.col("events"))).alias("shared"),
            F.count(F.when(shared, 1)).alias("audiences"),
            F.sum(F.when(shared, F.length("audience"))).alias("members"),
        ).first()
        assert row is not None
        audiences = row["audiences"]
        mean = (row["members"] or 0) / WORD.itemsize / max(1, audiences)
        most = min(MOST_AUDIENCES, int(MOST_MEMBERS / max(1.0, mean)) + 1)
        chosen = known.where(shared).orderBy(F.desc("events"), F.xxhash64("audience"), "audience").limit(most)
        parts = _searched(chosen, len(wants.hosts), places, sizes)
    finally:
        known.unpersist()
    return Learned(parts, row["events"] or 0, row["shared"] or 0, audiences, min(audiences, most))


def _searched(chosen: DataFrame, hosts: int, places: Audiences, sizes: SetSizes) -> dict[str, Numbers]:
    """What each start comes to, side by side; nothing where there is no audience."""
    names = [*STARTS]

    def copy(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        keys: list[bytes] = []
        weight: list[int] = []
        for batch in batches:
            keys += batch.column("audience").to_pylist()
            weight += batch.column("events").to_pylist()
        if keys:
            start = np.cumsum([0, *(len(key) // WORD.itemsize for key in keys)]).astype(np.int64)
            host = np.frombuffer(b"".join(keys), WORD).astype(np.int64)
            found = pickle.dumps((start, host, np.array(weight, np.int64)))
            for number in range(len(names)):
                yield pa.RecordBatch.from_pydict({"start": [number], "known": pa.array([found], pa.binary())})

    def search(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number, known in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                start, host, weight = pickle.loads(known)
                audiences = Audiences.joined(hosts, start, host, weight)
                part = learn(audiences, places, sizes, names[number])
                yield pa.RecordBatch.from_pydict(
                    {"start": [number], "part": pa.array([part], pa.list_(pa.int64()))}
                )

    copies = chosen.mapInArrow(copy, "start bigint, known binary").repartition(len(names))
    rows = copies.mapInArrow(search, "start bigint, part array<bigint>").collect()
    return {
        names[row["start"]]: np.array(row["part"], np.int64)
        for row in sorted(rows, key=lambda row: row["start"])
    }


@dataclass(frozen=True, slots=True)
class PacketCount:
    """How many events there were, how many of them somebody wants, and the packets that each way of sets takes."""

    events: int
    wanted: int
    packets: Mapping[str, int]

    def per_event(self) -> dict[str, float]:
        return {name: packets / max(1, self.events) for name, packets in self.packets.items()}


def count_packets(events: DataFrame, wants: HostWants, ways: Mapping[str, Numbers]) -> PacketCount:
    """Count the packets of all events, for several ways to put hosts into sets at once."""
    parts = np.stack([*ways.values()])
    sets = int(parts.max(initial=0)) + 1

    def count(batches: Iterator[pa.RecordBatch]) -> SumRow:
        sums = _nothing(parts)
        for batch in batches:
            for begin, host in wants.listed(batch):
                sums["events"] += np.array([len(begin) - 1, np.count_nonzero(np.diff(begin))])
                kernel.count_packets(begin, host, parts, sets, sums["packets"])
        return sums

    row: dict[str, Any] = summed(events.select(*wants.columns(events)), count, _nothing(parts))
    events_there, wanted = row["events"].tolist()
    return PacketCount(events_there, wanted, dict(zip(ways, row["packets"].tolist(), strict=True)))


def _nothing(parts: Numbers) -> dict[str, Numbers]:
    return {"events": np.zeros(2, np.int64), "packets": np.zeros(len(parts), np.int64)}


def sets_of(hosts: Sequence[str], part: Numbers) -> tuple[tuple[str, ...], ...]:
    """Hosts by their sets, none of which is empty."""
    rows: dict[int, list[str]] = {}
    for host, number in zip(hosts, part.tolist(), strict=True):
        rows.setdefault(number, []).append(host)
    return tuple(tuple(rows[number]) for number in sorted(rows))
