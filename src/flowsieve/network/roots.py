"""Which roots make good spanning trees: short paths between hosts, and links that share the load.

Works on the main component by number (switch i, link j), with latencies in whole nanoseconds, so that equal
paths are exactly equal and the choice does not depend on the order of additions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from flowsieve.network.topology import Topology

EVERY_ROOT = 300  # up to this many switches every one is tried as a root
CANDIDATES = 64  # beyond, this many are
SAMPLE = 32  # and chosen by their distance to this many switches with hosts
STRETCH = 1.25  # how much longer than the shortest the mean path of a tree that shares load may be
ANYWHERE = 0.01  # the share of load that is thought to be between any two switches
SETS_AT_ONCE = 64  # whose loads are worked out together
NS_PER_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class Mesh:
    """The main component of a topology: switches in order, links as (neighbour, ns, link) per switch.

    `weight` counts the hosts at each switch; where there is no pair of hosts, every switch counts as one.
    """

    names: tuple[str, ...]
    near: tuple[tuple[tuple[int, int, int], ...], ...]
    latency_ns: tuple[int, ...]
    weight: tuple[int, ...]

    @classmethod
    def of(cls, topology: Topology) -> Mesh:
        names = tuple(switch for switch in topology.switches if switch in topology.main)
        number = {switch: i for i, switch in enumerate(names)}
        near: list[list[tuple[int, int, int]]] = [[] for _ in names]
        latency_ns: list[int] = []
        for link in topology.links:
            if link.a in number:
                a, b, ns = number[link.a], number[link.b], round(link.latency_ms * NS_PER_MS)
                near[a].append((b, ns, len(latency_ns)))
                near[b].append((a, ns, len(latency_ns)))
                latency_ns.append(ns)
        weight = [0] * len(names)
        for switch in topology.attached.values():
            if switch in number:
                weight[number[switch]] += 1
        if sum(weight) < 2:
            weight = [1] * len(names)
        return cls(names, tuple(map(tuple, near)), tuple(latency_ns), tuple(weight))


@dataclass(frozen=True, slots=True)
class RootedTree:
    """The shortest paths from a root: each switch's parent and the link to it, -1 at the root.

    `order` lists the switches by distance, so that a parent comes before its children.
    """

    root: int
    parent: Sequence[int]
    uplink: Sequence[int]
    order: Sequence[int]
    distance_ns: Sequence[int]


def shortest_paths(mesh: Mesh, root: int) -> RootedTree:
    """Dijkstra by latency, then hops; among equals the parent that is reached first."""
    size = len(mesh.names)
    parent, uplink, order = [-1] * size, [-1] * size, []
    best: list[tuple[int, int] | None] = [None] * size
    best[root] = (0, 0)
    done = [False] * size
    heap = [(0, 0, root)]
    while heap:
        distance, hops, at = heappop(heap)
        if done[at]:
            continue
        done[at] = True
        order.append(at)
        for near, ns, link in mesh.near[at]:
            reach = (distance + ns, hops + 1)
            known = best[near]
            if known is None or reach < known:
                best[near] = reach
                parent[near], uplink[near] = at, link
                heappush(heap, (*reach, near))
    return RootedTree(root, parent, uplink, order, [reach[0] for reach in best if reach is not None])


def pair_loads(mesh: Mesh, tree: RootedTree) -> NDArray[np.int64]:
    """For each link, how many pairs of hosts the tree joins over it: those below times those not below."""
    below = list(mesh.weight)
    total = sum(below)
    loads = np.zeros(len(mesh.latency_ns), dtype=np.int64)
    for at in reversed(tree.order):
        if at != tree.root:
            below[tree.parent[at]] += below[at]
            loads[tree.uplink[at]] = below[at] * (total - below[at])
    return loads


def length_ns(mesh: Mesh, loads: NDArray[np.int64]) -> int:
    """The total length of the tree's paths between all pairs of hosts, by what each link contributes."""
    return sum(load * ns for load, ns in zip(loads.tolist(), mesh.latency_ns, strict=True))


@dataclass(frozen=True, slots=True, eq=False)
class RootCandidate:
    """A tree that might be chosen, and what it would cost."""

    tree: RootedTree
    loads: NDArray[np.int64]
    length_ns: int
    reach_ns: int  # from the root to all hosts: tells apart roots whose trees are the same

    @classmethod
    def of(cls, mesh: Mesh, root: int) -> RootCandidate:
        tree = shortest_paths(mesh, root)
        loads = pair_loads(mesh, tree)
        reach_ns = sum(hosts * ns for hosts, ns in zip(mesh.weight, tree.distance_ns, strict=True))
        return cls(tree, loads, length_ns(mesh, loads), reach_ns)

    @property
    def rank(self) -> tuple[int, int, int, int]:
        """Best first: short paths in time, then in hops, a root near the hosts, the order of the switches."""
        return self.length_ns, int(self.loads.sum()), self.reach_ns, self.tree.root


def rank_roots(mesh: Mesh) -> list[RootCandidate]:
    """The trees worth considering, best first."""
    candidates = (RootCandidate.of(mesh, root) for root in _promising(mesh))
    return sorted(candidates, key=lambda candidate: candidate.rank)


def spread_roots(mesh: Mesh, traffic: Sequence[float]) -> list[RootedTree]:
    """A tree for each part of the traffic, so that they share the load.

    The heaviest part has the best tree, then each in turn the one that leaves the busiest link of all least busy. Only
    trees with paths at most `STRETCH` times as long as the best tree's take part; one may come again.
    """
    ranked = rank_roots(mesh)
    short = [candidate for candidate in ranked if candidate.length_ns <= STRETCH * ranked[0].length_ns]
    loads = np.stack([candidate.loads for candidate in short]).astype(np.float64)
    total = np.zeros(loads.shape[1])
    chosen: dict[int, RootedTree] = {}
    for part in sorted(range(len(traffic)), key=lambda part: -traffic[part]):
        pick = _least_busy(total, traffic[part] * loads) if chosen else 0
        total += traffic[part] * loads[pick]
        chosen[part] = short[pick].tree
    return [chosen[part] for part in range(len(traffic))]


def spread_to_receivers(mesh: Mesh, receivers: NDArray[np.int64]) -> list[RootedTree]:
    """A tree for each set of hosts, along which all others send to it, so that they share the load.

    `receivers` has a row for each set: how many of its hosts each switch has. The largest set has its best tree, then
    each in turn the one that leaves the busiest link of all least busy; paths to a set are at most `STRETCH` times as
    long as on its best tree. A little of the load is thought to be between any two switches, since hosts may be found
    later: else few hosts would not tell trees apart.
    """
    trees = [candidate.tree for candidate in rank_roots(mesh)]
    bare = replace(mesh, weight=(1,) * len(mesh.names))
    anywhere = np.stack([pair_loads(bare, tree) for tree in trees]) * (ANYWHERE / len(mesh.names) ** 2)
    latency_ns = np.array(mesh.latency_ns, dtype=np.float64)
    order = np.argsort(-receivers.sum(axis=1), kind="stable")
    total = np.zeros(len(latency_ns))
    chosen: dict[int, RootedTree] = {}
    for first in range(0, len(order), SETS_AT_ONCE):
        some = order[first : first + SETS_AT_ONCE]
        at_once = np.stack([receiver_loads(mesh, tree, receivers[some]) for tree in trees])
        for at, part in enumerate(some.tolist()):
            lengths = at_once[:, at] @ latency_ns
            loads = at_once[:, at] + anywhere * (sum(mesh.weight) * int(receivers[part].sum()))
            short = np.flatnonzero(lengths <= STRETCH * lengths.min())
            if chosen:
                pick = int(short[_least_busy(total, loads[short])])
            else:
                pick = int(np.lexsort((loads.sum(axis=1), lengths))[0])
            total += loads[pick]
            chosen[part] = trees[pick]
    return [chosen[part] for part in range(len(receivers))]


def receiver_loads(mesh: Mesh, tree: RootedTree, receivers: NDArray[np.int64]) -> NDArray[np.float64]:
    """For each set of hosts and each link, how many pairs of any host and one of the set the tree joins over it."""
    sent, wanted = np.array(mesh.weight, dtype=np.float64), receivers.T.astype(np.float64)
    senders, hosts = sent.sum(), wanted.sum(axis=0)
    loads = np.zeros((len(receivers), len(mesh.latency_ns)))
    for at in reversed(tree.order):
        if at != tree.root:
            above = tree.parent[at]
            sent[above] += sent[at]
            wanted[above] += wanted[at]
            loads[:, tree.uplink[at]] = sent[at] * (hosts - wanted[at]) + (senders - sent[at]) * wanted[at]
    return loads


def _least_busy(total: NDArray[np.float64], loads: NDArray[np.float64]) -> int:
    """Which of some loads to add, so that the busiest link of all is least busy.

    Where the busiest link stays as it is, evenness decides; among equals the better tree comes first.
    """
    after = loads + total
    return int(np.lexsort(((after**2).sum(axis=1), after.max(axis=1, initial=0)))[0])


def _promising(mesh: Mesh) -> list[int]:
    """The switches to try as roots: all, or in a large network those near the hosts and some from everywhere.

    A tree's mean path is at most about twice the root's mean distance to the hosts, so near ones come first.
    """
    everyone = list(range(len(mesh.names)))
    if len(everyone) <= EVERY_ROOT:
        return everyone
    homes = [i for i in everyone if mesh.weight[i]]
    total = np.zeros(len(everyone))
    for home in homes[:: -(-len(homes) // SAMPLE)]:
        total += mesh.weight[home] * np.array(shortest_paths(mesh, home).distance_ns, dtype=np.float64)
    ranked: list[int] = np.argsort(total, kind="stable").tolist()
    near, others = ranked[: CANDIDATES // 2], ranked[CANDIDATES // 2 :]
    return near + others[:: -(-len(others) // (CANDIDATES // 2))]
