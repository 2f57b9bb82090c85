"""Whoever falls behind hands a partition over, if that helps; and that comes to an end."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowsieve.control.partitions.monitor import Migration, Monitor, MonitorSettings, Queues
from flowsieve.errors import BadInput
from flowsieve.index.dz import Dz

A, B, C, D, E, F = (Dz(bits, 3) for bits in range(6))
QUIET = 25  # observations without a migration
SETTINGS = MonitorSettings(threshold=0.25, least=10, rest_seconds=5)


def after_growing(queues: Queues, settings: MonitorSettings = SETTINGS) -> Migration | None:
    """What is decided when all these queues were empty before."""
    monitor = Monitor(settings)
    assert monitor.observe(0, {name: dict.fromkeys(own, 0) for name, own in queues.items()}) is None
    return monitor.observe(1, queues)


def test_the_heaviest_partition_of_the_most_overloaded_goes_to_the_least_loaded() -> None:
    queues = {"c1": {A: 30, B: 40, C: 30}, "c2": {D: 20}, "c3": {E: 90}, "c4": {F: 10}}
    assert after_growing(queues) == Migration(B, "c1", "c4")


def test_one_that_would_overload_the_receiver_stays_and_the_next_goes() -> None:
    # The mean is 50, the receiver may have 62.
    assert after_growing({"c1": {A: 70, B: 20}, "c2": {C: 10}}) == Migration(B, "c1", "c2")


def test_a_partition_that_is_heavy_by_itself_helps_nobody_elsewhere() -> None:
    assert after_growing({"c1": {A: 100}, "c2": {B: 0}}) is None
    assert after_growing({"c1": {A: 100, B: 0}, "c2": {C: 0}}) is None


def test_where_the_most_overloaded_cannot_be_helped_the_next_is() -> None:
    queues = {"c1": {A: 100}, "c2": {B: 45, C: 45}, "c3": {D: 0}, "c4": {E: 10}}
    assert after_growing(queues) == Migration(B, "c2", "c3")


def test_nobody_is_overloaded_while_little_waits() -> None:
    queues = {"c1": {A: 5, B: 4}, "c2": {C: 0}}
    assert after_growing(queues) is None
    assert after_growing(queues, MonitorSettings(least=9)) == Migration(A, "c1", "c2")


def test_nobody_is_overloaded_within_the_threshold() -> None:
    assert after_growing({"c1": {A: 62, B: 63}, "c2": {C: 75}}) is None
    assert after_growing({"c1": {A: 60, B: 66}, "c2": {C: 74}}) is None  # no partition is light enough
    assert after_growing({"c1": {A: 6, B: 120}, "c2": {C: 74}}) == Migration(A, "c1", "c2")


def test_a_queue_that_shrinks_is_left_alone() -> None:
    monitor = Monitor(SETTINGS)
    for now, waiting in enumerate((80, 70, 60, 60)):
        assert monitor.observe(now, {"c1": {A: waiting, B: 40}, "c2": {C: 0}}) is None
    assert monitor.observe(9, {"c1": {A: 59, B: 42}, "c2": {C: 0}}) == Migration(A, "c1", "c2")


def test_a_partition_that_has_just_come_is_no_growth() -> None:
    monitor = Monitor(SETTINGS)
    assert monitor.observe(0, {"c1": {A: 50}, "c2": {B: 60, C: 20}}) is None
    assert monitor.observe(1, {"c1": {A: 50, B: 60, C: 20}, "c2": {}}) is None


def test_what_has_moved_rests() -> None:
    monitor = Monitor(SETTINGS)
    monitor.observe(0, {"c1": {A: 0, B: 0, C: 0}, "c2": {}, "c3": {}})
    assert monitor.observe(1, {"c1": {A: 80, B: 80, C: 80}, "c2": {}, "c3": {}}) == Migration(A, "c1", "c2")
    monitor.observe(2, {"c1": {B: 10, C: 10}, "c2": {A: 40, D: 60}, "c3": {}})
    assert monitor.observe(5.9, {"c1": {B: 10, C: 10}, "c2": {A: 49, D: 60}, "c3": {}}) is None
    there = {"c1": {B: 10, C: 10}, "c2": {A: 50, D: 60}, "c3": {}}
    assert monitor.observe(6, there) == Migration(A, "c2", "c3")


def test_one_migration_at_a_time_unless_nothing_is_seen_of_it_for_long() -> None:
    monitor = Monitor(SETTINGS)
    monitor.observe(0, {"c1": {A: 0, B: 0}, "c2": {}})
    assert monitor.observe(1, {"c1": {A: 50, B: 40}, "c2": {}}) == Migration(A, "c1", "c2")
    assert monitor.observe(2, {"c1": {A: 60, B: 50}, "c2": {}}) is None
    assert monitor.observe(3, {"c1": {B: 60}, "c2": {}}) is None  # it is on its way
    assert monitor.observe(6, {"c1": {A: 70, B: 65}, "c2": {}}) == Migration(A, "c1", "c2")


def test_a_migration_to_somebody_who_is_gone_is_not_waited_for() -> None:
    monitor = Monitor(SETTINGS)
    monitor.observe(0, {"c1": {A: 0, B: 0, C: 0}, "c2": {}, "c3": {}})
    assert monitor.observe(1, {"c1": {A: 30, B: 30, C: 30}, "c2": {}, "c3": {}}) == Migration(A, "c1", "c2")
    assert monitor.observe(2, {"c1": {A: 40, B: 40, C: 40}, "c3": {}}) == Migration(B, "c1", "c3")


def test_one_configurator_has_nobody_to_hand_over_to() -> None:
    assert after_growing({"c1": {A: 100, B: 100}}) is None
    assert after_growing({}) is None


@pytest.mark.parametrize("anew", [False, True])
def test_a_partition_goes_back_only_after_partitions_were_assigned_anew(anew: bool) -> None:
    monitor = Monitor(SETTINGS)
    monitor.observe(0, {"c1": {A: 0, B: 0}, "c2": {C: 0}})
    assert monitor.observe(1, {"c1": {A: 50, B: 40}, "c2": {C: 0}}) == Migration(A, "c1", "c2")
    if anew:
        monitor.forget()
    went = monitor.observe(99, {"c1": {B: 0}, "c2": {A: 60, C: 45}})
    assert went == Migration(A if anew else C, "c2", "c1")


class Plane:
    """Configurators that serve as much as they can, and partitions that go where told."""

    def __init__(self, owners: list[int], configurators: int, settings: MonitorSettings) -> None:
        self.partitions = [Dz(i, 5) for i in range(len(owners))]
        self.owner = {dz: f"c{at % configurators}" for dz, at in zip(self.partitions, owners, strict=True)}
        self.names = [f"c{i}" for i in range(configurators)]
        self.waiting = dict.fromkeys(self.partitions, 0.0)
        self.monitor = Monitor(settings)
        self.homes = {dz: [name] for dz, name in self.owner.items()}  # all that it ever had
        self.moves: list[float] = []

    def queues(self) -> dict[str, dict[Dz, int]]:
        found: dict[str, dict[Dz, int]] = {name: {} for name in self.names}
        for dz, name in self.owner.items():
            found[name][dz] = int(self.waiting[dz])
        return found

    def pass_time(self, seconds: float, rates: list[float], capacity: float) -> None:
        """A fluid: what waits is served in proportion, as first come first served does it in the long run."""
        for dz, rate in zip(self.partitions, rates, strict=True):
            self.waiting[dz] += rate * seconds
        for name in self.names:
            own = [dz for dz in self.partitions if self.owner[dz] == name]
            load = sum(self.waiting[dz] for dz in own)
            rest = max(0.0, load - capacity * seconds)
            for dz in own:
                self.waiting[dz] *= rest / load if load else 0.0

    def observe(self, now: float) -> Migration | None:
        before = self.queues()
        migration = self.monitor.observe(now, before)
        if migration is not None:
            dz, giver, receiver = migration.dz, migration.giver, migration.receiver
            assert self.owner[dz] == giver
            loads = {name: sum(own.values()) for name, own in before.items()}
            after = loads[giver] - before[giver][dz], loads[receiver] + before[giver][dz]
            assert max(after) < max(loads[giver], loads[receiver])
            self.owner[dz] = receiver
            self.homes[dz].append(receiver)
            self.moves.append(now)
        return migration

    def check(self) -> None:
        for homes in self.homes.values():
            assert len(homes) == len(set(homes)), "a partition went back"
        assert len(self.moves) <= len(self.partitions) * (len(self.names) - 1)


owner_lists = st.lists(st.integers(0, 3), min_size=1, max_size=16)
settings_kinds = st.builds(
    MonitorSettings, st.sampled_from([0.01, 0.25, 1.0]), st.sampled_from([1, 20]), st.sampled_from([0.0, 3.0])
)


@given(owner_lists, st.integers(2, 4), settings_kinds, st.data())
def test_whatever_is_observed_no_partition_ever_goes_back(
    owners: list[int], configurators: int, settings: MonitorSettings, data: st.DataObject
) -> None:
    plane = Plane(owners, configurators, settings)
    queue = st.lists(st.integers(0, 200), min_size=len(owners), max_size=len(owners))
    for now, lengths in enumerate(data.draw(st.lists(queue, max_size=40))):
        plane.waiting = dict(zip(plane.partitions, map(float, lengths), strict=True))
        plane.observe(now)
    plane.check()


@given(
    owner_lists,
    st.integers(2, 4),
    settings_kinds,
    st.lists(st.floats(0.1, 3), min_size=1, max_size=10),
    st.floats(0.3, 1.5),
    st.data(),
)
def test_with_constant_arrival_migrations_stop_and_nothing_goes_back_and_forth(
    owners: list[int],
    configurators: int,
    settings: MonitorSettings,
    gaps: list[float],
    use: float,
    data: st.DataObject,
) -> None:
    """Also where no division of the partitions would do, so that somebody falls behind for ever."""
    rates = data.draw(st.lists(st.floats(0, 100), min_size=len(owners), max_size=len(owners)))
    plane = Plane(owners, configurators, settings)
    capacity = sum(rates) / configurators / use
    now, steps, quiet = 0.0, 0, 0
    while quiet < QUIET:
        assert steps < QUIET * (1 + len(owners) * (configurators - 1)), "migrations do not stop"
        gap = gaps[steps % len(gaps)]
        plane.pass_time(gap, rates, capacity)
        now, steps = now + gap, steps + 1
        quiet = 0 if plane.observe(now) else quiet + 1
    plane.check()


def test_equal_partitions_that_all_begin_at_one_are_spread_until_everybody_keeps_up() -> None:
    plane = Plane([0] * 24, 4, MonitorSettings(least=10, rest_seconds=1))
    for second in range(200):
        plane.pass_time(1.0, [10.0] * 24, 75.0)  # 240 a second for 300 that they can serve
        plane.observe(second)
    plane.check()
    assert max(plane.moves) < 100
    assert max(Counter(plane.owner.values()).values()) <= 7
    assert sum(plane.waiting.values()) < 24 * 10


def test_settings_that_make_no_sense_are_refused() -> None:
    for wrong in ({"threshold": 0.0}, {"least": 0}, {"rest_seconds": -1.0}, {"threshold": float("nan")}):
        with pytest.raises(BadInput, match="right is"):
            MonitorSettings(**wrong)  # type: ignore[arg-type]
