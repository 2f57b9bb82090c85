"""The virtual clock."""

import pytest

from flowsieve.errors import SwitchError
from flowsieve.southbound.embedded.clock import VirtualClock


def test_things_of_one_moment_are_done_in_the_order_asked():
    clock, seen = VirtualClock(), []
    for name in "abc":
        clock.after(1.0, lambda name=name: seen.append(name))
    clock.settle()
    assert seen == ["a", "b", "c"]
    assert clock.now == 1.0


def test_advancing_does_what_falls_due_and_no_more():
    clock, seen = VirtualClock(), []
    clock.after(1.0, lambda: clock.after(1.0, lambda: seen.append(clock.now)))
    clock.advance(1.9)
    assert seen == []
    clock.advance(0.2)
    assert seen == [2.0]
    assert clock.now == pytest.approx(2.1)


def test_settling_with_nothing_to_do_takes_no_time():
    clock = VirtualClock()
    clock.settle()
    assert clock.now == 0.0


def test_what_never_ends_is_stopped():
    clock = VirtualClock(max_steps=100)

    def again() -> None:
        clock.after(0.0, again)

    again()
    with pytest.raises(SwitchError, match="after 100 steps"):
        clock.settle()
