"""Generated topologies have the shape that their name says."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from flowsieve.errors import BadTopology
from flowsieve.network.generators import (
    GENERATORS,
    fat_tree,
    generate,
    grid,
    line,
    random_connected,
    ring,
    star,
    tree,
)
from flowsieve.network.topology import Topology

FAT_TREE = Path(__file__).parents[2].parent / "shared" / "acceptance" / "fat-tree-rich" / "scenario.toml"


def degrees(topology: Topology) -> dict[int, int]:
    """How many switches have how many links."""
    return dict(Counter(len(topology.linked(switch)) for switch in topology.switches))


@pytest.mark.skipif(not FAT_TREE.is_file(), reason="../shared/acceptance/fat-tree-rich is not here")
def test_the_fat_tree_is_that_of_the_acceptance_scenario() -> None:
    network = tomllib.loads(FAT_TREE.read_text())["network"]
    made, given = fat_tree(4), Topology.make(network["links"], network["hosts"])
    assert made.links == given.links
    assert set(made.hosts) == set(given.hosts)
    assert Counter(made.hosts.values()) == Counter(given.hosts.values())


def test_a_fat_tree_uses_every_port_of_every_switch() -> None:
    for k in (2, 4, 8, 24):
        topology = fat_tree(k)
        assert len(topology.switches) == k * k + (k // 2) ** 2
        assert {len(topology.neighbours(switch)) for switch in topology.switches} == {k}
        assert topology.main == set(topology.switches)


def test_hosts_are_dealt_round_robin_to_the_edge() -> None:
    topology = fat_tree(4, hosts=64)
    assert Counter(topology.hosts.values()) == {f"e{pod}{i}": 8 for pod in range(4) for i in range(2)}
    assert [topology.hosts[f"h{i}"] for i in range(3)] == ["e00", "e01", "e10"]


@pytest.mark.parametrize(
    ("topology", "expected"),
    [
        (line(1), {0: 1}),
        (line(5), {1: 2, 2: 3}),
        (ring(6), {2: 6}),
        (star(7), {6: 1, 1: 6}),
        (tree(3, 2), {2: 1, 3: 6, 1: 8}),
        (tree(1, 4), {4: 1, 1: 4}),
        (grid(3, 4), {2: 4, 3: 6, 4: 2}),
        (grid(1, 3), {1: 2, 2: 1}),
    ],
)
def test_each_shape_has_its_degrees(topology: Topology, expected: dict[int, int]) -> None:
    assert degrees(topology) == expected
    assert topology.switches == tuple(f"s{i}" for i in range(len(topology.switches)))
    assert topology.main == set(topology.switches)


def test_hosts_are_at_the_leaves_of_trees_and_stars() -> None:
    assert dict(star(4).hosts) == {"h0": "s1", "h1": "s2", "h2": "s3"}
    assert set(tree(2, 3).hosts.values()) == {f"s{i}" for i in range(4, 13)}


def test_a_random_network_is_connected_has_its_links_and_follows_its_seed() -> None:
    for n, extra, seed in ((1, 0, 0), (2, 0, 1), (20, 12, 2), (10, 36, 3), (10, 35, 4), (200, 300, 5)):
        topology = random_connected(n, extra, seed)
        assert topology.main == {f"s{i}" for i in range(n)}
        assert len(topology.links) == n - 1 + extra
        assert topology == random_connected(n, extra, seed)
    assert random_connected(20, 5, 1) != random_connected(20, 5, 2)


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("fat-tree", lambda: fat_tree(4)),
        ("fat-tree:4", lambda: fat_tree(4)),
        ("fat-tree:4,hosts=64", lambda: fat_tree(4, hosts=64)),
        ("fat-tree:hosts=3", lambda: fat_tree(4, hosts=3)),
        ("ring:20", lambda: ring(20)),
        ("line:3", lambda: line(3)),
        ("star:3,hosts=0", lambda: star(3, hosts=0)),
        ("tree:3,2", lambda: tree(3, 2)),
        ("tree:3", lambda: tree(3)),
        ("grid:4,3", lambda: grid(4, 3)),
        ("random:20,10,seed=7", lambda: random_connected(20, 10, 7)),
    ],
)
def test_a_word_on_the_command_line_makes_a_topology(text: str, made: Callable[[], Topology]) -> None:
    assert generate(text) == made()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "fattree:4",
            "there is no topology 'fattree'; did you mean 'fat-tree'?; there are fat-tree:k=4, ring:n",
        ),
        ("", "there is no topology ''"),
        ("ring", "'ring' does not say n; right is ring:n"),
        ("ring:x", "in 'ring:x', n is 'x'; right is a whole number"),
        ("ring:-3", "n is '-3'; right is a whole number"),
        ("ring:", "'ring:' does not say n"),
        ("ring:5,", "in 'ring:5,', hosts is ''"),
        ("ring:2", "ring: n is 2; right is a whole number of at least 3"),
        ("ring:5,3,9", "has too many numbers; right is ring:n"),
        ("ring:5,host=3", "'host' is no setting of ring; did you mean 'hosts'?"),
        ("ring:5,n=6", "'n' is given twice"),
        ("fat-tree:5", "fat-tree: k is 5; half of a switch's ports lead up, so right is an even number"),
        ("fat-tree:100000000", "right are at most 10,000"),
        ("tree:1000000000,2", "right are at most 10,000"),
        ("grid:0,3", "grid: width is 0"),
        ("random:4,4", "random: extra is 4; 4 switches take at most 3 links beyond a tree"),
        ("ring:5,hosts=1000000", "right are at most 100,000"),
        ("ring:" + "9" * 10_000, "right is a whole number"),
    ],
)
def test_a_wrong_word_is_refused_with_what_there_is(text: str, message: str) -> None:
    with pytest.raises(BadTopology) as caught:
        generate(text)
    assert message in str(caught.value)


def test_an_unknown_kind_is_answered_with_all_kinds() -> None:
    with pytest.raises(BadTopology) as caught:
        generate("moebius:3")
    assert all(kind in str(caught.value) for kind in GENERATORS)
