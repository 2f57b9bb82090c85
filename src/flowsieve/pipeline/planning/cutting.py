"""Cuts along one dimension: halvings of its line that follow the workload.

Two rules are known. *Avoiding* cuts at the edge of a box where that keeps most events from boxes on the other side.
*Balancing* is the adaptive spatial indexing of [Expressive]: both halves have as many (event, subscription) matches
along the dimension.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from flowsieve.index.axes.cut_axis import Number
from flowsieve.pipeline.planning import cut_kernel as kernel
from flowsieve.pipeline.planning.training_data import STRING_BITS, Edges, TrainingData

DEPTH = 12  # halvings of a dimension


class Profile(NamedTuple):
    """How many events lie, boxes start, and boxes end before each place of a line; one more than there are places."""

    events: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]

    @classmethod
    def of(cls, training: TrainingData, d: int) -> Profile:
        columns = (training.points, training.first, training.last)
        counts = (np.bincount(at[:, d], minlength=training.lines[d].places) for at in columns)
        return cls(*(np.concatenate([[0], np.cumsum(count)]).astype(np.int64) for count in counts))


def best_cut(profile: Profile, low: int, high: int) -> tuple[int, float]:
    """The place at which cutting low..high avoids most deliveries: the definition, for tests.

    An event to the left is kept from every box that starts at the cut or later, one to the right from every box that
    ends before it.
    """
    events, starts, ends = profile
    gains = [
        float(events[x] - events[low]) * float(starts[high + 1] - starts[x])
        + float(events[high + 1] - events[x]) * float(ends[x] - ends[low])
        for x in range(low + 1, high + 1)
    ]
    return (low + 1 + int(np.argmax(gains)), max(gains)) if gains and max(gains) > 0 else (0, 0.0)


@dataclass(frozen=True, eq=False)
class Halvings:
    """A complete tree of cuts of a line, in heap order from 1: the places, and the numbers that they stand for."""

    line: Edges
    depth: int
    place: NDArray[np.int64]
    number: tuple[Number, ...]

    def numbers(self, bits: int) -> list[Number] | int:
        """The cuts of the first halvings, in order, as plans have them; of a string, their number."""
        if self.line.is_string:
            return bits
        return [self.number[node] for node in _in_order(bits)]

    def cells(self, bits: int) -> NDArray[np.int64]:
        """The cell of every place after so many halvings."""
        cuts = np.array([self.place[node] for node in _in_order(bits)], np.int64)
        return np.searchsorted(cuts, np.arange(self.line.places), side="right")


def avoiding(training: TrainingData, d: int, depth: int = DEPTH) -> Halvings:
    """Cuts that avoid most deliveries."""
    return _halvings(training.lines[d], depth, partial(kernel.halve, *Profile.of(training, d)))


def balancing(training: TrainingData, d: int, depth: int = DEPTH) -> Halvings:
    """Cuts that balance the matches; each place counts a little, so that what no event hit is still divided."""
    events, starts, ends = Profile.of(training, d)
    interested = (starts[1:] - ends[:-1]).astype(np.float64)
    weight = np.diff(events) * interested + 1e-6
    load = np.concatenate([[0.0], np.cumsum(weight)])
    return _halvings(training.lines[d], depth, partial(kernel.balance, load))


def _halvings(line: Edges, depth: int, fill: Callable[[int, NDArray[np.int64]], None]) -> Halvings:
    depth = min(depth, line.bits)
    place = np.full(1 << depth, -1, np.int64)
    if line.is_string:
        for node in range(1, 1 << depth):
            level = node.bit_length() - 1
            place[node] = (2 * (node - (1 << level)) + 1) << (STRING_BITS - 1 - level)
        return Halvings(line, depth, place, ())
    fill(depth, place)
    return Halvings(line, depth, *_numbers(line, place))


def _numbers(line: Edges, place: NDArray[np.int64]) -> tuple[NDArray[np.int64], tuple[Number, ...]]:
    """The numbers of all cuts; where a cut has no place, because nobody tells the values apart, the middle."""
    attribute = line.attribute
    whole = attribute.kind != "float"
    size = len(place)
    numbers: list[Number] = [0] * size
    low: list[Number] = [attribute.min] * size
    end: list[Number] = [attribute.max + 1 if whole else attribute.max] * size
    top = [line.places] * size  # the place after those of the cell
    out = place.copy()
    for node in range(1, size):
        a, b = low[node], end[node]
        if place[node] > 0:
            cut: Number = float(line.cuts[place[node] - 1])
            numbers[node] = int(cut) if whole else cut
        else:
            out[node] = top[node]
            numbers[node] = (a + b) / 2 if not whole else (int(a) + int(b)) // 2 if b - a > 1 else b
        if 2 * node < size:
            low[2 * node], end[2 * node], top[2 * node] = a, numbers[node], int(out[node])
            low[2 * node + 1], end[2 * node + 1], top[2 * node + 1] = numbers[node], b, top[node]
    return out, tuple(numbers)


def _in_order(bits: int) -> NDArray[np.int64]:
    """The nodes of a complete tree of so many levels, from left to right."""
    order = np.zeros((1 << bits) - 1, np.int64)
    for level in range(bits):
        nodes = np.arange(1 << level)
        order[(2 * nodes + 1) * (1 << (bits - 1 - level)) - 1] = (1 << level) + nodes
    return order
