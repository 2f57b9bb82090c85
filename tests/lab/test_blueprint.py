"""Names and commands of a lab."""

from __future__ import annotations

from pathlib import Path

import pytest

from flowsieve.errors import BadTopology
from flowsieve.header.address import Prefix
from flowsieve.header.tag import POOLS
from flowsieve.lab.blueprint import MAX_INTERFACE_NAME, Blueprint
from flowsieve.network.generators import fat_tree, line, ring
from flowsieve.network.topology import Topology

DIRECTORY = Path("/run/somewhere")


def test_switches_and_hosts_keep_names_that_the_machine_can_use() -> None:
    plan = Blueprint(fat_tree(4))
    assert plan.bridge("e30") == "e30"
    assert plan.interface("e30", "a31") == f"e30.{fat_tree(4).port('e30', 'a31')}"
    assert plan.namespace("h3") == "h3"


@pytest.mark.parametrize("name", ["s 1", "0", "lo", "ovs-netdev", "a/b", "Zürich", "a-switch-at-the-edge"])
def test_all_switches_are_numbered_where_one_name_would_not_do(name: str) -> None:
    plan = Blueprint(Topology.make([("s0", name)], {}))
    assert [plan.bridge("s0"), plan.bridge(name)] == ["b0", "b1"]


@pytest.mark.parametrize("name", ["h 1", "../h1", ".", "switches"])
def test_all_hosts_are_numbered_where_one_name_would_not_do(name: str) -> None:
    plan = Blueprint(Topology.make([("s1", "s2")], {"first": "s1", name: "s2"}))
    assert [plan.namespace("first"), plan.namespace(name)] == ["h0", "h1"]


def test_interface_names_are_short_and_no_two_are_alike() -> None:
    for topology in (fat_tree(6), Topology.make([("abcdefghijklmn", "m")], {}), ring(200)):
        ports = Blueprint(topology).build(DIRECTORY)["ports"]
        assert len(ports) == 2 * len(topology.links) + len(topology.hosts)
        assert max(map(len, ports)) <= MAX_INTERFACE_NAME


def test_every_wire_joins_the_ports_of_the_topology() -> None:
    orders = Blueprint(line(2)).build(DIRECTORY)
    assert orders["ports"] == {"s0.1": 1, "s0.2": 2, "s1.1": 1, "s1.2": 2}
    assert orders["switches"]["ip"][:2] == [
        "link add s0.1 type veth peer name s1.1",
        "link add s0.2 type veth peer name eth0 address 02:00:00:00:00:01 netns /run/somewhere/net/h0",
    ]


def test_hosts_have_the_addresses_of_the_topology_and_further_ones_of_their_own() -> None:
    topology = line(300)
    plan = Blueprint(topology)
    last = plan.addresses("h299")
    assert last.ipv6 == topology.endpoint("h299").address
    assert (last.ipv4, last.mac) == ("10.0.1.44", "02:00:00:00:01:2c")
    for kind in ("ipv6", "ipv4", "mac"):
        assert len({getattr(plan.addresses(host), kind) for host in topology.hosts}) == 300


def test_a_topology_with_too_many_ports_is_refused() -> None:
    with pytest.raises(BadTopology, match=r"4,003 switch ports; a lab has room for 4,000"):
        Blueprint(line(1335))


def test_what_is_not_in_the_topology_is_named_in_the_error() -> None:
    plan = Blueprint(line(2))
    with pytest.raises(BadTopology, match="there is no switch 's9'"):
        plan.bridge("s9")
    with pytest.raises(BadTopology, match="there is no host 'h9'"):
        plan.namespace("h9")


def test_the_groups_that_are_hosts_own_are_no_groups_of_tags():
    plan = Blueprint(line(300))
    groups = [tag.group for pool in POOLS.values() for tag in pool]
    seen = set()
    for host in plan.topology.hosts:
        for family, first in ((6, 0x3333), (4, 0x0100)):
            mac, address = plan.addresses(host).events(family)
            assert mac >> 32 == first
            assert not any(group.covers(address) for group in groups)
            seen.add(address)
    assert len(seen) == 2 * len(plan.topology.hosts)
    assert plan.addresses("h299").events(4) == (0x01005E00012C, Prefix.parse("224.128.1.44/32"))
