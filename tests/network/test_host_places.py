"""A host's place never changes, whatever is found later."""

from __future__ import annotations

import pytest

from flowsieve.errors import BadInput, BadTopology
from flowsieve.header.receivers import ReceiverLabels
from flowsieve.header.tag import POOLS
from flowsieve.matcher.filter_index import RECEIVERS
from flowsieve.network.host_places import MOST_NUMBERS, HostPlaces, most_spread
from flowsieve.network.topology import Link, Topology

TAG = POOLS["receivers"][0]


def star(hosts: int) -> Topology:
    return Topology.make([Link("s0", "s1")], {f"h{n:04}": f"s{n % 2}" for n in range(hosts)})


def test_hosts_that_are_found_later_come_behind_those_that_were_there() -> None:
    first = HostPlaces().extended(star(10))
    then = first.extended(star(300))
    assert then.sets[0][:10] == first.sets[0]
    assert [then.number(host) for host in star(10).hosts] == [first.number(host) for host in star(10).hosts]
    assert sorted(host for row in then.sets for host in row) == sorted(star(300).hosts)
    assert then.extended(star(300)) == then


def test_a_number_says_which_bit_of_which_set_a_host_has() -> None:
    sets = HostPlaces().extended(star(300))
    labels = ReceiverLabels(TAG, sets.sets, sets.number_bits)
    room = 112 - sets.number_bits
    for host in ("h0000", "h0107", "h0299"):
        number = sets.number(host)
        assert labels.addresses([host]) == [TAG.group.first | number // room << room | 1 << number % room]


def test_a_network_may_grow_to_twice_what_it_was_and_no_further() -> None:
    many = HostPlaces(address_bits=8).extended(star(40))  # four bits for sets, four for hosts
    assert many.number_bits == 5
    with pytest.raises(BadTopology, match="room for 96, as was decided when the first were found"):
        many.extended(star(97))


def test_sets_can_be_written_down() -> None:
    sets = HostPlaces().extended(star(300))
    assert HostPlaces.from_json(sets.to_json()) == sets
    with pytest.raises(ValueError, match="no sets of hosts"):
        HostPlaces.from_json(["four", []])


def test_chosen_sets_have_places_for_hosts_that_are_not_found_yet() -> None:
    chosen = HostPlaces.chosen((("h0003", "later"), ("h0001",)), 3)
    there = chosen.extended(star(3))
    assert there.sets[0][:2] == ("h0003", "later")
    assert there.sets == (("h0003", "later", "h0000", "h0002"), ("h0001",))  # the first set that has room
    assert there.extended(star(5)).sets[1] == ("h0001",)
    grown = there.extended(star(6))
    assert grown.sets[1] == ("h0001",) or grown.number("h0001") == there.number("h0001")
    assert {host: grown.number(host) for host in ("h0000", "h0001", "h0003")} == {
        host: there.number(host) for host in ("h0000", "h0001", "h0003")
    }
    assert grown.begin_with([["h0003", "later"], ["h0001"]])
    assert not grown.begin_with([["h0001"], ["h0003", "later"]])
    assert not grown.begin_with([["h0003"], ["h0001"], ["new"]])


def test_a_host_that_is_found_later_joins_those_of_its_switch() -> None:
    there = HostPlaces.chosen((("h0000", "h0002"), ("h0001", "h0003")), 4).extended(star(6))
    assert there.sets == (("h0000", "h0002", "h0004"), ("h0001", "h0003", "h0005"))


def test_chosen_sets_are_no_larger_and_no_more_than_can_be_served() -> None:
    full = tuple(f"x{n}" for n in range(112))
    assert len(HostPlaces.chosen((full,), 0).sets[0]) == 108
    with pytest.raises(BadInput, match="hosts are in 40 sets; a controller serves 19 at most"):
        HostPlaces.chosen(tuple((f"x{n}",) for n in range(40)), 40)
    assert MOST_NUMBERS <= RECEIVERS


def test_hosts_are_spread_over_as_many_sets_as_are_to_have_trees() -> None:
    first = HostPlaces(spread=4).extended(star(10))
    assert [len(row) for row in first.sets] == [3, 3, 3, 1]
    assert HostPlaces.from_json(first.to_json()) == first
    then = first.extended(star(200))
    assert {host: then.number(host) for host in star(10).hosts} == {
        host: first.number(host) for host in star(10).hosts
    }
    assert len(then.sets) == 4 and max(map(len, then.sets)) <= 100
    assert then.extended(star(600)).sets[4:]  # where there is no room left, others come
    assert [then.set_of(host) for host in ("h0000", "h0199")] == [
        next(at for at, row in enumerate(then.sets) if host in row) for host in ("h0000", "h0199")
    ]


def test_hosts_that_are_found_one_by_one_are_spread_as_well_and_join_those_of_their_switch() -> None:
    places = HostPlaces(spread=4)
    for hosts in range(1, 65):
        places = places.extended(star(hosts))
    sizes = [len(row) for row in places.sets]
    assert len(sizes) == 4 and max(sizes) <= 24
    alone = sum(len({int(host[1:]) % 2 for host in row}) == 1 for row in places.sets)
    assert alone >= 2  # sets of hosts of one switch


def test_there_are_no_more_sets_with_trees_than_a_matcher_can_tell_apart() -> None:
    most = most_spread()
    full = HostPlaces(spread=most).extended(star(1000))
    assert len(full.sets) == most
    assert max(map(full.number, star(1000).hosts)) < MOST_NUMBERS
    with pytest.raises(BadTopology, match="room for"):
        HostPlaces(spread=most + 1).extended(star(1000))
    with pytest.raises(BadInput, match="sets; a controller serves"):
        HostPlaces.chosen([["a"]] * 20, 20)
