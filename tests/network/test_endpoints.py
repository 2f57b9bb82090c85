"""Endpoints have kinds: hosts get events by their own groups and show tokens; borders and servers do not."""

from __future__ import annotations

import pickle

import pytest

from flowsieve.errors import BadTopology
from flowsieve.flow.last_hop import deliveries_of
from flowsieve.header.host_groups import host_addresses
from flowsieve.network.topology import EndpointKind, Topology
from flowsieve.network.topology_json import topology_from_json, topology_to_json

KINDS = {"north": EndpointKind.BORDER, "f1": EndpointKind.SERVER}
NETWORK = Topology.make([("s1", "s2")], {"h1": "s1", "north": "s1", "f1": "s2", "h2": "s2"}, kinds=KINDS)


def test_what_is_attached_has_a_port_of_its_own_whatever_it_is() -> None:
    assert NETWORK.neighbours("s1") == ("s2", "h1", "north")
    assert NETWORK.attached_at("s2") == ("f1", "h2")
    assert {name: NETWORK.endpoint(name).kind.value for name in NETWORK.attached} == {
        "h1": "host",
        "north": "border",
        "f1": "server",
        "h2": "host",
    }


def test_hosts_are_those_endpoints_that_are_hosts() -> None:
    assert dict(NETWORK.hosts) == {"h1": "s1", "h2": "s2"}


def test_only_hosts_are_readdressed_at_the_last_hop() -> None:
    readdressed = {
        NETWORK.neighbour(switch, port)
        for switch, ports in deliveries_of(NETWORK, 6).items()
        for port in ports
    }
    assert readdressed == {"h1", "h2"}


def test_the_kind_of_an_endpoint_changes_no_address_of_a_host() -> None:
    plain = Topology.make([("s1", "s2")], dict(NETWORK.attached))
    assert host_addresses(NETWORK) == {host: host_addresses(plain)[host] for host in NETWORK.hosts}


def test_networks_that_differ_in_kinds_are_not_equal() -> None:
    assert Topology.make([("s1", "s2")], dict(NETWORK.attached)) != NETWORK


@pytest.mark.parametrize(
    "copied", [lambda it: pickle.loads(pickle.dumps(it)), lambda it: topology_from_json(topology_to_json(it))]
)
def test_kinds_are_kept_by_copies(copied) -> None:
    assert copied(NETWORK) == NETWORK
    assert copied(NETWORK).endpoint("north").kind is EndpointKind.BORDER


def test_a_kind_without_an_endpoint_is_told() -> None:
    with pytest.raises(BadTopology, match="'nroth' is of a kind, and attached nowhere; did you mean 'north'"):
        Topology.make([("s1", "s2")], {"north": "s1"}, kinds={"nroth": EndpointKind.BORDER})
