"""What a switch should take in, given what its hosts have advertised."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowsieve.errors import BadInput
from flowsieve.flow.guard import (
    Gate,
    Guard,
    GuardSettings,
    coarsened,
    guard_of,
    known_sources,
    most_entries,
    prefixes_within,
)
from flowsieve.flow.owner import Owner
from flowsieve.header.address import Prefix
from flowsieve.header.encoding import encoding_of
from flowsieve.index.dz import Dz
from flowsieve.index.dzset import WHOLE, DzSet
from flowsieve.network.topology import EndpointKind, Topology

NETWORK = Topology.make([("s1", "s2")], {"h1": "s1", "h2": "s1", "h3": "s2"})
ENCODING = encoding_of("ipv6")
GROUP, HALF = Prefix.parse("ff0e::/16"), Prefix.parse("ff0e::/17")
cells = st.lists(st.text("01", max_size=9).map(Dz.parse), max_size=60).map(DzSet)


def test_a_host_may_send_what_it_has_advertised_and_a_switch_everything() -> None:
    settings = GuardSettings(16, 100, known_sources(NETWORK, 6))
    guard = guard_of(NETWORK, "s1", ENCODING, {"h1": DzSet.of("0", "11"), "h3": DzSet.of("1")}, settings)
    assert guard.links == (1,)
    assert guard.gates == (
        Gate(
            2,
            Prefix.parse("fd00:f::1"),
            (Prefix.parse("ff0e::/17"), Prefix.parse("ff0e:c000::/18")),
            100,
        ),
        Gate(3, Prefix.parse("fd00:f::2"), (), 100),
    )
    assert guard.entries == 1 + 1 + 3 + 1 <= most_entries(NETWORK, 2)


def test_where_labels_stand_in_sources_a_host_may_send_from_any_that_is_a_label() -> None:
    settings, bloom = GuardSettings(16, 0, known_sources(NETWORK, 6)), encoding_of("bloom")
    guard = guard_of(NETWORK, "s1", bloom, {"h1": WHOLE}, settings)
    sources, group = Prefix.parse("fd1d::/16"), Prefix.parse("ff1d::/16")
    assert guard.gates == (Gate(2, sources, (group,)), Gate(3, sources, ()))
    with pytest.raises(BadInput, match="no host's address"):
        Gate(2, Prefix.parse("fd1c::/16"), (group,))


def test_where_hosts_are_not_guarded_all_is_taken_in() -> None:
    assert guard_of(NETWORK, "s1", ENCODING, {}, None) == Guard(GROUP)
    assert Guard(GROUP).entries == 1


def test_what_is_no_host_is_trusted_as_a_switch_is() -> None:
    topology = Topology.make([], {"h1": "s1", "north": "s1"}, ["s1"], kinds={"north": EndpointKind.BORDER})
    guard = guard_of(topology, "s1", ENCODING, {}, GuardSettings())
    assert (guard.links, [gate.port for gate in guard.gates]) == ((2,), [1])


def test_a_host_whose_address_nobody_knows_is_held_to_what_it_advertised_alone() -> None:
    guard = guard_of(NETWORK, "s2", ENCODING, {"h3": DzSet.of("1")}, GuardSettings())
    assert guard.gates == (Gate(2, None, (Prefix.parse("ff0e:8000::/17"),)),)


@given(cells, cells, st.integers(1, 8))
def test_owners_guards_are_about_their_parts_alone_and_together_take_in_what_a_sole_one_does(
    part: DzSet, offered: DzSet, most: int
) -> None:
    parts = (part, WHOLE - part)
    guards = [
        guard_of(NETWORK, "s2", ENCODING, {"h3": offered & own}, GuardSettings(most), Owner(number, own))
        for number, own in enumerate(parts, 1)
    ]
    for guard, own in zip(guards, parts, strict=True):
        assert DzSet([dz_of(each) for each in guard.within]) == own
        (gate,) = guard.gates
        admitted = DzSet([dz_of(each) for each in gate.admitted])
        assert own.covers_set(admitted) and admitted.covers_set(offered & own)
        assert admitted == offered & own or len(offered & own) > most
        assert guard.owner in (1, 2) and guard.entries == 3 * len(guard.within) + len(gate.admitted)


def dz_of(prefix: Prefix) -> Dz:
    length = prefix.length - GROUP.length
    return Dz(prefix.first >> (prefix.width - prefix.length) & (1 << length) - 1, length)


@given(cells, st.integers(1, 20))
def test_few_cells_hold_all_that_many_do_and_do_not_overlap(some: DzSet, most: int) -> None:
    few = coarsened(some, most)
    assert len(few) <= most
    assert DzSet(few).covers_set(some)
    assert not any(a.overlaps(b) for i, a in enumerate(few) for b in few[:i])
    assert len(some) > most or DzSet(few) == some


@given(st.integers(0, 200))
def test_a_guard_is_as_fine_as_fits(room: int) -> None:
    prefixes = prefixes_within(NETWORK, room)
    assert prefixes == 0 or most_entries(NETWORK, prefixes) <= room
    assert prefixes == 16 or most_entries(NETWORK, prefixes + 1) > room


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (lambda: Gate(0, None, ()), "no host is at port 0"),
        (lambda: Gate(1, GROUP, ()), "no host's address"),
        (lambda: Gate(1, None, (), -1), "are no limit"),
        (lambda: Guard(GROUP, True, links=(1,)), "an open guard has no gates"),
        (lambda: Guard(GROUP, False, (Gate(1, None, ()),), (1,)), "guarded twice"),
        (lambda: Guard(GROUP, False, (Gate(1, None, (Prefix.parse("ff15::/17"),)),)), "is not in ff0e::/16"),
        (lambda: Guard(GROUP, False, (Gate(1, None, (GROUP,)),), parts=(HALF,)), "is not in ff0e::/17"),
        (lambda: Guard(GROUP, parts=(Prefix.parse("ff15::/17"),)), "a guard is for ff15::/17"),
        (lambda: GuardSettings(0), "let nothing in"),
    ],
)
def test_what_makes_no_sense_is_refused(made, why) -> None:
    with pytest.raises(BadInput, match=why):
        made()
