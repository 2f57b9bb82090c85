"""A host's place never changes, whatever is found later."""

from __future__ import annotations

import pytest

from flowsieve.errors import BadTopology
from flowsieve.header.receivers import ReceiverLabels
from flowsieve.header.tag import POOLS
from flowsieve.network.host_places import HostPlaces
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
