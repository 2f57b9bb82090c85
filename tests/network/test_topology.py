"""A topology is a value that cannot be wrong."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from flowsieve.errors import BadTopology
from flowsieve.network.topology import DEFAULT_LATENCY_MS, Link, Topology

LINKS = [("s1", "s2"), ("s2", "s3"), ("s3", "s1")]
HOSTS = {"h1": "s1", "h2": "s3", "h3": "s1"}


@pytest.fixture
def triangle() -> Topology:
    return Topology.make(LINKS, HOSTS)


def test_ports_lead_to_linked_switches_first_and_then_to_hosts(triangle: Topology) -> None:
    assert triangle.switches == ("s1", "s2", "s3")
    assert triangle.neighbours("s1") == ("s2", "s3", "h1", "h3")
    assert triangle.linked("s1") == ("s2", "s3")
    assert triangle.attached_at("s1") == ("h1", "h3")


def test_port_and_neighbour_are_inverse(triangle: Topology) -> None:
    for switch in triangle.switches:
        for port, near in enumerate(triangle.neighbours(switch), 1):
            assert triangle.port(switch, near) == port
            assert triangle.neighbour(switch, port) == near


def test_an_endpoint_names_the_port_of_its_switch_and_an_address_of_its_own(triangle: Topology) -> None:
    endpoint = triangle.endpoint("h3")
    assert (endpoint.switch, endpoint.port, endpoint.address) == ("s1", 4, "fd00:f::3")
    assert len({triangle.endpoint(host).address for host in triangle.hosts}) == 3


def test_parallel_links_become_one_with_the_lowest_latency() -> None:
    topology = Topology.make([Link("a", "b", 3.0), Link("b", "a", 1.0), ("b", "c"), Link("a", "b", 2.0)], {})
    assert topology.links == (Link("a", "b", 1.0), Link("b", "c"))
    assert topology.latency_ms("b", "a") == 1.0


def test_latency_is_the_same_in_both_directions_and_default_to_a_host(triangle: Topology) -> None:
    assert triangle.latency_ms("s1", "s3") == triangle.latency_ms("s3", "s1") == DEFAULT_LATENCY_MS
    assert triangle.latency_ms("h1", "s1") == triangle.latency_ms("s1", "h1") == DEFAULT_LATENCY_MS


def test_the_main_component_has_most_switches_then_most_hosts_then_comes_first() -> None:
    links = [("a", "b"), ("c", "d"), ("e", "f")]
    assert Topology.make([*links, ("f", "g")], {"h": "a"}).main == {"e", "f", "g"}
    assert Topology.make(links, {"h1": "c", "h2": "d", "h3": "e"}).main == {"c", "d"}
    assert Topology.make(links, {}).main == {"a", "b"}


def test_hosts_outside_the_main_component_are_not_reachable() -> None:
    topology = Topology.make([("a", "b")], {"h1": "a", "h2": "lonely"}, switches=["lonely"])
    assert topology.components() == (frozenset({"lonely"}), frozenset({"a", "b"}))
    assert topology.reachable("h1")
    assert not topology.reachable("h2")


def test_one_switch_without_links_is_a_network() -> None:
    topology = Topology.make([], {"h1": "s1", "h2": "s1"}, switches=["s1"])
    assert topology.neighbours("s1") == ("h1", "h2")
    assert topology.reachable("h2")


def test_equal_networks_are_equal_and_hash_alike(triangle: Topology) -> None:
    again = Topology.make(LINKS, dict(HOSTS))
    assert again == triangle
    assert hash(again) == hash(triangle)
    assert pickle.loads(pickle.dumps(triangle)) == triangle


def test_hosts_in_another_order_have_other_ports_and_make_another_network(triangle: Topology) -> None:
    turned = Topology.make(LINKS, dict(reversed(HOSTS.items())))
    assert turned.port("s1", "h3") != triangle.port("s1", "h3")
    assert turned != triangle


def test_a_network_does_not_change_with_what_it_was_made_from() -> None:
    hosts = {"h1": "s1"}
    topology = Topology.make(LINKS, hosts)
    hosts["h2"] = "s2"
    assert dict(topology.hosts) == {"h1": "s1"}
    with pytest.raises(TypeError):
        topology.hosts["h2"] = "s2"  # type: ignore[index]


@pytest.mark.parametrize(
    ("links", "hosts", "message"),
    [
        ([("s10", "s20")], {"h1": "s11"}, "host 'h1' is at unknown switch 's11'; did you mean 's10'?"),
        ([("left", "right")], {"h1": "9"}, "unknown switch '9'; there are 'left', 'right'"),
        ([("s1", "s2")], {"s1": "s2"}, "'s1' is the name of a switch and of a host"),
        ([], {}, "the topology has no switches; right are links"),
        ([("s1", "s2"), ("s3", "s3")], {}, "link 2: switch 's3' is linked with itself"),
        (
            [("s1", "s2", "s3")],
            {},
            "link 1: a link is ('s1', 's2', 's3'); right are the names of two switches",
        ),
        ([["s1"]], {}, "link 1: a link is ['s1']"),
        (["ab"], {}, "link 1: a link is 'ab'"),
        ([("s1", 2)], {}, "link 1: the end of a link is 2; right is a name"),
        ([("s1", "")], {}, "link 1: the end of a link is ''"),
        ("s1-s2", {}, "the links are 's1-s2'; right is a list of pairs"),
        (None, {}, "the links are None; right is a list of pairs"),
        ([("s1", "s2")], ["h1"], "the hosts are ['h1']; right is a table from host to switch"),
        ([("s1", "s2")], {"h1": 1}, "the switch of host 'h1' is 1; right is a name"),
        ([("s1", "s2")], {"": "s1"}, "the name of a host is ''"),
        ([("s1", "s2")], {"h": "x" * 10_000_000}, "host 'h' is at unknown switch 'xxx"),
    ],
)
def test_a_wrong_network_is_refused_with_what_would_be_right(links: Any, hosts: Any, message: str) -> None:
    with pytest.raises(BadTopology) as caught:
        Topology.make(links, hosts)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("latency", [-1.0, float("nan"), float("inf"), 1e300, True, "1"])
def test_a_latency_is_a_number_of_milliseconds_in_range(latency: Any) -> None:
    with pytest.raises(BadTopology, match="the latency of the link 'a' - 'b' is"):
        Link("a", "b", latency)


def test_the_constructor_refuses_what_does_not_hang_together() -> None:
    with pytest.raises(BadTopology, match="leads to unknown switch 'c'"):
        Topology(("a", "b"), (Link("a", "c"),), {})
    with pytest.raises(BadTopology, match="is there twice"):
        Topology(("a", "b"), (Link("a", "b"), Link("b", "a")), {})
    with pytest.raises(BadTopology, match="'a' is named twice"):
        Topology(("a", "b", "a"), (), {})


def test_questions_about_unknown_names_are_answered_with_the_nearest(triangle: Topology) -> None:
    with pytest.raises(BadTopology, match="there is no host 'h11'; did you mean 'h1'"):
        triangle.endpoint("h11")
    with pytest.raises(BadTopology, match="there is no switch 's1x'; did you mean 's1'"):
        triangle.neighbours("s1x")
    with pytest.raises(BadTopology, match="'h2' is no neighbour of switch 's1'; there are 's2', 's3', 'h1'"):
        triangle.port("s1", "h2")
    with pytest.raises(BadTopology, match="switch 's1' has no port 5; its ports are 1 to 4"):
        triangle.neighbour("s1", 5)
    with pytest.raises(BadTopology, match="has no port 0"):
        triangle.neighbour("s1", 0)


NUMBERED = {"s1": {"s2": 17, "h1": 3}}


def test_a_switch_may_call_its_ports_as_it_likes() -> None:
    network = Topology.make([("s1", "s2")], {"h1": "s1", "h2": "s2"}, numbers=NUMBERED)
    assert network.neighbours("s1") == ("s2", "h1")
    assert [network.port("s1", near) for near in ("s2", "h1")] == [1, 2]
    assert [network.number("s1", near) for near in ("s2", "h1")] == [17, 3]
    assert [network.behind("s1", number) for number in (17, 3, 1)] == ["s2", "h1", None]
    assert [network.behind("s2", number) for number in (1, 2, 3)] == ["s1", "h2", None]


def test_numbers_are_part_of_what_a_topology_is_unless_they_are_the_ports() -> None:
    plain = Topology.make([("s1", "s2")], {"h1": "s1", "h2": "s2"})
    numbered = Topology.make([("s1", "s2")], {"h1": "s1", "h2": "s2"}, numbers=NUMBERED)
    assert plain != numbered
    assert pickle.loads(pickle.dumps(numbered)) == numbered
    same = Topology.make([("s1", "s2")], {"h1": "s1", "h2": "s2"}, numbers={"s1": {"h1": 2, "s2": 1}})
    assert (same, hash(same), same.numbers) == (plain, hash(plain), {})


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ({"s9": {}}, "unknown switch 's9' is given port numbers"),
        ({"s1": {"s2": 1}}, "that to 'h1' has none"),
        ({"s1": {"s2": 1, "h1": 2, "h2": 3}}, "a port to 'h2', and that is no neighbour"),
        ({"s1": {"s2": 4, "h1": 4}}, "port 4 of switch 's1' leads to 's2' and to 'h1'"),
        ({"s1": {"s2": 0, "h1": 4}}, "is 0; right is a whole number from 1"),
        ({"s1": {"s2": True, "h1": 4}}, "is True; right is a whole number from 1"),
    ],
)
def test_numbers_that_cannot_be_are_refused(numbers: dict[str, dict[str, int]], text: str) -> None:
    with pytest.raises(BadTopology, match=text):
        Topology.make([("s1", "s2")], {"h1": "s1", "h2": "s2"}, numbers=numbers)
