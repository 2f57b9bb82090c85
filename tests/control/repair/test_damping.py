"""Restless links are left out until they are stable; a link that fails once is not flapping."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowsieve.control.repair.damping import PENALTY, Damping, DampingSettings, dispensable
from flowsieve.errors import BadInput
from flowsieve.network.generators import line, ring
from flowsieve.network.mend import mended_tree
from flowsieve.network.topology import Topology
from flowsieve.network.tree import center_tree

EDGE, OTHER = frozenset(("s1", "s2")), frozenset(("s2", "s3"))
gaps = st.lists(st.floats(0, 100), max_size=40)


def flapped(times: list[float], settings: DampingSettings | None = None) -> Damping:
    """A link that goes down at each of these times, and up in between."""
    damping = Damping(settings)
    for time in times:
        damping.tell(EDGE, False, time)
        damping.tell(EDGE, True, time)
    return damping


def test_a_link_pulled_and_plugged_once_is_used_at_once() -> None:
    damping = flapped([5.0])
    assert damping.suppressed(5.0) == frozenset()
    assert damping.next_change(5.0) is None


def test_a_third_fall_within_seconds_leaves_a_link_out_until_it_is_calm() -> None:
    damping = flapped([0.0, 1.0])
    assert not damping.suppressed(1.0)
    damping.tell(EDGE, False, 2.0)
    damping.tell(EDGE, True, 2.1)
    stable = damping.next_change(2.1)
    assert stable is not None
    assert 2 + 15 < stable < 2 + 45
    assert damping.suppressed(stable - 0.001) == {EDGE}
    assert damping.suppressed(stable) == frozenset()
    assert damping.next_change(stable) is None
    assert damping.penalty(EDGE, stable) == pytest.approx(750)


def test_a_link_that_falls_while_it_is_left_out_is_left_out_for_longer() -> None:
    damping = flapped([0.0, 1.0, 2.0])
    stable = damping.next_change(2.0)
    assert stable is not None
    damping.tell(
        EDGE, False, stable - 1
    )  # 1,000 more on hardly more than 750: below what leaves a stable link out
    assert damping.penalty(EDGE, stable - 1) < damping.settings.suppress
    assert damping.suppressed(stable) == {EDGE}
    assert damping.next_change(stable) == pytest.approx(stable - 1 + 15 * 1.24, abs=0.5)


def test_however_often_a_link_falls_it_is_used_again_after_a_minute() -> None:
    damping = flapped([n / 1000 for n in range(1000)])
    assert damping.suppressed(60.9) == {EDGE}
    assert damping.suppressed(61.1) == frozenset()


def test_a_link_that_falls_each_minute_is_used() -> None:
    damping = flapped([60.0 * n for n in range(100)])
    assert not damping.suppressed(60.0 * 99)


def test_a_link_that_is_told_again_as_it_was_has_not_fallen() -> None:
    damping = Damping()
    for second in range(100):
        damping.tell(EDGE, True, second)
        damping.tell(OTHER, False, second)
    assert damping.suppressed(100) == frozenset()
    assert damping.penalty(EDGE, 0) == 0


def test_links_are_judged_each_by_itself_and_the_next_to_be_calm_is_told() -> None:
    damping = Damping()
    for edge, start in ((EDGE, 0.0), (OTHER, 10.0)):
        for fall in range(3):
            damping.tell(edge, False, start + fall)
            damping.tell(edge, True, start + fall)
    assert damping.suppressed(13) == {EDGE, OTHER}
    first = damping.next_change(13)
    assert first is not None
    assert damping.suppressed(first) == {OTHER}
    last = damping.next_change(first)
    assert last == pytest.approx(first + 10)


@given(gaps)
def test_no_link_is_left_out_for_ever(waits: list[float]) -> None:
    times = list(itertools.accumulate(waits))
    damping = flapped(times)
    last = times[-1] if times else 0.0
    assert damping.suppressed(last + damping.settings.longest_seconds + 1e-6) == frozenset()
    change = damping.next_change(last)
    assert (change is not None) == bool(damping.suppressed(last))
    if change is not None:
        assert damping.suppressed(change) == frozenset()


@given(gaps, st.data())
def test_a_link_that_falls_more_often_is_left_out_no_less(waits: list[float], data: st.DataObject) -> None:
    times = list(itertools.accumulate(waits))
    fewer = [time for time in times if data.draw(st.booleans())]
    some, all = flapped(fewer), flapped(times)
    last = times[-1] if times else 0.0
    for moment in (last, last + 10, last + 30):
        assert some.suppressed(moment) <= all.suppressed(moment)


@given(gaps)
def test_looking_changes_nothing(waits: list[float]) -> None:
    times = list(itertools.accumulate(waits))
    watched, left = Damping(), flapped(times)
    for time in times:
        watched.tell(EDGE, False, time)
        watched.suppressed(time + 1000)
        watched.next_change(time + 1000)
        watched.tell(EDGE, True, time)
    last = times[-1] if times else 0.0
    assert watched.next_change(last) == left.next_change(last)


@given(
    st.floats(0.1, 1e4), st.floats(PENALTY, 1e6), st.floats(0.01, 0.99), st.floats(0, 1e6), st.floats(0, 1e9)
)
def test_one_fall_is_forgiven_under_all_settings(
    half_life: float, suppress: float, share: float, longest: float, time: float
) -> None:
    try:
        settings = DampingSettings(half_life, suppress, suppress * share, longest)
    except BadInput:
        return
    assert not flapped([time], settings).suppressed(time)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"half_life_seconds": 0}, "half-life of 0 s"),
        ({"suppress": 999}, "right is 1000 or more"),
        ({"reuse": 2000}, "right is 0 to 2000"),
        ({"longest_seconds": 29}, "right is 30.0 s or more"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings: dict[str, float], text: str) -> None:
    with pytest.raises(BadInput, match=text):
        DampingSettings(**settings)


@given(st.data())
def test_leaving_links_out_cuts_nobody_off(data: st.DataObject) -> None:
    switches = [f"s{n}" for n in range(6)]
    pairs = list(itertools.combinations(switches, 2))
    links = data.draw(st.lists(st.sampled_from(pairs), unique=True))
    topology = Topology.make(links, {}, switches)
    edges = [frozenset(pair) for pair in links]
    choice = st.frozensets(st.sampled_from(edges)) if edges else st.just(frozenset())
    down, flapping = data.draw(choice), data.draw(choice)
    out = dispensable(topology, down, flapping)
    assert out <= flapping

    def parts(missing: frozenset[frozenset[str]]) -> set[frozenset[str]]:
        left = [pair for pair in links if frozenset(pair) not in missing]
        return set(Topology.make(left, {}, switches).components())

    assert parts(down | out) == parts(down)
    for edge in flapping - out:  # no more than needed are kept
        assert parts(down | out | {edge}) != parts(down)


def test_a_tree_does_without_a_flapping_link_of_a_ring_and_keeps_one_of_a_line() -> None:
    for network, expected in ((ring(4), 1), (line(4), 0)):
        edge = frozenset(("s0", "s1"))
        out = dispensable(network, (), {edge})
        assert len(out) == expected
        assert mended_tree(center_tree(network), network, out).others == ()
