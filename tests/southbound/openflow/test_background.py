"""A loop in a thread of its own: what it ends of is told to whoever calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from flowsieve.errors import SwitchError, TaskDied
from flowsieve.southbound.openflow.background import Background


async def nothing() -> None:
    pass


def test_a_mistake_before_it_is_ready_is_raised_at_the_start() -> None:
    async def main(ready: Callable[[], None]) -> None:
        raise ZeroDivisionError("a mistake")

    with pytest.raises(TaskDied, match="openflow has died of ZeroDivisionError: a mistake"):
        Background(main, "openflow").start()


def test_a_mistake_later_is_raised_by_the_next_call() -> None:
    async def main(ready: Callable[[], None]) -> None:
        ready()
        await asyncio.sleep(0.01)
        raise ZeroDivisionError("a mistake")

    background = Background(main, "openflow")
    background.start()
    background._thread.join(20)
    with pytest.raises(TaskDied, match="a mistake"):
        background.call(nothing())
    background.stop()


def test_what_switches_do_is_no_mistake_of_ours() -> None:
    async def main(ready: Callable[[], None]) -> None:
        raise SwitchError("nobody is there")

    with pytest.raises(SwitchError, match="no connections to switches: nobody is there"):
        Background(main, "openflow").start()
