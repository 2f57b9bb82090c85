"""Ways around links, what switches do for them, and where marked packets end."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowsieve.flow.detours import (
    NOWHERE,
    Arrival,
    bridged,
    edges_on,
    emulated,
    landing,
    mark_of,
    protections,
    way_around,
    ways_around,
)
from flowsieve.network.generators import fat_tree, line, ring
from flowsieve.network.mend import edges_of
from flowsieve.network.topology import Link, Topology

A_LINK = frozenset(("s0", "s1"))


@st.composite
def networks(draw: st.DrawFn) -> Topology:
    n = draw(st.integers(2, 7))
    pairs = list(combinations([f"s{i}" for i in range(n)], 2))
    links = draw(st.lists(st.sampled_from(pairs), unique=True, min_size=1))
    return Topology.make(links, {"h": "s0"}, [f"s{i}" for i in range(n)])


@given(networks(), st.data())
def test_whatever_goes_around_a_link_is_handled_at_its_far_end(
    topology: Topology, data: st.DataObject
) -> None:
    edges = sorted(map(tuple, map(sorted, edges_of(topology))))
    down = {frozenset(edge) for edge in data.draw(st.lists(st.sampled_from(edges), unique=True, max_size=2))}
    ways = ways_around(topology, edges_of(topology), down)
    held = protections(topology, ways.values())
    for edge in edges_of(topology):
        path = way_around(topology, edge, down)
        assert (edge in ways) == (path is not None)
        for near, far in permutations(edge):
            found = landing(topology, held, near, far)
            if path is None:
                assert found is None
            else:
                assert found is not None
                assert (found.switch, found.port) == (far, topology.port(far, near))
                assert edge not in edges_on(found.path) and not down.intersection(edges_on(found.path))
    assert bridged(topology, held, edges_of(topology)) == ways


def test_the_quickest_way_is_taken() -> None:
    links = [("a", "b", 1.0), ("a", "c", 9.0), ("b", "c", 9.0), ("a", "d", 1.0), ("d", "b", 1.0)]
    slow = Topology.make([Link(*link) for link in links], {})
    assert way_around(slow, frozenset("ab"), ()) == ("a", "d", "b")
    assert way_around(slow, frozenset("ab"), {frozenset("ad")}) == ("a", "c", "b")


def test_without_a_way_around_there_is_no_detour() -> None:
    assert ways_around(line(3), edges_of(line(3)), ()) == {}


def test_no_switch_takes_more_entries_than_it_may() -> None:
    network = fat_tree(4)
    all_of_them = ways_around(network, edges_of(network), ())
    assert all_of_them.keys() == edges_of(network)
    few = ways_around(network, edges_of(network), (), 12)
    assert few.keys() < all_of_them.keys()
    assert max(each.entries for each in protections(network, few.values()).values()) <= 12
    assert ways_around(network, edges_of(network), (), 2) == {}


def test_a_way_that_is_in_use_stays_while_it_can_be_used() -> None:
    network = Topology.make([("a", "b"), ("a", "c"), ("c", "b"), ("a", "d"), ("d", "b")], {})
    edge = frozenset("ab")
    assert ways_around(network, [edge], (), known={edge: ("a", "d", "b")}) == {edge: ("a", "d", "b")}
    assert ways_around(network, [edge], {frozenset("ad")}, known={edge: ("a", "d", "b")}) == {
        edge: ("a", "c", "b")
    }


def test_a_closed_port_ends_what_leads_around_its_link_at_one_end() -> None:
    network = ring(4)
    held = protections(network, ways_around(network, [A_LINK], ()).values())
    shut = {**held, "s0": held["s0"].closed_at({network.port("s0", "s1")})}
    assert not emulated(network, shut, "s0", "s1") and not emulated(network, shut, "s1", "s0")
    assert landing(network, shut, "s1", "s0") is None  # it is dropped at s0


def test_a_detour_is_no_use_over_a_link_that_is_dead() -> None:
    network = ring(4)
    held = protections(network, ways_around(network, [A_LINK], ()).values())
    assert bridged(network, held, [A_LINK], {A_LINK}) == {A_LINK: ("s0", "s3", "s2", "s1")}
    assert bridged(network, held, [A_LINK], {A_LINK, frozenset(("s2", "s3"))}) == {}


@pytest.mark.parametrize("kind", ["circle", "host", "elsewhere"])
def test_what_leads_elsewhere_is_seen(kind: str) -> None:
    network, mark = ring(4), mark_of("s0", "s1")
    held = dict(protections(network, ways_around(network, [A_LINK], ()).values()))
    came, on = Arrival(network.port("s3", "s0"), mark), network.port("s3", "s2")
    if kind == "circle":
        back = Arrival(network.port("s0", "s3"), mark)
        held["s3"] = replace(held["s3"], relays={came: network.port("s3", "s0")})
        held["s0"] = replace(held["s0"], relays={back: network.port("s0", "s3")})
    elif kind == "host":
        held["s3"] = replace(held["s3"], relays={came: network.port("s3", "h3")})
    else:
        held["s3"] = replace(held["s3"], landings={came: on})
    found = landing(network, held, "s0", "s1")
    assert found is not None
    assert found.port == (on if kind == "elsewhere" else NOWHERE)
    assert bridged(network, held, [A_LINK]) == {}


def test_of_two_links_with_one_mark_that_meet_at_a_port_one_goes_without(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Marks are few."""
    monkeypatch.setattr("flowsieve.flow.detours.mark_of", lambda near, far: 7)
    network = fat_tree(4)
    ways = ways_around(network, edges_of(network), ())
    held = protections(network, ways.values())
    assert len(ways) < len(edges_of(network))
    assert bridged(network, held, edges_of(network)) == ways
