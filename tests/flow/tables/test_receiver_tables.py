"""Tables for labels: two entries for each port and set, whatever is subscribed."""

from __future__ import annotations

import pytest

from flowsieve.errors import BadInput, BadTopology
from flowsieve.flow.entry import CONTENT_TABLE, LABEL_TABLES
from flowsieve.flow.labelling import Labelling
from flowsieve.flow.tables.receiver_tables import labelled_ports
from flowsieve.header.receivers import ReceiverLabels
from flowsieve.header.tag import POOLS
from flowsieve.network.generators import fat_tree, random_connected, star
from flowsieve.network.set_trees import SetTrees
from flowsieve.network.topology import Topology
from flowsieve.network.tree import SpanningTree, center_tree, endpoints_behind

LINE = Topology.make([("s1", "s2")], {"a": "s1", "b": "s1", "c": "s2"})


def test_the_entries_of_a_small_network() -> None:
    labelling = Labelling.make(LINE)
    assert labelling.labels.sets == (("a", "b", "c"),)
    shown = [
        (flow.table, flow.priority, str(flow.match), flow.ports, flow.onward)
        for flow in sorted(labelling.tables()["s1"])
    ]
    assert shown == [
        (1, 1000, "ff1e::/16", (), 16),
        (16, 1001, "ff1e::/16", (1,), 17),
        (16, 1002, "dst ff1e::/ffff:2000::", (), 17),
        (17, 1001, "ff1e::/16", (2,), 18),
        (17, 1002, "ff1e::/17", (), 18),
        (18, 1001, "ff1e::/16", (3,), None),
        (18, 1002, "dst ff1e::/ffff:4000::", (), None),
    ]


def test_ports_to_hosts_come_after_those_to_switches_and_ports_to_nobody_have_no_table() -> None:
    topology = fat_tree(4, 64)
    tree = center_tree(topology)
    for switch in topology.switches:
        ports = labelled_ports(topology, tree)[switch]
        assert [port.table for port in ports] == list(LABEL_TABLES[: len(ports)])
        kinds = [topology.neighbour(switch, port.port) in topology.hosts for port in ports]
        assert kinds == sorted(kinds)
        right = {
            port: endpoints_behind(topology, tree, switch, port)
            for port in range(1, len(topology.neighbours(switch)) + 1)
        }
        assert {each.port: each.hosts for each in ports} == {
            port: hosts for port, hosts in right.items() if hosts
        }


def test_a_fat_tree_of_64_hosts_takes_at_most_60_entries_a_switch() -> None:
    assert max(map(len, Labelling.make(fat_tree(4, 64)).tables().values())) == 19
    assert max(map(len, Labelling.make(fat_tree(8, 64)).tables().values())) <= 60


def test_entries_are_two_for_each_port_and_set_and_one_for_each_set() -> None:
    topology = random_connected(9, extra=4, seed=5, hosts=250)
    labelling = Labelling.make(topology)
    assert len(labelling.labels.sets) == 3
    for switch, table in labelling.tables().items():
        ports = labelled_ports(topology, labelling.trees.of_set(0))[switch]
        pairs = sum(bool(port.hosts & set(row)) for port in ports for row in labelling.labels.sets)
        assert len(table) == 2 * pairs + 3
        # A packet is handed over when all that it will meet is there.
        assert [flow.table for flow in table if flow.table == CONTENT_TABLE] == [CONTENT_TABLE] * 3
        made: set[tuple[int, str]] = set()
        for flow in table:
            prefix = str(labelling.labels.group(_set_of(labelling.labels, flow.match.value)))
            assert flow.onward is None or (flow.onward, prefix) in made
            made.add((flow.table, prefix))


def _set_of(labels: ReceiverLabels, address: int) -> int:
    return next(n for n in range(len(labels.sets)) if labels.any_of(n).holds(0, address))


def test_more_ports_than_tables_are_refused() -> None:
    with pytest.raises(BadTopology, match="switch s0 sends out of 239 ports, and each takes a table"):
        Labelling.make(Topology.make([], {f"h{i}": "s0" for i in range(239)}, ["s0"])).tables()
    assert len(Labelling.make(star(200)).tables()["s0"]) > 0


def test_every_host_on_the_tree_has_a_bit_and_no_other() -> None:
    tree, tag = center_tree(LINE), POOLS["receivers"][0]
    with pytest.raises(BadInput, match="host 'c' has no bit though the tree reaches it"):
        Labelling(LINE, SetTrees((tree,)), ReceiverLabels(tag, (("a", "b"),)))
    apart = Topology.make([("s1", "s2")], {"a": "s1", "z": "s3"}, ["s1", "s2", "s3"])
    assert Labelling.make(apart).labels.sets == (("a",),)
    assert Labelling.make(apart).tables()["s3"] == ()


def test_hosts_are_put_into_sets_as_asked() -> None:
    def alone(topology: Topology, tree: SpanningTree, most: int) -> tuple[tuple[str, ...], ...]:
        return tuple((host,) for host in topology.hosts)

    labelling = Labelling.make(LINE, alone)
    assert labelling.labels.texts(["a", "c"]) == ["ff1e:2000::", "ff1e:a000::"]
