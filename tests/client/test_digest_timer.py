"""Digests are sent when a publisher has fallen quiet, a few times, and now and then before."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from itertools import pairwise
from typing import Any

import pytest

from flowsieve.client import digest_timer as quiet
from flowsieve.client.digest_timer import TIMES, DigestTimer


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quiet, "QUIET_SECONDS", 0.01)
    monkeypatch.setattr(quiet, "BUSY_SECONDS", 0.05)


def play(story: Callable[[DigestTimer, list[float]], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        told: list[float] = []
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(20):
            await story(DigestTimer(lambda: told.append(loop.time())), told)

    asyncio.run(whole())


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.002)


def test_after_an_event_it_is_told_a_few_times_with_growing_pauses_and_then_no_more() -> None:
    async def story(timer: DigestTimer, told: list[float]) -> None:
        timer.disturb()
        await until(lambda: len(told) == TIMES)
        pauses = [later - before for before, later in pairwise(told)]
        assert all(pause >= 0.01 * 2**n for n, pause in enumerate(pauses, 1))
        assert timer._timer is None
        timer.close()
        assert len(told) == TIMES

    play(story)


def test_another_event_begins_anew() -> None:
    async def story(timer: DigestTimer, told: list[float]) -> None:
        timer.disturb()
        await until(lambda: len(told) == 2)
        timer.disturb()
        await until(lambda: len(told) == 2 + TIMES)
        assert timer._timer is None

    play(story)


def test_who_is_never_quiet_tells_now_and_then() -> None:
    async def story(timer: DigestTimer, told: list[float]) -> None:
        loop = asyncio.get_running_loop()
        start = loop.time()
        while len(told) < 2:
            timer.disturb()
            await asyncio.sleep(0)
        assert loop.time() - start >= 2 * 0.05
        timer.close()

    play(story)


def test_leaving_tells_what_is_untold() -> None:
    async def story(timer: DigestTimer, told: list[float]) -> None:
        timer.close()
        assert told == []
        timer.disturb()
        timer.close()
        assert len(told) == 1

    play(story)
