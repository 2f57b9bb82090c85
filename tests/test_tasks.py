"""Work in the background: whatever it dies of, somebody hears of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from flowsieve.errors import TaskDied
from flowsieve.tasks import Tasks, noted

SECONDS = 20.0


def play(story: Callable[[], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with asyncio.timeout(SECONDS):
            await story()

    asyncio.run(whole())


async def mistaken() -> None:
    await asyncio.sleep(0)
    raise ZeroDivisionError("a mistake")


async def left_alone() -> None:
    """Waits for what is cancelled, as one that waits for somebody who has died."""
    future = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(future.cancel)
    await future


@pytest.mark.parametrize(
    ("work", "why"), [(mistaken, "ZeroDivisionError: a mistake"), (left_alone, "CancelledError")]
)
def test_what_dies_ends_the_block_and_is_told_with_its_place(
    caplog: pytest.LogCaptureFixture, work: Callable[[], Awaitable[None]], why: str
) -> None:
    async def story() -> None:
        with pytest.raises(TaskDied, match=f"^{work.__name__} has died of {why}"):
            async with Tasks() as tasks:
                tasks.start(work())  # type: ignore[arg-type]
                await asyncio.Event().wait()
        await asyncio.sleep(0)  # the cancellation was for the block alone

    play(story)
    (record,) = caplog.records
    assert record.levelname == "CRITICAL" and why in caplog.text


def test_a_timer_dies_as_seen_as_a_task(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        def oops() -> None:
            raise ZeroDivisionError("a mistake")

        with pytest.raises(TaskDied, match="oops has died"):
            async with Tasks() as tasks:
                tasks.call_at(asyncio.get_running_loop().time(), oops)
                await asyncio.Event().wait()

    play(story)
    assert "Traceback" in caplog.text


def test_what_is_left_at_the_end_is_cancelled_and_nobody_has_died(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        async with Tasks() as tasks:
            begun = tasks.start(asyncio.Event().wait())  # type: ignore[arg-type]
            stopped = tasks.start(asyncio.Event().wait())  # type: ignore[arg-type]
            await asyncio.sleep(0)
            stopped.cancel()
            done = tasks.start(asyncio.sleep(0))
            await done
            late = tasks.start(asyncio.Event().wait())  # type: ignore[arg-type]
        assert begun.cancelled() and stopped.cancelled() and late.cancelled()

    play(story)
    assert not caplog.records


def test_a_death_outside_reaches_its_own_block_through_those_within() -> None:
    async def story() -> None:
        with pytest.raises(TaskDied, match="mistaken"):
            async with Tasks() as outer, Tasks() as inner:
                inner.start(asyncio.Event().wait())  # type: ignore[arg-type]
                outer.start(mistaken())
                await asyncio.Event().wait()

    play(story)


def test_who_dies_of_its_end_is_heard_too() -> None:
    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise ZeroDivisionError("at the end")

    async def story() -> None:
        with pytest.raises(TaskDied, match="at the end"):
            async with Tasks() as tasks:
                tasks.start(stubborn())
                await asyncio.sleep(0)

    play(story)


def test_an_error_of_the_block_itself_is_raised_as_it_is() -> None:
    async def story() -> None:
        with pytest.raises(KeyError):
            async with Tasks() as tasks:
                tasks.start(asyncio.Event().wait())  # type: ignore[arg-type]
                raise KeyError

    play(story)


def test_the_failure_of_work_that_nobody_waits_for_is_noted(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        task = asyncio.create_task(mistaken(), name="a request")
        task.add_done_callback(noted)
        await asyncio.wait({task})

    play(story)
    assert "a request has failed" in caplog.text and "ZeroDivisionError: a mistake" in caplog.text
