"""What a workload is like: how events spread, what subscriptions match along each dimension, who gets how much.

One pass over the events. All sums are of whole numbers, so that the result is the same however the events are split.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from flowsieve.content.event import EventBatch
from flowsieve.content.schema import Schema
from flowsieve.index.axes.grid import Axis
from flowsieve.pipeline.matching import match_kernel as kernel
from flowsieve.pipeline.matching.boxes import BoxTable
from flowsieve.pipeline.matching.matcher import Matcher, matcher_of
from flowsieve.pipeline.matching.subsample import subsample
from flowsieve.pipeline.runtime.batches import event_batch
from flowsieve.pipeline.runtime.sums import SumRow, summed, worker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

STRING_PLACES = 26  # bits of `kernel.SCALE`
MOST_COMPARED = 20_000  # boxes that are compared with each other; of more, a random subsample


@dataclass(frozen=True, eq=False)
class Statistics:
    """The figures of a workload; `along`, `variance` and so on have an entry per dimension, in the schema's order.

    `matched[i, j]` is how many subscriptions an event matches along both dimension i and dimension j, summed over the
    events; on its diagonal, along one dimension.
    """

    schema: Schema
    events: int
    unwanted: int  # events that no subscription matches
    subscriptions: int
    boxes: int
    variance: NDArray[np.float64]  # of the events, on a line from 0 to 1
    matched: NDArray[np.int64]
    traffic: NDArray[np.int64]  # events that match each subscription
    overlap: NDArray[np.float64]  # share of the pairs of boxes that overlap, per dimension
    overlap_all: float  # … and along all dimensions
    workers: tuple[str, ...]  # the executors that took part

    @cached_property
    def selectivity(self) -> NDArray[np.float64]:
        """The share of events that a subscription admits along each dimension, on average: low is selective."""
        return np.diagonal(self.matched) / max(1, self.events * self.subscriptions)

    @cached_property
    def covariance(self) -> NDArray[np.float64]:
        """Covariance of matches as in [Expressive]: 1 less the share of (event, subscription) that match along both."""
        return 1.0 - self.matched / max(1, self.events * self.subscriptions)

    @cached_property
    def principal(self) -> NDArray[np.float64]:
        """The magnitudes of the covariance's first principal component, the eigenvector of its largest eigenvalue."""
        largest: NDArray[np.float64] = np.linalg.eigh(self.covariance)[1][:, -1]
        return np.abs(largest)

    def to_json(self) -> dict[str, Any]:
        per_dimension = {
            name: {
                "variance": float(self.variance[i]),
                "matched_per_event": int(self.matched[i, i]) / max(1, self.events),
                "selectivity": float(self.selectivity[i]),
                "overlap": float(self.overlap[i]),
                "principal": float(self.principal[i]),
            }
            for i, name in enumerate(self.schema.names)
        }
        return {
            "events": self.events,
            "unwanted": self.unwanted,
            "subscriptions": self.subscriptions,
            "boxes": self.boxes,
            "matches": int(self.traffic.sum()),
            "dimensions": per_dimension,
            "covariance": self.covariance.tolist(),
            "overlap": self.overlap_all,
            "traffic": {
                "mean": float(self.traffic.mean()) if len(self.traffic) else 0.0,
                "median": float(np.median(self.traffic)) if len(self.traffic) else 0.0,
                "most": int(self.traffic.max(initial=0)),
                "none": int((self.traffic == 0).sum()),
            },
            "executors": len(self.workers),
        }


def statistics(events: DataFrame, boxes: BoxTable) -> Statistics:
    """The statistics of events (as `IngestedEvents.events` has them) and subscriptions."""

    def add_up(batches: Iterator[pa.RecordBatch]) -> SumRow:
        sums, workers = empty_sums(boxes), set()
        for batch in batches:
            add_events(boxes, matcher_of(boxes), event_batch(boxes.schema, batch), sums)
            workers.add(worker())
        return sums._asdict() | {"workers": workers}

    row = summed(events.select(*boxes.schema.names), add_up, empty_sums(boxes)._asdict(), "workers")
    workers = tuple(row.pop("workers"))
    return of_sums(boxes, kernel.Sums(**row), workers)


def of_sums(boxes: BoxTable, sums: kernel.Sums, workers: tuple[str, ...] = ()) -> Statistics:
    """The statistics that follow from what was added up over all events."""
    events = int(sums.events[0])
    some = subsample(len(boxes), MOST_COMPARED)
    pairs, *overlapping = kernel.overlapping_pairs(
        boxes.low[some], boxes.high[some], boxes.owner[some]
    ).tolist()
    overlap = np.array(overlapping) / max(1, pairs)
    return Statistics(
        boxes.schema,
        events,
        int(sums.events[1]),
        boxes.subscriptions,
        len(boxes),
        variances(sums.moments, events),
        np.triu(sums.along) + np.triu(sums.along, 1).T,
        sums.traffic,
        overlap[:-1],
        float(overlap[-1]),
        workers,
    )


def variances(moments: NDArray[np.int64], events: int) -> NDArray[np.float64]:
    """The variance of so many events along each dimension, whose line goes from 0 to 1, by `kernel.Sums.moments`."""
    found = []
    for first, high, low in moments.tolist():
        square = (high << 32) + low
        found.append((events * square - first * first) / max(1, events * kernel.SCALE) ** 2)
    return np.array(found)


def add_events(boxes: BoxTable, matcher: Matcher, events: EventBatch, sums: kernel.Sums) -> None:
    """Add some events to the sums."""
    rows = matcher.rows(boxes.points(events))
    kernel.add_moments(places(boxes.schema, events), sums)
    kernel.add_along(matcher.subscriptions.bits, matcher.counts, rows, True, sums)
    kernel.add_traffic(matcher.boxes.bits, rows, matcher.owner, sums)


def places(schema: Schema, events: EventBatch) -> NDArray[np.int64]:
    """Where each event stands on each dimension's line, from 0 to `SCALE`; a string where its index bits put it."""
    out = np.empty((len(schema), len(events)), np.int64)
    for i, attribute in enumerate(schema):
        column = events.columns[attribute.name]
        if attribute.kind == "string":
            out[i] = Axis(attribute, STRING_PLACES).places(column)
        else:
            width = float(attribute.max) - float(attribute.min) or 1.0
            out[i] = np.rint((column - attribute.min) / width * kernel.SCALE)
    return out


def empty_sums(boxes: BoxTable) -> kernel.Sums:
    """The sums over no event."""
    dimensions = len(boxes.schema)
    shapes = ((dimensions, 3), (dimensions, dimensions), (boxes.subscriptions,), (2,))
    return kernel.Sums(*(np.zeros(shape, np.int64) for shape in shapes))
