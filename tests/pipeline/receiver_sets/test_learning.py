"""Sets learned from audiences."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import plain_sets
import pytest
from plan_workloads import SCHEMA, events_of, filters_of

from flowsieve.network.generators import fat_tree, line
from flowsieve.network.locality import hosts_by_locality
from flowsieve.network.tree import center_tree, endpoints_behind
from flowsieve.pipeline.matching.boxes import BoxTable
from flowsieve.pipeline.receiver_sets import set_kernel as kernel
from flowsieve.pipeline.receiver_sets.audiences import Audiences
from flowsieve.pipeline.receiver_sets.host_wants import HostWants
from flowsieve.pipeline.receiver_sets.learning import STARTS, SetSizes, improved, learn
from flowsieve.pipeline.receiver_sets.tree_places import TreePlaces


def drawn(seed: int, hosts: int = 11, number: int = 25) -> Audiences:
    dice = np.random.default_rng(seed)
    groups = [sorted(dice.permutation(hosts)[: dice.integers(1, 6)].tolist()) for _ in range(number)]
    return Audiences.of(hosts, groups, dice.integers(1, 9, number).tolist())


def nowhere(hosts: int) -> TreePlaces:
    """Hosts of which nothing is known where they are."""
    return TreePlaces(hosts, np.zeros(0, np.int64), np.zeros(0, np.int64))


def of_kernel(audiences: Audiences) -> tuple[np.ndarray, ...]:
    return audiences.start, audiences.host, audiences.first, audiences.audience, audiences.weight


@pytest.mark.parametrize("seed", range(12))
def test_the_kernel_grows_and_improves_as_its_twin_does(seed: int) -> None:
    audiences, dice = drawn(seed), np.random.default_rng(seed)
    most, sets, least = 3 + seed % 3, 4 + seed % 2, (0.0, 0.3, 0.6)[seed % 3]
    part = np.empty(audiences.hosts, np.int64)
    kernel.grow(*of_kernel(audiences), most, sets, least, part)
    assert part.tolist() == plain_sets.grow(audiences, most, sets, least)
    assert audiences.cost(part) == plain_sets.cost(audiences, part)
    size = np.bincount(part, minlength=sets).astype(np.int64)
    counts = kernel.count_touched(audiences.start, audiences.host, part, sets)
    ties = kernel.sum_ties(audiences.start, audiences.host, audiences.weight, part, counts)
    plain = part.tolist()
    for _ in range(3):
        order = dice.permutation(audiences.hosts)
        saved = kernel.improve(order, most, *of_kernel(audiences), part, size, counts, ties)
        assert saved == plain_sets.improve(audiences, order.tolist(), most, sets, plain)
        assert part.tolist() == plain
    assert max(size) <= most


@pytest.mark.parametrize("start", STARTS)
def test_hosts_with_common_interests_come_together(start: str) -> None:
    hosts, groups = (
        24,
        [[g + 4 * i for i in range(6)] for g in range(4)],
    )  # every fourth host, so no neighbours
    dice = np.random.default_rng(1)
    some = [sorted(dice.permutation(group)[:3].tolist()) for group in groups for _ in range(30)]
    audiences = Audiences.of(hosts, some, [1] * len(some))
    part = learn(audiences, nowhere(hosts), SetSizes(4, 6), start, 0.1)
    assert audiences.cost(part) == len(some)  # a packet each
    assert all(len({part[host] for host in group}) == 1 for group in groups)


def test_no_set_gets_too_large_and_what_is_learned_costs_no_more_than_the_start() -> None:
    audiences, sizes = drawn(5, 60, 400), SetSizes(8, 9)
    for start in STARTS:
        part = learn(audiences, nowhere(60), sizes, start, 0.0)
        assert max(np.bincount(part)) <= sizes.most
        assert part.max() < sizes.sets
    begin = np.arange(60, dtype=np.int64) // 9
    assert audiences.cost(improved(audiences, begin, sizes)) < audiences.cost(begin)


def test_places_decide_where_interests_do_not() -> None:
    topology = line(6, 12)
    tree = center_tree(topology)
    hosts = hosts_by_locality(topology, tree)
    beyond = TreePlaces.of(hosts, topology, tree).beyond(1_000)
    mixed = np.arange(len(hosts), dtype=np.int64) % 3
    part = improved(beyond, mixed, SetSizes(3, 4))
    assert beyond.cost(part) < beyond.cost(mixed)


def test_places_are_the_hosts_beyond_each_edge_of_the_tree() -> None:
    topology = fat_tree(4, 40)
    tree = center_tree(topology)
    hosts = hosts_by_locality(topology, tree)
    places = TreePlaces.of(hosts, topology, tree)
    found = {frozenset(hosts[low:high]) for low, high in zip(places.low, places.high, strict=True)}
    edges = [(a, b) if tree.parent.get(b) == a else (b, a) for a, b in tree.edges]
    beyond = {endpoints_behind(topology, tree, up, topology.port(up, down)) for up, down in edges}
    assert found == beyond - {frozenset()}
    start, above = places.above()
    assert [
        {frozenset(hosts[places.low[e] : places.high[e]]) for e in above[first:last]}
        for first, last in pairwise(start)
    ] == [{group for group in found if host in group} for host in hosts]


def test_what_links_count_is_weighed_against_packets() -> None:
    """Two groups of common interest at each end of a line: with links that cost much, neighbours stay together."""
    places = TreePlaces(8, np.array([0, 4]), np.array([4, 8]))
    pairs = [[host, host + 4] for host in range(4)]  # each wants what somebody at the other end wants
    near = [[0, 1], [2, 3], [4, 5], [6, 7]]
    audiences = Audiences.of(8, pairs + near, [30] * 4 + [10] * 4)
    free = learn(audiences, places, SetSizes(2, 4), "neighbours", 0.0)
    dear = learn(audiences, places, SetSizes(2, 4), "neighbours", 9.0)
    assert audiences.cost(free) < audiences.cost(dear)
    apart = places.parted(audiences, 1.0)
    assert apart.cost(dear) <= apart.cost(free)


def test_audiences_are_the_hosts_whose_subscriptions_match_but_for_the_publisher() -> None:
    filters, events = filters_of(3, 40), events_of(4, 300)
    home = np.arange(40, dtype=np.int64) % 7
    source = np.arange(300, dtype=np.int64) % 9 - 1
    boxes = BoxTable.of(SCHEMA, filters)
    wants = HostWants(tuple("abcdefg"), boxes, home)
    ((begin, host),) = wants.listed(events, source)
    plain = plain_sets.audiences_of(boxes.matches(boxes.points(events)), home.tolist(), source.tolist())
    assert [host[a:b].tolist() for a, b in pairwise(begin)] == plain
    parts = np.stack([np.arange(7) // 2, np.arange(7) % 3]).astype(np.int64)
    places = TreePlaces(7, np.array([0, 2, 3]), np.array([5, 4, 7]))
    packets, crossings = np.zeros(2, np.int64), np.zeros(2, np.int64)
    kernel.count_packets(begin, host, parts, 4, *places.above(), len(places), packets, crossings)
    edges = [range(low, high) for low, high in zip(places.low, places.high, strict=True)]
    assert crossings.tolist() == [
        sum(len({way[h] for h in group if h in edge}) for group in plain for edge in edges)
        for way in parts.tolist()
    ]
    assert packets.tolist() == [
        sum(len({way[h] for h in group}) for group in plain) for way in parts.tolist()
    ]
