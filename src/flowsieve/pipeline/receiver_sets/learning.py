"""Sets of hosts learned from audiences: an event is sent once for each set that its audience touches.

That is a hypergraph to be cut into parts of bounded size, hosts being its vertices and audiences its edges. A start
fills one set after the other, or takes neighbours; then hosts move and change places as long as that saves packets.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flowsieve.pipeline.receiver_sets import set_kernel as kernel
from flowsieve.pipeline.receiver_sets.audiences import Audiences, Numbers

ROUNDS = 30
ENOUGH = 10_000  # a round that saves less than such a part of the cost is the last
SCALE = 1_000  # what an event counts, so that places can count less
# What it is worth to have a set less beyond every edge of the tree: one event in fifty sent once less.
LOCALITY = 50
# How much of a host's events a set must share to go on growing, while others have room; None: start from neighbours.
STARTS: dict[str, float | None] = {"neighbours": None, "full": 0.0, "loose": 0.3, "tight": 0.6}


@dataclass(frozen=True, slots=True)
class SetSizes:
    """At most so many sets of at most so many hosts each."""

    sets: int
    most: int


def neighbour_sets(hosts: int, most: int) -> Numbers:
    """The set of each host, hosts being numbered in the order of the tree: neighbours share one."""
    return np.arange(hosts, dtype=np.int64) // most


def learn(audiences: Audiences, places: Audiences, sizes: SetSizes, start: str) -> Numbers:
    """The set of each host: few for each audience, and, where that is the same, few beyond each edge of the tree."""
    hosts, least = audiences.hosts, STARTS[start]
    part = neighbour_sets(hosts, sizes.most)
    if least is not None:
        given = audiences.start, audiences.host, audiences.first, audiences.audience, audiences.weight
        kernel.grow(*given, sizes.most, sizes.sets, least, part)
    return improved(audiences.with_more(places, SCALE), part, sizes)


def improved(audiences: Audiences, part: Numbers, sizes: SetSizes) -> Numbers:
    """The same sets after moves and exchanges that each save something, until a round saves next to nothing."""
    part = part.copy()
    size = np.bincount(part, minlength=sizes.sets).astype(np.int64)
    counts = kernel.count_touched(audiences.start, audiences.host, part, sizes.sets)
    ties = kernel.sum_ties(audiences.start, audiences.host, audiences.weight, part, counts)
    given = audiences.start, audiences.host, audiences.first, audiences.audience, audiences.weight
    least, dice = audiences.cost(part) // ENOUGH, np.random.default_rng(0)
    for _ in range(ROUNDS):
        order = dice.permutation(len(part))
        if kernel.improve(order, sizes.most, *given, part, size, counts, ties) <= least:
            break
    return part
