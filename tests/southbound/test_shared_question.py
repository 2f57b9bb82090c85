"""A question that many wait for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

import pytest

from flowsieve.errors import SwitchError
from flowsieve.southbound.shared_question import SharedQuestion, Unanswered


class Asked:
    """A question that is answered when the test says so, and those who wait for the answer."""

    def __init__(self) -> None:
        self.begun = 0
        self._answers: asyncio.Queue[Exception | None] = asyncio.Queue()
        self.question = SharedQuestion(self._ask)

    async def _ask(self) -> None:
        self.begun += 1
        error = await self._answers.get()
        if error is not None:
            raise error

    async def waiter(self) -> asyncio.Task[None]:
        """Somebody who waits, and has begun to."""
        task = asyncio.create_task(self.question.answered())
        await settled()
        return task

    async def answer(self, error: Exception | None = None) -> None:
        await self._answers.put(error)
        await settled()


async def settled() -> None:
    """All tasks have gone as far as they can."""
    for _ in range(20):
        await asyncio.sleep(0)


def asking(test: Callable[[Asked], Coroutine[None, None, None]]) -> Callable[[], None]:
    """A test that runs on a loop of its own, with a question."""

    def run() -> None:
        async def main() -> None:
            await test(Asked())

        asyncio.run(main())

    run.__name__ = test.__name__
    return run


@asking
async def test_those_who_come_together_share_a_question(asked: Asked) -> None:
    waiters = [asyncio.create_task(asked.question.answered()) for _ in range(10)]
    await settled()
    assert asked.begun == 1
    await asked.answer()
    assert all(waiter.done() for waiter in waiters)
    assert asked.begun == 1


@asking
async def test_an_answer_is_not_for_those_who_came_after_the_question(asked: Asked) -> None:
    first, late = await asked.waiter(), await asked.waiter()
    assert asked.begun == 1
    await asked.answer()
    assert (first.done(), late.done(), asked.begun) == (True, False, 2)
    await asked.answer()
    assert late.done()


@asking
async def test_a_question_that_fails_fails_for_its_waiters_alone(asked: Asked) -> None:
    first, late = await asked.waiter(), await asked.waiter()
    await asked.answer(SwitchError("no word"))
    with pytest.raises(SwitchError, match="no word"):
        await first
    await asked.answer()
    await late


@asking
async def test_one_who_gives_up_leaves_the_others_waiting(asked: Asked) -> None:
    impatient, patient = [asyncio.create_task(asked.question.answered()) for _ in range(2)]
    await settled()
    impatient.cancel()
    await settled()
    assert (impatient.cancelled(), patient.done()) == (True, False)
    await asked.answer()
    assert patient.done()


@asking
async def test_closing_tells_those_who_wait(asked: Asked) -> None:
    waiter = await asked.waiter()
    asked.question.close()
    with pytest.raises(Unanswered, match="given up before there was an answer"):
        await waiter
