"""Which hosts a publisher may address, and what that makes of the labels that its port takes in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowsieve.errors import BadInput
from flowsieve.flow.guard import GuardSettings, guard_of, labels_of, sets_within
from flowsieve.flow.send_policy import EVERYBODY, MaySend, SendPolicy
from flowsieve.header.encoding import encoding_of
from flowsieve.header.receivers import ReceiverLabels
from flowsieve.header.tag import POOLS
from flowsieve.index.dzset import WHOLE
from flowsieve.network.host_places import HostPlaces
from flowsieve.network.topology import Topology

HOSTS = ("cam1", "cam2", "desk1", "desk2", "x")
NETWORK = Topology.make([("s1", "s2")], {host: "s1" if host < "d" else "s2" for host in HOSTS})
LABELS = ReceiverLabels(POOLS["receivers"][0], (("cam1", "cam2", "desk1"), ("desk2", "x")), 4)
names = st.sampled_from((*HOSTS, "cam*", "*", "desk?", "[cx]*"))
some = st.lists(names, min_size=1, max_size=3).map(tuple)
policies = st.lists(st.builds(MaySend, some, some), max_size=4).map(tuple).map(SendPolicy)


def policy(*rules: tuple[str, str]) -> SendPolicy:
    return SendPolicy(tuple(MaySend(tuple(a.split()), tuple(b.split())) for a, b in rules))


def test_a_host_may_address_whom_a_rule_lets_it_and_nobody_without_one() -> None:
    rules = policy(("cam*", "desk1 desk2"), ("cam1 x", "c?m2"))
    assert rules.reached("cam1", HOSTS) == ["cam2", "desk1", "desk2"]
    assert rules.reached("cam2", HOSTS) == ["desk1", "desk2"]
    assert rules.reached("x", HOSTS) == ["cam2"]
    assert rules.reached("desk1", HOSTS) == []
    assert EVERYBODY.reached("anybody", HOSTS) == list(HOSTS)


@given(policies, policies, st.sampled_from(HOSTS), st.sampled_from(HOSTS))
def test_either_of_two_policies_lets_a_host_do_what_one_of_them_does(
    one: SendPolicy, other: SendPolicy, sender: str, receiver: str
) -> None:
    both = one.allows(sender, receiver) or other.allows(sender, receiver)
    assert (one | other).allows(sender, receiver) is both
    assert (one | EVERYBODY).open and SendPolicy.from_json(one.to_json()) == one


@given(policies, st.sampled_from(HOSTS), st.sets(st.sampled_from(HOSTS), min_size=1))
def test_a_port_takes_in_exactly_the_labels_that_name_nobody_whom_its_host_may_not_address(
    rules: SendPolicy, sender: str, receivers: set[str]
) -> None:
    admitted = labels_of([sender], LABELS, rules)[sender]
    assert len(admitted) <= len(LABELS.sets)
    for address in LABELS.addresses(receivers):
        named = LABELS.receivers(address)
        taken = any(address & each.mask == each.value for each in admitted)
        assert taken is all(rules.allows(sender, host) for host in named)


def test_a_guard_has_an_entry_for_each_set_and_only_for_hosts_that_have_advertised() -> None:
    labels = labels_of(["cam1"], LABELS, policy(("cam*", "desk*")))
    guard = guard_of(
        NETWORK, "s1", encoding_of("receivers"), {"cam1": WHOLE}, GuardSettings(), allowed=labels
    )
    one, two = guard.gates
    assert [str(each) for each in one.admitted] == ["ff1e::/ffff:fc00::", "ff1e:1000::/ffff:f400::"]
    assert two.admitted == ()
    assert guard.entries == 1 + 1 + 2 + 2


def test_the_sets_of_a_network_are_not_more_than_is_counted_for_them() -> None:
    for hosts in (1, 102, 108, 109, 900, 1700):
        topology = Topology.make([], {f"h{n}": "s1" for n in range(hosts)}, ["s1"])
        assert len(HostPlaces().extended(topology).sets) <= sets_within(topology)


def test_a_name_that_no_host_has_is_told_and_a_pattern_may_be_for_those_to_come() -> None:
    policy(("cam*", "new*")).check(HOSTS)
    with pytest.raises(BadInput, match="names host 'dsk1', and there is none; did you mean 'desk1'"):
        policy(("cam*", "dsk1")).check(HOSTS)
    with pytest.raises(BadInput, match="a rule has hosts that may send"):
        MaySend((), ("x",))
