"""Which dimensions to index, by the rules of [Expressive].

*evs* ranks them by the variance of events, *emcs* by the share of subscriptions that events match along them, *cs* by
the first principal component of the covariance of matches, *random* at random. How many of a ranking to take is found
by simulation, unless a number is given. *gs* starts with all and leaves out, one by one, the one without which least
is delivered; *brs* tries all sets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from flowsieve.content.schema import Schema
from flowsieve.errors import BadInput
from flowsieve.pipeline.matching.boxes import BoxTable
from flowsieve.pipeline.matching.statistics import Statistics
from flowsieve.pipeline.planning import selection_kernel as kernel

Chosen = tuple[int, ...]  # positions in the schema, the most selective first
Simulate = Callable[[Sequence[Chosen]], Sequence[int]]  # what each set of dimensions would deliver
SELECTIONS = ("evs", "emcs", "cs", "gs", "brs", "random")
MOST_VALUES = 1 << 16  # of a dimension that has a table
MOST_TRIED = 1 << 12  # sets of dimensions that are simulated at once


def divisible(schema: Schema) -> Chosen:
    """The dimensions that can be halved: those of more than one value. Where there is none, all of them.

    >>> divisible(Schema.parse({"a": {"type": "int", "min": 3, "max": 3}, "b": {"type": "bool"}}))
    (1,)
    """
    found = tuple(d for d, attribute in enumerate(schema) if attribute.resolution)
    return found or tuple(range(len(schema)))


def is_indivisible(schema: Schema) -> bool:
    """Whether no dimension can be halved; then there is one plan, the regular one of no bits."""
    return not any(attribute.resolution for attribute in schema)


def ranking(method: str, statistics: Statistics, seed: int = 0) -> Chosen:
    """All dimensions, the most selective first; those that are alike in the schema's order."""
    if method == "evs":
        worth = statistics.variance
    elif method == "emcs":
        worth = 1.0 - statistics.selectivity
    elif method == "cs":
        worth = statistics.principal
    elif method == "random":
        worth = np.random.default_rng(seed).random(len(statistics.schema))
    else:
        raise BadInput(f"{method!r} ranks no dimensions; right are evs, emcs, cs, random")
    return tuple(np.argsort(-np.round(worth, 12), kind="stable").tolist())


def matches_along(boxes: BoxTable, points: NDArray[np.float64]) -> NDArray[np.int64]:
    """Per dimension the (event, box) pairs that match along it: all that emcs needs of events."""
    least, values = np.zeros(len(boxes.schema)), np.zeros(len(boxes.schema), np.int64)
    after = np.empty_like(boxes.high.T)
    for d, attribute in enumerate(boxes.schema):
        whole = attribute.kind not in ("float", "string") and attribute.max - attribute.min < MOST_VALUES
        if whole:
            least[d], values[d] = attribute.min, int(attribute.max - attribute.min) + 1
        high = boxes.high[:, d]
        after[d] = np.sort(high + 1 if whole else np.nextafter(high, np.inf))
    out = np.zeros(len(boxes.schema), np.int64)
    kernel.count_matches(points, np.sort(boxes.low.T, axis=1), after, least, values, out)
    return out


def select(
    method: str,
    schema: Schema,
    statistics: Callable[[], Statistics],
    simulate: Simulate,
    number: int | None = None,
    seed: int = 0,
) -> Chosen:
    """The dimensions that a rule chooses: `number` of them, or as many as are best."""
    everything = divisible(schema)
    if number is not None and not 1 <= number <= len(schema):
        raise BadInput(f"{number} dimensions of {len(schema)}; right is a number from 1 to {len(schema)}")
    if method == "gs":
        return greedy(everything, simulate, number)
    if method == "brs":
        return brute_force(everything, simulate, number)
    ranked = tuple(d for d in ranking(method, statistics(), seed) if d in everything)
    if number is not None:
        return ranked[:number]
    return _least([ranked[:n] for n in range(len(ranked), 0, -1)], simulate)


def greedy(everything: Chosen, simulate: Simulate, number: int | None = None) -> Chosen:
    """Leave out dimensions one by one, always that without which least is delivered; of all these sets, the best."""
    tried = [everything]
    delivered = [simulate(tried)[0]]
    current = everything
    while len(current) > (number or 1):
        sets = [tuple(d for d in current if d != out) for out in current]
        counts = simulate(sets)
        best = min(range(len(sets)), key=lambda i: (counts[i], i))
        current = sets[best]
        tried.append(current)
        delivered.append(counts[best])
    if number is not None:
        return current
    return tried[min(range(len(tried)), key=lambda i: (delivered[i], len(tried[i])))]


def brute_force(everything: Chosen, simulate: Simulate, number: int | None = None) -> Chosen:
    """The best of all sets of dimensions."""
    sizes = range(1, len(everything) + 1) if number is None else [number]
    sets = [chosen for size in sizes for chosen in combinations(everything, size)]
    if len(sets) > MOST_TRIED:
        raise BadInput(
            f"brs would try {len(sets):,} sets of dimensions, and {MOST_TRIED:,} are the most; right is gs"
        )
    return _least(sets, simulate)


def _least(sets: Sequence[Chosen], simulate: Simulate) -> Chosen:
    counts = simulate(sets)
    return sets[min(range(len(sets)), key=lambda i: (counts[i], len(sets[i]), sets[i]))]
