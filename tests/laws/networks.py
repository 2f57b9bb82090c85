"""Small random networks and interests, for the laws."""

from __future__ import annotations

from hypothesis import strategies as st

from flowsieve.index.dz import Dz
from flowsieve.index.dzset import DzSet
from flowsieve.network.topology import Topology
from flowsieve.network.tree import SpanningTree

DEPTH = 4


@st.composite
def topologies(draw: st.DrawFn, switches: int = 5, hosts: int = 5, extra: int = 2) -> Topology:
    n = draw(st.integers(1, switches))
    links = [(f"s{i}", f"s{draw(st.integers(0, i - 1))}") for i in range(1, n)]
    for _ in range(draw(st.integers(0, extra if n > 2 else 0))):
        a, b = draw(st.integers(0, n - 1)), draw(st.integers(0, n - 1))
        if a != b:
            links.append((f"s{a}", f"s{b}"))
    homes = draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=hosts))
    return Topology.make(
        links, {f"h{i}": f"s{home}" for i, home in enumerate(homes)}, [f"s{i}" for i in range(n)]
    )


@st.composite
def cells(draw: st.DrawFn, depth: int = DEPTH) -> Dz:
    length = draw(st.integers(0, depth))
    return Dz(draw(st.integers(0, 2**length - 1)), length)


def dz_sets(depth: int = DEPTH) -> st.SearchStrategy[DzSet]:
    return st.lists(cells(depth), min_size=1, max_size=3).map(DzSet.of)


def finest(part: Dz, depth: int = DEPTH) -> list[Dz]:
    """All cells of the finest level inside a dz."""
    gap = depth - part.length
    return [Dz(part.bits << gap | i, depth) for i in range(1 << gap)]


def mean_distance_ms(topology: Topology, tree: SpanningTree) -> float:
    """The mean latency on the tree between two of its hosts (or switches, without hosts).

    The hosts' own links are left out. Each link contributes its latency for every pair that it separates.
    """
    below = {switch: len(topology.attached_at(switch)) for switch in tree.switches}
    if sum(below.values()) < 2:
        below = dict.fromkeys(tree.switches, 1)
    total = sum(below.values())
    length_ms = 0.0
    for parent, child in reversed(tree.edges):
        length_ms += below[child] * (total - below[child]) * topology.latency_ms(parent, child)
        below[parent] += below[child]
    return length_ms / max(1, total * (total - 1) // 2)
