"""Whether hosts are guarded: as an operator says, or as there is room."""

from __future__ import annotations

from flowsieve.flow.guard import MOST_PREFIXES, most_entries
from flowsieve.header.address import Prefix
from flowsieve.network.topology import Topology
from flowsieve.serving.guarding import AUTO, guard_entries, guarding, prefixes_for

NETWORK = Topology.make([("s1", "s2")], {f"h{n}": "s1" for n in range(10)})


def test_without_a_capacity_hosts_are_guarded_unless_somebody_says_no() -> None:
    assert prefixes_for(AUTO, NETWORK, None) == prefixes_for(True, NETWORK, None) == MOST_PREFIXES
    assert prefixes_for(False, NETWORK, None) == 0


def test_where_tables_are_small_a_guard_has_a_tenth_of_them_or_is_left_out() -> None:
    assert prefixes_for(AUTO, NETWORK, 2000) == MOST_PREFIXES
    assert prefixes_for(AUTO, NETWORK, 500) == 3
    assert guard_entries(AUTO, NETWORK, 500) == most_entries(NETWORK, 3) <= 50
    assert prefixes_for(AUTO, NETWORK, 200) == 0
    assert guard_entries(AUTO, NETWORK, 200) == 1


def test_a_guard_that_is_wanted_takes_what_it_needs() -> None:
    assert prefixes_for(True, NETWORK, 200) == 1


def test_how_hosts_are_guarded_follows_the_network() -> None:
    one = Topology.make([], {"h1": "s1"}, ["s1"])
    settings = guarding(AUTO, 7, 200, lambda network: {host: Prefix(6, 0, 128) for host in network.hosts})
    assert settings(NETWORK) is None
    now = settings(one)
    assert now is not None and (now.rate, set(now.sources)) == (7, {"h1"})
    assert settings(one) is now
