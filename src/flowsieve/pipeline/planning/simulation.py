"""What regular grids over some dimensions would deliver, counted over all events in one pass.

A box gets an event if it touches the event's cell, so that no cover has to be listed. Places are those of axes of
`BITS` bits; a coarser axis takes their top bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.index.axes.grid import Axis
from flowsieve.index.plans.levels import round_robin
from flowsieve.pipeline.matching.matcher import bit_rows
from flowsieve.pipeline.planning import selection_kernel as kernel
from flowsieve.pipeline.planning.selection import Chosen, Simulate
from flowsieve.pipeline.runtime.batches import event_batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BITS = 12  # of an axis at most
Spent = tuple[tuple[int, int], ...]  # (dimension, bits) of a grid; none that gets no bit
CHUNK = 1 << 12


@dataclass(frozen=True, eq=False)
class Simulation:
    """Boxes on fine regular axes, and how many bits an index has."""

    schema: Schema
    bits: int
    first: NDArray[np.int32]  # a row per dimension, a column per box
    last: NDArray[np.int32]

    @classmethod
    def of(cls, schema: Schema, filters: Sequence[Filter], bits: int) -> Simulation:
        first, last = [], []
        for i, attribute in enumerate(schema):
            axis = Axis(attribute, min(BITS, attribute.resolution))
            known = {
                constraint: axis.span(constraint) for f in filters for constraint in {b[i] for b in f.boxes}
            }
            spans = [known[box[i]] for f in filters for box in f.boxes]
            first.append([span.first for span in spans])
            last.append([span.last for span in spans])
        return cls(schema, bits, np.array(first, np.int32), np.array(last, np.int32))

    @property
    def widths(self) -> list[int]:
        return [min(BITS, attribute.resolution) for attribute in self.schema]

    @cached_property
    def digest(self) -> bytes:
        return blake2b(self.first.tobytes() + self.last.tobytes() + self.schema.digest.encode()).digest()

    def spent(self, chosen: Chosen) -> Spent:
        """The bits that each dimension of a regular grid gets."""
        widths = [self.widths[d] for d in chosen]
        levels = round_robin(widths, min(self.bits, sum(widths)))
        return tuple((d, levels.count(i)) for i, d in enumerate(chosen) if i in levels)

    def counter(self) -> Counter:
        """What counts, made once for tasks that follow each other in one process."""
        global _latest
        if _latest is None or _latest[0] != self.digest:
            _latest = self.digest, Counter(self)
        return _latest[1]


_latest: tuple[bytes, Counter] | None = None


class Counter:
    """The bitsets of boxes at the places of axes of several widths, made when they are first needed."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self._rows: dict[tuple[int, int], NDArray[np.uint64]] = {}

    def deliveries(self, events: EventBatch, sets: Sequence[Chosen]) -> NDArray[np.int64]:
        """What each set of dimensions would deliver of some events; all of them where none can be halved."""
        simulation = self.simulation
        spent = [simulation.spent(chosen) for chosen in sets]
        divided = np.array([bool(grid) for grid in spent])
        out = np.full(len(sets), len(events) * simulation.first.shape[1], np.int64)
        if divided.any():
            out[divided] = self._divided(events, [grid for grid in spent if grid])
        return out

    def _divided(self, events: EventBatch, spent: Sequence[Spent]) -> NDArray[np.int64]:
        simulation = self.simulation
        axes = sorted({axis for grid in spent for axis in grid})
        bits, start = self._bits(axes)
        column = {axis: i for i, axis in enumerate(axes)}
        grids = np.full((len(spent), max(map(len, spent))), -1, np.int64)
        for g, grid in enumerate(spent):
            grids[g, : len(grid)] = [column[axis] for axis in grid]
        out = np.zeros(len(spent), np.int64)
        shared = np.empty(bits.shape[1], np.uint64)
        places = {
            d: Axis(simulation.schema.attributes[d], simulation.widths[d])
            .places(events.columns[simulation.schema.names[d]])
            .astype(np.int64)
            for d in {d for d, _ in axes}
        }
        for begin in range(0, len(events), CHUNK):
            rows = [
                start[i] + (places[d][begin : begin + CHUNK] >> (simulation.widths[d] - width))
                for i, (d, width) in enumerate(axes)
            ]
            kernel.add_deliveries(bits, np.ascontiguousarray(np.stack(rows, axis=1)), grids, shared, out)
        return out

    def _bits(self, axes: Sequence[tuple[int, int]]) -> tuple[NDArray[np.uint64], list[int]]:
        tables = [self._table(*axis) for axis in axes]
        start = np.concatenate([[0], np.cumsum([len(table) for table in tables])]).astype(int).tolist()
        return np.concatenate(tables), start[:-1]

    def _table(self, d: int, width: int) -> NDArray[np.uint64]:
        if (d, width) not in self._rows:
            shift = self.simulation.widths[d] - width
            first = (self.simulation.first[d] >> shift).astype(np.int64)
            last = (self.simulation.last[d] >> shift).astype(np.int64)
            self._rows[d, width] = bit_rows(first, last, 1 << width)
        return self._rows[d, width]


class Simulated:
    """Simulates on Spark: each call is one pass over the events, whatever the number of sets.

    A selection calls it again and again, so that executors keep the events' attributes from the first call on.
    """

    def __init__(self, events: DataFrame, simulation: Simulation) -> None:
        self._events = events
        self._simulation = simulation
        self._kept: DataFrame | None = None

    def __call__(self, sets: Sequence[Chosen]) -> Sequence[int]:
        if self._kept is None:
            self._kept = self._events.select(*self._simulation.schema.names).persist()
        count = partial(_count, self._simulation, sets)
        partials = self._kept.mapInArrow(count, "counts array<bigint>").collect()
        return [int(sum(row["counts"][g] for row in partials)) for g in range(len(sets))]

    def forget(self) -> None:
        """Let executors use the room for something else."""
        if self._kept is not None:
            self._kept.unpersist()
            self._kept = None


def _count(
    simulation: Simulation, sets: Sequence[Chosen], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    total = np.zeros(len(sets), np.int64)
    for batch in batches:
        if batch.num_rows:
            total += simulation.counter().deliveries(event_batch(simulation.schema, batch), sets)
    yield pa.RecordBatch.from_pydict({"counts": pa.array([total], pa.list_(pa.int64()))})


def simulate_here(events: EventBatch, simulation: Simulation) -> Simulate:
    """Simulate on a sample, in this process."""
    counter = Counter(simulation)
    return lambda sets: counter.deliveries(events, sets).tolist()
