"""Partitions are split where requests are and joined where that costs entries, and no step undoes the one before."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowsieve.control.partitions.adaptation import AdaptationSettings, Join, Split, adapted
from flowsieve.errors import BadInput
from flowsieve.index.dz import WHOLE_SPACE, Dz
from flowsieve.index.dzset import DzSet

EVEN = AdaptationSettings()


def named(**some: float) -> dict[Dz, float]:
    """Loads by names such as d01."""
    return {Dz.parse(name[1:]): load for name, load in some.items()}


def test_the_hottest_partition_is_split() -> None:
    loads = named(d000=5, d001=5, d010=5, d011=5, d100=45, d101=5, d110=70, d111=5)
    assert adapted(loads, {}, EVEN) == Split(Dz.parse("110"))


def test_a_partition_with_its_fair_share_is_left_alone() -> None:
    assert adapted(named(d00=10, d01=12, d10=8, d11=19), {}, EVEN) is None
    assert adapted(named(d=100), {}, EVEN) is None


def test_what_most_requests_cover_wholly_is_not_split() -> None:
    loads = named(d00=10, d01=10, d10=10, d11=70)
    assert adapted(loads, named(d11=35), EVEN) == Split(Dz.parse("11"))
    assert adapted(loads, named(d11=36), EVEN) is None


def test_a_partition_is_not_split_beyond_the_longest_nor_beyond_the_most() -> None:
    loads = named(d00=10, d01=10, d10=10, d11=70)
    assert adapted(loads, {}, AdaptationSettings(longest=2)) is None
    assert adapted(loads, {}, AdaptationSettings(most=4)) is None
    assert adapted(loads, {}, AdaptationSettings(longest=3, most=5)) == Split(Dz.parse("11"))


def test_two_cold_siblings_are_joined_the_coldest_first() -> None:
    loads = named(d000=1, d001=1, d010=1, d011=0, d100=10, d101=10, d110=9, d111=10)
    assert adapted(loads, {}, EVEN) == Join(Dz.parse("01"))


def test_cold_partitions_that_are_no_siblings_stay() -> None:
    assert adapted(named(d000=0, d001=17, d01=0, d10=12, d11=15), {}, EVEN) is None


def test_siblings_that_most_requests_cover_are_joined() -> None:
    loads = named(d00=10, d01=10, d10=10, d11=10)
    assert adapted(loads, named(d00=10, d01=9), EVEN) == Join(Dz.parse("0"))
    assert adapted(loads, named(d00=10, d01=2), EVEN) is None


def test_what_covers_each_of_two_but_not_both_joins_nothing_where_that_is_told() -> None:
    loads = named(d00=10, d01=10, d10=10, d11=10)
    assert adapted(loads, named(d00=10, d01=10, d0=1), EVEN) is None
    assert adapted(loads, named(d00=10, d01=10, d0=8), EVEN) == Join(Dz.parse("0"))


def test_interests_in_everything_end_in_as_many_partitions_as_configurators() -> None:
    settings = AdaptationSettings(configurators=2)
    partitions = {Dz(bits, 3) for bits in range(8)}
    assert len(settled(partitions, [DzSet.of("")] * 20, settings, tell_parents=True)) == 2


def test_a_fair_share_is_that_of_as_many_partitions_as_the_configurators_should_have() -> None:
    loads = named(d00=10, d01=10, d10=10, d11=10)
    assert adapted(loads, {}, AdaptationSettings(configurators=2, each=2)) is None
    assert adapted(loads, {}, AdaptationSettings(configurators=2, each=8)) == Split(Dz.parse("00"))
    assert adapted(loads, {}, AdaptationSettings(configurators=1, each=1, cold=0.6)) == Join(Dz.parse("0"))


def test_a_period_without_requests_changes_nothing() -> None:
    assert adapted(named(d00=0, d01=0, d10=0, d11=0), {}, EVEN) is None


def test_settings_that_make_no_sense_are_refused() -> None:
    for wrong in (
        {"hot": 0.5, "cold": 0.5},
        {"cold": 0.0},
        {"spanning": 1.0},
        {"longest": 113},
        {"most": 0},
        {"configurators": 0},
    ):
        with pytest.raises(BadInput):
            AdaptationSettings(**wrong)  # type: ignore[arg-type]


# What holds whatever the requests are. They stay the same, so that only the steps change something.

cells = st.integers(0, 5).flatmap(lambda n: st.builds(Dz, st.integers(0, (1 << n) - 1), st.just(n)))
interests = st.lists(st.lists(cells, min_size=1, max_size=3).map(DzSet.of), max_size=30)
settings_kinds = st.builds(
    AdaptationSettings,
    hot=st.sampled_from([1.0, 2.0, 4.0]),
    cold=st.sampled_from([0.25, 0.5, 0.9]),
    spanning=st.sampled_from([0.25, 0.5, 0.75]),
    longest=st.sampled_from([3, 6]),
    most=st.sampled_from([6, 40]),
    configurators=st.sampled_from([None, 1, 3]),
    each=st.sampled_from([2, 4]),
)


@st.composite
def divisions(draw: st.DrawFn) -> set[Dz]:
    partitions = {WHOLE_SPACE}
    for _ in range(draw(st.integers(0, 12))):
        chosen = draw(st.sampled_from(sorted(partitions)))
        if chosen.length < 5:
            partitions = partitions - {chosen} | set(chosen.children)
    return partitions


def counted(
    partitions: set[Dz], requests: list[DzSet], tell_parents: bool
) -> tuple[dict[Dz, float], dict[Dz, float]]:
    told = partitions | ({dz.parent for dz in partitions if dz.parent} if tell_parents else set())
    loads = {dz: float(sum(one.overlaps(DzSet.of(dz)) for one in requests)) for dz in partitions}
    return loads, {dz: float(sum(one.covers(dz) for one in requests)) for dz in told}


def stepped(partitions: set[Dz], step: Split | Join) -> set[Dz]:
    halves = set(step.dz.children)
    if isinstance(step, Split):
        assert step.dz in partitions
        return partitions - {step.dz} | halves
    assert halves <= partitions
    return partitions - halves | {step.dz}


def settled(
    partitions: set[Dz], requests: list[DzSet], settings: AdaptationSettings, tell_parents: bool
) -> set[Dz]:
    """Where the steps end."""
    for _ in range(300):
        step = adapted(*counted(partitions, requests, tell_parents), settings)
        if step is None:
            return partitions
        partitions = stepped(partitions, step)
    raise AssertionError("it goes on for ever")


@given(divisions(), interests, settings_kinds, st.booleans())
def test_no_step_is_undone_by_the_next(
    partitions: set[Dz], requests: list[DzSet], settings: AdaptationSettings, tell_parents: bool
) -> None:
    for _ in range(40):
        step = adapted(*counted(partitions, requests, tell_parents), settings)
        if step is None:
            return
        partitions = stepped(partitions, step)
        following = adapted(*counted(partitions, requests, tell_parents), settings)
        undone = Join(step.dz) if isinstance(step, Split) else Split(step.dz)
        assert following != undone


@given(divisions(), interests, settings_kinds, st.booleans())
def test_with_the_same_requests_the_division_comes_to_rest(
    partitions: set[Dz], requests: list[DzSet], settings: AdaptationSettings, tell_parents: bool
) -> None:
    ended = settled(partitions, requests, settings, tell_parents)
    assert sum(2.0**-dz.length for dz in ended) == 1
    assert len(ended) <= max(len(partitions), settings.most)
    assert len(ended) >= min(len(partitions), settings.configurators or 1)
