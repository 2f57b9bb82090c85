"""Sets learned from audiences."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import plain_sets
import pytest
from plan_workloads import SCHEMA, events_of, filters_of

from flowsieve.network.generators import line
from flowsieve.network.locality import hosts_by_locality
from flowsieve.network.tree import center_tree
from flowsieve.pipeline.matching.boxes import BoxTable
from flowsieve.pipeline.receiver_sets import set_kernel as kernel
from flowsieve.pipeline.receiver_sets.audiences import Audiences, subtrees
from flowsieve.pipeline.receiver_sets.host_wants import HostWants
from flowsieve.pipeline.receiver_sets.learning import STARTS, SetSizes, improved, learn


def drawn(seed: int, hosts: int = 11, number: int = 25) -> Audiences:
    dice = np.random.default_rng(seed)
    groups = [sorted(dice.permutation(hosts)[: dice.integers(1, 6)].tolist()) for _ in range(number)]
    return Audiences.of(hosts, groups, dice.integers(1, 9, number).tolist())


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
    audiences, none = Audiences.of(hosts, some, [1] * len(some)), Audiences.of(hosts, [], [])
    part = learn(audiences, none, SetSizes(4, 6), start)
    assert audiences.cost(part) == len(some)  # a packet each
    assert all(len({part[host] for host in group}) == 1 for group in groups)


def test_no_set_gets_too_large_and_what_is_learned_costs_no_more_than_the_start() -> None:
    audiences, sizes = drawn(5, 60, 400), SetSizes(8, 9)
    for start in STARTS:
        part = learn(audiences, Audiences.of(60, [], []), sizes, start)
        assert max(np.bincount(part)) <= sizes.most
        assert part.max() < sizes.sets
    begin = np.arange(60, dtype=np.int64) // 9
    assert audiences.cost(improved(audiences, begin, sizes)) < audiences.cost(begin)


def test_places_decide_where_interests_do_not() -> None:
    topology = line(6, 12)
    tree = center_tree(topology)
    hosts = hosts_by_locality(topology, tree)
    places = subtrees(hosts, topology, tree, 1_000)
    nobody = Audiences.of(len(hosts), [], [])
    mixed = np.arange(len(hosts), dtype=np.int64) % 3
    part = improved(nobody.with_more(places, 1_000), mixed, SetSizes(3, 4))
    assert places.cost(part) < places.cost(mixed)
    assert places.cost(learn(nobody, places, SetSizes(3, 4), "neighbours")) <= places.cost(part)


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
    packets = np.zeros(2, np.int64)
    kernel.count_packets(begin, host, parts, 4, packets)
    assert packets.tolist() == [
        sum(len({way[h] for h in group}) for group in plain) for way in parts.tolist()
    ]
