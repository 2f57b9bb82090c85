from __future__ import annotations

import math
from itertools import combinations

import pytest

from flowsieve.demo.layout import lay_out, layers_of
from flowsieve.network.generators import fat_tree, generate, grid, line, ring, star, tree
from flowsieve.network.topology import Topology

KINDS = (
    "fat-tree:4,hosts=32",
    "fat-tree:6",
    "tree:3,2",
    "star:6",
    "ring:7",
    "line:5",
    "grid:4,3",
    "random:20,9",
)


def test_a_fat_tree_has_three_layers_and_a_block_per_pod() -> None:
    layout = lay_out(fat_tree(4))
    assert [name for name, _ in layout.layers] == ["edge", "aggregation", "core"]
    edge, aggregation, core = (y for _, y in layout.layers)
    assert layout.at["c0"][1] == core < layout.at["a00"][1] == aggregation < layout.at["e00"][1] == edge
    assert all(layout.at[host][1] > edge for host in fat_tree(4).hosts)
    assert [set(block) for block in layout.blocks] == [
        {f"{layer}{pod}{i}" for layer in "ea" for i in (0, 1)} for pod in range(4)
    ]


def test_hosts_stand_under_their_switch() -> None:
    topology = fat_tree(4, hosts=32)
    at = lay_out(topology).at
    for switch in layers_of(topology)[0]:
        hosts = topology.attached_at(switch)
        assert sum(at[host][0] for host in hosts) / len(hosts) == pytest.approx(at[switch][0])


def test_layers_need_links_that_go_from_one_to_the_next() -> None:
    assert [len(row) for row in layers_of(tree(2, 2))] == [4, 2, 1]
    assert [len(row) for row in layers_of(star(5))] == [4, 1]
    for flat in (ring(5), line(3), grid(3, 3), line(1, hosts=3), Topology.make([], {"h": "s"}, ["s", "t"])):
        assert layers_of(flat) == ()


@pytest.mark.parametrize("kind", KINDS)
def test_everything_has_a_place_of_its_own_within_the_picture(kind: str) -> None:
    topology = generate(kind)
    layout = lay_out(topology)
    assert set(layout.at) == {*topology.switches, *topology.hosts}
    assert all(0 <= x <= layout.width and 0 <= y <= layout.height for x, y in layout.at.values())
    assert min(math.dist(one, other) for one, other in combinations(layout.at.values(), 2)) > 8


def test_neighbours_are_drawn_nearer_than_what_is_far_in_the_network() -> None:
    at = lay_out(line(6)).at
    assert math.dist(at["s0"], at["s1"]) < math.dist(at["s0"], at["s3"]) < math.dist(at["s0"], at["s5"])


def test_a_network_in_pieces_or_without_hosts_is_drawn_as_well() -> None:
    for topology in (
        Topology.make([("a", "b"), ("c", "d")], {"h": "a"}),
        Topology.make([("a", "b")], {}),
        Topology.make([], {"g": "a", "h": "b"}, ["a", "b"]),
    ):
        assert set(lay_out(topology).at) == {*topology.switches, *topology.hosts}
