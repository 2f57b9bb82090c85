"""Sets of hosts that were chosen, as a scenario names them."""

from __future__ import annotations

import pytest

from flowsieve.errors import BadInput
from flowsieve.flow.host_sets import HostSets
from flowsieve.flow.labelling import Labelling
from flowsieve.network.locality import hosts_by_locality
from flowsieve.network.topology import Topology
from flowsieve.network.tree import center_tree

LINE = Topology.make(
    [("s1", "s2"), ("s2", "s3")], {"a": "s1", "b": "s3", "c": "s2", "d": "s1", "e": "s3"}, ["s1", "s2", "s3"]
)


def assigned(sets: HostSets, topology: Topology, most: int) -> tuple[tuple[str, ...], ...]:
    return sets.assign(topology, center_tree(topology), most)


def test_hosts_of_a_set_stand_in_the_order_of_the_tree() -> None:
    by_tree = hosts_by_locality(LINE, center_tree(LINE))
    assert by_tree != ("e", "d", "c", "b", "a")
    assert assigned(HostSets((("e", "d", "c", "b", "a"),)), LINE, 5) == (by_tree,)


def test_a_host_in_no_set_gets_a_place_near_its_switch_or_a_new_set() -> None:
    sets = HostSets((("a", "c"), ("b",)))
    assert assigned(sets, LINE, 3) == (("c", "a", "d"), ("b", "e"))
    assert assigned(sets, LINE, 2) == (("c", "a"), ("b", "e"), ("d",))


def test_what_newcomers_leave_no_room_for_goes_to_another_set() -> None:
    assert assigned(HostSets((("a", "d", "c"), ("b", "e"))), LINE, 2) == (("a", "d"), ("b", "e"), ("c",))


def test_full_sets_and_a_newcomer_get_longer_numbers() -> None:
    hosts = {f"h{i}": "s1" for i in range(222)} | {"late": "s2"}
    topology, names = Topology.make([("s1", "s2")], hosts, ["s1", "s2"]), [*hosts]
    labels = Labelling.make(topology, HostSets((tuple(names[:111]), tuple(names[111:222]))).assign).labels
    assert (len(labels.sets), labels.set_bits, len(labels.hosts)) == (3, 2, 223)
    assert max(map(len, labels.sets)) == 110


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"sets": [["a", "b"], ["b"]]}, "host 'b' is in two sets"),
        ({"sets": [["a", 3]]}, "a set is ['a', 3]"),
        ({"sets": [[]]}, "a set is []"),
        ({"sets": []}, "each host in one set"),
        ([["a"]], "each host in one set"),
        ({"sets": [[f"h{i}" for i in range(113)]]}, "a set has 113 hosts; beside the numbers of 1 sets"),
        (
            {"sets": [[f"h{i}" for i in range(112)], ["b"]]},
            "a set has 112 hosts; beside the numbers of 2 sets",
        ),
    ],
)
def test_what_are_no_sets_is_named(data: object, said: str) -> None:
    with pytest.raises(BadInput) as wrong:
        HostSets.from_json(data)
    assert said in str(wrong.value)


def test_a_host_that_the_network_has_not_is_named_with_what_to_do() -> None:
    with pytest.raises(BadInput) as wrong:
        assigned(HostSets((("a", "b2"),)), LINE, 4)
    assert "b2" in str(wrong.value)
    assert "flowsieve sets" in str(wrong.value)


def test_sets_survive_json() -> None:
    sets = HostSets((("a", "c"), ("b",)))
    assert HostSets.from_json(sets.to_json()) == sets
