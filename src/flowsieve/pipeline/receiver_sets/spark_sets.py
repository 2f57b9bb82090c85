"""Audiences gathered on Spark, sets learned there from a bounded number of them, and packets counted over all events.

Each start of the search is a task of its own. Which audiences are learned from depends on the events alone, not on how
they are split.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from flowsieve.content.event import EventBatch
from flowsieve.pipeline.receiver_sets import set_kernel as kernel
from flowsieve.pipeline.receiver_sets.audiences import Numbers
from flowsieve.pipeline.receiver_sets.host_wants import WORD, HostWants, audiences_of
from flowsieve.pipeline.receiver_sets.learning import STARTS, SetSizes, learn
from flowsieve.pipeline.receiver_sets.tree_places import TreePlaces
from flowsieve.pipeline.runtime.batches import event_batch
from flowsieve.pipeline.runtime.sums import SumRow, summed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST_AUDIENCES = 100_000  # that sets are learned from: the most frequent ones
MOST_MEMBERS = 1_000_000  # of all these together
HOST = "host"  # the column of who published an event


@dataclass(frozen=True, slots=True)
class Learned:
    """The set of each host by each start, and what it was learned from."""

    parts: Mapping[str, Numbers]
    events: int  # that were looked at
    shared: int  # of these, wanted by two hosts or more
    audiences: int  # different ones among those
    used: int  # of them, learned from


def learn_on(
    events: DataFrame, wants: HostWants, places: TreePlaces, sizes: SetSizes, links: float
) -> Learned:
    """Learn sets from events, on Spark; only what is found comes back."""

    def gather(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            found = wants.keys(*_published(wants, batch))
            keys = pa.array([*found], pa.binary())
            yield pa.RecordBatch.from_pydict(
                {"audience": keys, "events": pa.array([*found.values()], pa.int64())}
            )

    listed = events.select(*_columns(wants, events)).mapInArrow(gather, "audience binary, events bigint")
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
        parts = _searched(chosen, places, sizes, links)
    finally:
        known.unpersist()
    return Learned(parts, row["events"] or 0, row["shared"] or 0, audiences, min(audiences, most))


def _searched(chosen: DataFrame, places: TreePlaces, sizes: SetSizes, links: float) -> dict[str, Numbers]:
    """What each start comes to, side by side; nothing where there is no audience."""
    names = [*STARTS]

    def copy(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        keys: list[bytes] = []
        weight: list[int] = []
        for batch in batches:
            keys += batch.column("audience").to_pylist()
            weight += batch.column("events").to_pylist()
        if keys:
            found = pickle.dumps((keys, weight))
            for number in range(len(names)):
                yield pa.RecordBatch.from_pydict({"start": [number], "known": pa.array([found], pa.binary())})

    def search(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number, known in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                audiences = audiences_of(places.hosts, *pickle.loads(known))
                part = learn(audiences, places, sizes, names[number], links)
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
    """How many events there were, how many of them somebody wants, and what each way of sets takes.

    That is packets, and crossings of the tree's edges by them, as if all came from its root.
    """

    events: int
    wanted: int
    packets: Mapping[str, int]
    crossings: Mapping[str, int]

    def cost(self, links: float) -> dict[str, float]:
        """Packets per event, of which one over a link counts `links`."""
        return {
            name: (packets + links * self.crossings[name]) / max(1, self.events)
            for name, packets in self.packets.items()
        }


def count_packets(
    events: DataFrame, wants: HostWants, places: TreePlaces, ways: Mapping[str, Numbers]
) -> PacketCount:
    """Count the packets of all events, for several ways to put hosts into sets at once."""
    parts, above = np.stack([*ways.values()]), places.above()
    sets, none = int(parts.max(initial=0)) + 1, np.zeros(len(ways), np.int64)
    nothing = {"events": np.zeros(2, np.int64), "packets": none, "crossings": none}

    def count(batches: Iterator[pa.RecordBatch]) -> SumRow:
        sums = {name: numbers.copy() for name, numbers in nothing.items()}
        for batch in batches:
            for begin, host in wants.listed(*_published(wants, batch)):
                sums["events"] += np.array([len(begin) - 1, np.count_nonzero(np.diff(begin))])
                counted = sums["packets"], sums["crossings"]
                kernel.count_packets(begin, host, parts, sets, *above, len(places), *counted)
        return sums

    row: dict[str, Any] = summed(events.select(*_columns(wants, events)), count, nothing)
    there, wanted = row["events"].tolist()
    by_way = [dict(zip(ways, row[name].tolist(), strict=True)) for name in ("packets", "crossings")]
    return PacketCount(there, wanted, *by_way)


def _columns(wants: HostWants, events: DataFrame) -> list[str]:
    """What has to be known of events: their attributes, and who published them where that is told."""
    names = wants.boxes.schema.names
    return [*names, *(name for name in (HOST,) if name in events.columns and name not in names)]


def _published(wants: HostWants, batch: pa.RecordBatch) -> tuple[EventBatch, Numbers]:
    """The events of a batch, and the number of the host that published each, if it is told."""
    events = event_batch(wants.boxes.schema, batch)
    if HOST not in batch.schema.names or HOST in wants.boxes.schema:
        return events, np.full(len(events), kernel.NOWHERE, np.int64)
    found = pc.index_in(batch.column(HOST), value_set=pa.array(wants.hosts, pa.string()))
    return events, pc.fill_null(found, kernel.NOWHERE).to_numpy(zero_copy_only=False).astype(np.int64)
