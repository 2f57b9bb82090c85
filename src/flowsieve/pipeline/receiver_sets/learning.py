"""Sets of hosts learned from audiences: an event is sent once for each set that its audience touches.

That is a hypergraph to be cut into parts of bounded size, hosts being its vertices and audiences its edges. A start
fills one set after the other, or takes neighbours; then hosts move and change places as long as that saves packets.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flowsieve.errors import BadInput
from flowsieve.header.receivers import HEADER, MOST_SETS
from flowsieve.header.tag import POOLS
from flowsieve.pipeline.receiver_sets import set_kernel as kernel
from flowsieve.pipeline.receiver_sets.audiences import Audiences, Numbers
from flowsieve.pipeline.receiver_sets.tree_places import TreePlaces

ROUNDS = 30
ENOUGH = 10_000  # a round that saves less than such a part of the cost is the last
SCALE = 1_000  # what an event counts, so that places can count less
LINKS = 0.1  # what a packet over a link counts against one that a publisher sends, unless it is said
# What it is worth to have a set less beyond every edge of the tree: one event in two hundred sent once less.
LOCALITY = 200
# How much of a host's events a set must share to go on growing, while others have room; None: start from neighbours.
STARTS: dict[str, float | None] = {"neighbours": None, "full": 0.0, "loose": 0.3, "tight": 0.6}


@dataclass(frozen=True, slots=True)
class SetSizes:
    """At most so many sets of at most so many hosts each."""

    sets: int
    most: int


def set_sizes(hosts: int, max_sets: int | None = None) -> SetSizes:
    """How many sets there may be, and of how many hosts: as many as their numbers can tell, or as asked for."""
    group = POOLS[HEADER][0].group
    room = group.width - group.length
    bits = next((bits for bits in range(MOST_SETS.bit_length()) if hosts <= (room - bits) << bits), None)
    if bits is None:
        raise BadInput(
            f"the network has {hosts:,} hosts; labels have room for {MOST_SETS:,} sets, and no more"
        )
    if bits == 0:
        raise BadInput(
            f"the network has {hosts:,} hosts, and one set has room for {room}: there is nothing to learn"
        )
    sizes = SetSizes(min(1 << bits, max_sets or 1 << bits), room - bits)
    if sizes.sets * sizes.most < hosts:
        least = -(-hosts // sizes.most)
        raise BadInput(
            f"--max-sets is {max_sets}; {hosts:,} hosts in sets of {sizes.most} take {least}; right is {least} or more"
        )
    return sizes


def neighbour_sets(hosts: int, most: int) -> Numbers:
    """The set of each host, hosts being numbered in the order of the tree: neighbours share one."""
    return np.arange(hosts, dtype=np.int64) // most


def learn(audiences: Audiences, places: TreePlaces, sizes: SetSizes, start: str, links: float) -> Numbers:
    """The set of each host: few for each audience, and few packets over links, each of which counts `links`.

    Where neither decides, few sets are beyond each edge of the tree.
    """
    part, least = neighbour_sets(audiences.hosts, sizes.most), STARTS[start]
    if least is not None:
        given = audiences.start, audiences.host, audiences.first, audiences.audience, audiences.weight
        kernel.grow(*given, sizes.most, sizes.sets, least, part)
    more = places.beyond(SCALE * int(audiences.weight.sum()) // LOCALITY)
    if links:
        more = more.with_more(places.parted(audiences, SCALE * links))
    return improved(audiences.with_more(more, SCALE), part, sizes)


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
