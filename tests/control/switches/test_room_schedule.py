"""When a switch that was full is tried again."""

from __future__ import annotations

from flowsieve.control.switches.room_schedule import FIRST_SECONDS, LAST_SECONDS, SOON_SECONDS, RoomSchedule


def test_nothing_is_due_while_nothing_is_bounded() -> None:
    schedule = RoomSchedule()
    schedule.changed("s1", 5.0)
    assert (schedule.next_at([], 5.0), schedule.due([], 1e9)) == (None, [])


def test_attempts_that_fail_become_rare() -> None:
    schedule, now, pauses = RoomSchedule(), 100.0, []
    schedule.bounded("s1", now)
    for _ in range(10):
        at = schedule.next_at(["s1"], now)
        assert at is not None
        assert schedule.due(["s1"], at - 0.1) == []
        pauses.append(at - now)
        assert schedule.due(["s1"], at) == ["s1"]
        now = at + 0.5
        schedule.bounded("s1", now)  # it was refused
    assert pauses[:3] == [FIRST_SECONDS, 2 * FIRST_SECONDS, 4 * FIRST_SECONDS]
    assert pauses[-1] == LAST_SECONDS


def test_one_that_held_for_a_while_begins_anew() -> None:
    schedule = RoomSchedule()
    schedule.bounded("s1", 0.0)
    assert schedule.due(["s1"], 10.0) == ["s1"]
    schedule.bounded("s1", 11.0)
    assert schedule.due(["s1"], 31.0) == ["s1"]
    schedule.bounded("s1", 500.0)
    assert schedule.next_at(["s1"], 500.0) == 500.0 + FIRST_SECONDS


def test_what_changes_at_a_switch_brings_an_attempt_forward_but_not_again_and_again() -> None:
    schedule = RoomSchedule()
    schedule.bounded("s1", 0.0)
    schedule.changed("s1", 2.0)
    assert schedule.next_at(["s1"], 2.0) == 2.0 + SOON_SECONDS
    assert schedule.due(["s1"], 3.0) == ["s1"]
    schedule.bounded("s1", 3.5)
    for now in (4.0, 5.0, 6.0):
        schedule.changed("s1", now)
    assert schedule.next_at(["s1"], 6.0) == 3.0 + 2 * FIRST_SECONDS
    schedule.changed("s1", 400.0)
    assert schedule.next_at(["s1"], 400.0) == 3.0 + 2 * FIRST_SECONDS  # it is overdue


def test_one_that_is_remembered_is_tried_like_one_that_was_found_just_now() -> None:
    schedule = RoomSchedule()
    assert schedule.next_at(["s1", "s2"], 7.0) == 7.0 + FIRST_SECONDS
    schedule.changed("s2", 8.0)
    assert schedule.due(["s1", "s2"], 10.0) == ["s2"]
