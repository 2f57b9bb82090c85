"""Long work in slices."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from flowsieve.southbound import leisure
from flowsieve.southbound.leisure import SLICE, Leisure, in_slices

Each = Callable[[Callable[[int], int], range], Awaitable[list[int]]]


def work() -> Leisure:
    return Leisure(lambda: False)


@pytest.mark.parametrize("each", [in_slices, lambda *args: work().each(*args)], ids=["at once", "at leisure"])
@pytest.mark.parametrize("count", [0, 1, SLICE, SLICE + 1, 5 * SLICE + 3])
def test_all_is_done_in_order_and_others_have_their_turns(each: Each, count: int) -> None:
    async def main() -> None:
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        others = asyncio.create_task(other())
        assert await each(lambda number: 2 * number, range(count)) == [2 * number for number in range(count)]
        assert turns >= count // SLICE
        others.cancel()

    asyncio.run(main())


def test_those_who_look_take_turns() -> None:
    async def main() -> None:
        at, done = work(), list[str]()
        pair = (at.each(lambda _, name=name: done.append(name), range(3 * SLICE)) for name in "ab")
        await asyncio.gather(*pair)
        assert "".join(done[::SLICE]) == "ababab"

    asyncio.run(main())


@pytest.mark.parametrize(("busy", "rest"), [(False, 2.0), (True, 10.0)])
def test_they_rest_longer_while_there_is_something_more_important(
    monkeypatch: pytest.MonkeyPatch, busy: bool, rest: float
) -> None:
    now, slept = iter(range(100)), list[float]()

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(leisure, "thread_time", lambda: next(now))
    monkeypatch.setattr(leisure.asyncio, "sleep", sleep)
    asyncio.run(Leisure(lambda: busy).each(str, range(3 * SLICE)))
    assert slept == [rest] * 3


def test_an_error_is_that_of_whoever_asked() -> None:
    async def main() -> None:
        at = work()
        with pytest.raises(ZeroDivisionError):
            await at.each(lambda number: 1 // number, [1, 0])
        assert await at.each(abs, [-1]) == [1]

    asyncio.run(main())
