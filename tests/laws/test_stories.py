"""Faults of all kinds, several at once, with the controller killed in between; `make soak` tells thousands of them."""

from __future__ import annotations

import pytest
from stories import play

STORIES = 120
AT_ONCE = 20
TELLING = (
    20262867,
)  # what a switch told over a connection that is no more came after what it told over the next


@pytest.mark.parametrize("first", range(0, STORIES, AT_ONCE))
def test_nothing_loops_meanwhile_and_all_is_right_afterwards(first: int) -> None:
    assert play(range(first, first + AT_ONCE)) == {}


def test_stories_that_went_wrong_once_end_well() -> None:
    assert play(TELLING) == {}
