"""Written down, then done: in one order, many at a time, and nothing that could not be written."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import pytest

from flowsieve.control.memory import scribe as scribe_module
from flowsieve.control.memory.journal import Bounded, Entry, Snapshot
from flowsieve.control.memory.scribe import Scribe
from flowsieve.control.shared.leadership import NotLeading
from flowsieve.errors import BadInput, Busy, JournalError


class Memory:
    """A journal in memory that takes its time, and fails when told to."""

    def __init__(self, number: int = 0, length: int = 0) -> None:
        self.number, self.length = number, length
        self.batches: list[list[int]] = []
        self.snapshots: list[tuple[Snapshot, int]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.failing = self.over = False
        self.reserve = True
        self.kept: list[int] = []

    async def keep(self, entries: Sequence[Entry]) -> None:
        if not self.reserve:
            raise JournalError("nor is there room beside it")
        self.kept = [entry.capacity for entry in entries if isinstance(entry, Bounded)]

    async def append(self, entries: Sequence[Entry]) -> int:
        await asyncio.sleep(0)
        await self.gate.wait()
        if self.over:
            raise NotLeading("another controller leads")
        if self.failing:
            raise JournalError("the disk is full")
        self.batches.append([entry.capacity for entry in entries if isinstance(entry, Bounded)])
        self.number += len(entries)
        return self.number

    async def compact(self, snapshot: Snapshot, number: int) -> None:
        if self.failing:
            raise JournalError("the disk is full")
        self.snapshots.append((snapshot, number))

    @property
    def written(self) -> list[int]:
        return [n for batch in self.batches for n in batch]


class Office:
    """A scribe at work, and what was done."""

    def __init__(self) -> None:
        self.journal = Memory()
        self.scribe = Scribe(self.journal)
        self.done: list[int] = []

    async def write(self, n: int, *, urgent: bool = False, sure: bool = False) -> int:
        def work() -> int:
            assert urgent or n in self.journal.written
            self.done.append(n)
            return -n

        return await self.scribe.write(Bounded("s", n), work, urgent=urgent, sure=sure)


def play(story: Callable[[Office], Awaitable[None]]) -> None:
    async def whole() -> None:
        office = Office()
        running = asyncio.create_task(office.scribe.run())
        async with asyncio.timeout(10):
            await story(office)
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running

    asyncio.run(whole())


def test_all_is_done_in_the_order_in_which_it_came_and_is_written() -> None:
    async def story(office: Office) -> None:
        assert await asyncio.gather(*(office.write(n) for n in range(200))) == [-n for n in range(200)]
        assert office.done == office.journal.written == list(range(200))

    play(story)


def test_what_comes_while_the_journal_is_busy_is_written_at_once() -> None:
    async def story(office: Office) -> None:
        office.journal.gate.clear()
        first = asyncio.create_task(office.write(0))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        more = [asyncio.create_task(office.write(n)) for n in range(1, 50)]
        await asyncio.sleep(0)
        assert office.scribe.waiting == 49
        assert office.done == []
        office.journal.gate.set()
        await asyncio.gather(first, *more)
        assert office.journal.batches == [[0], list(range(1, 50))]
        assert office.scribe.waiting == 0

    play(story)


def test_where_nothing_can_be_written_nothing_is_done_but_what_is_urgent() -> None:
    async def story(office: Office) -> None:
        await office.write(1)
        office.journal.failing = True
        told = await asyncio.gather(
            office.write(2), office.write(3, urgent=True), office.write(4), return_exceptions=True
        )
        assert [str(each) for each in told] == ["the disk is full", "-3", "the disk is full"]
        assert isinstance(told[0], JournalError)
        assert office.scribe.trouble == "the disk is full"
        assert office.done == [1, 3]
        assert await office.write(5, urgent=True) == -5
        office.journal.failing = False
        await office.write(6)
        assert office.scribe.trouble is None
        assert office.journal.batches == [[1], [3, 5, 6]]
        assert office.done == [1, 3, 5, 6]

    play(story)


def test_where_another_writes_nothing_is_done_and_who_asks_is_told_to_ask_again() -> None:
    async def story(office: Office) -> None:
        await office.write(1)
        office.journal.over = True
        told = await asyncio.gather(office.write(2), office.write(3, urgent=True), return_exceptions=True)
        assert all(isinstance(each, Busy) for each in told), told
        assert office.done == [1]

    play(story)


def test_what_is_urgent_is_kept_beside_the_journal_and_what_must_be_sure_is_not_done_otherwise() -> None:
    async def story(office: Office) -> None:
        office.journal.failing = True
        assert await office.write(1, urgent=True, sure=True) == -1
        assert await office.write(2, urgent=True) == -2
        assert office.journal.kept == [1, 2]
        office.journal.reserve = False
        with pytest.raises(JournalError, match="the disk is full"):
            await office.write(3, urgent=True, sure=True)
        assert await office.write(4, urgent=True) == -4
        assert (office.done, office.journal.kept) == ([1, 2, 4], [1, 2])
        office.journal.failing = False
        await office.write(5)
        assert office.journal.batches == [[1, 2, 4, 5]]

    play(story)


def test_what_is_owed_is_written_when_that_is_possible_though_nothing_else_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scribe_module, "RETRY_SECONDS", 0.01)

    async def story(office: Office) -> None:
        office.journal.failing = True
        await office.write(1, urgent=True)
        await asyncio.sleep(0.03)
        office.journal.failing = False
        while office.scribe.trouble is not None:
            await asyncio.sleep(0.005)
        assert office.journal.batches == [[1]]
        assert office.done == [1]

    play(story)


def test_work_that_fails_is_told_to_whoever_asked_and_to_nobody_else() -> None:
    async def story(office: Office) -> None:
        def bad() -> None:
            raise BadInput("the id is in use")

        def worse() -> None:
            raise ZeroDivisionError("a bug")

        told = await asyncio.gather(
            office.scribe.write(Bounded("s", 7), bad),
            office.scribe.write(Bounded("s", 8), worse),
            office.write(9),
            return_exceptions=True,
        )
        assert [type(each) for each in told] == [BadInput, ZeroDivisionError, int]
        assert office.journal.written == [7, 8, 9]

    play(story)


def test_what_was_begun_is_done_though_nobody_waits_for_it() -> None:
    async def story(office: Office) -> None:
        office.journal.gate.clear()
        waiting = asyncio.create_task(office.write(1))
        await asyncio.sleep(0)
        waiting.cancel()
        office.journal.gate.set()
        await office.write(2)
        assert waiting.cancelled()
        assert office.done == [1, 2]

    play(story)


def test_whoever_waits_when_the_scribe_ends_does_not_wait_for_ever() -> None:
    async def story() -> None:
        office = Office()
        office.journal.gate.clear()
        running = asyncio.create_task(office.scribe.run())
        first = asyncio.create_task(office.write(1))
        await asyncio.sleep(0.01)
        second = asyncio.create_task(office.write(2))
        await asyncio.sleep(0)
        running.cancel()
        async with asyncio.timeout(5):
            await asyncio.gather(running, first, second, return_exceptions=True)
        assert first.cancelled()
        assert second.cancelled()
        assert office.done == []

    asyncio.run(story())


def test_a_snapshot_holds_what_was_done_and_what_is_being_written_comes_after_it() -> None:
    async def story(office: Office) -> None:
        await asyncio.gather(office.write(1), office.write(2))
        office.journal.gate.clear()
        later = asyncio.create_task(office.write(3))
        await asyncio.sleep(0.01)
        assert office.scribe.since_snapshot == 2
        await office.scribe.compact(lambda: {"done": list(office.done)})
        office.journal.gate.set()
        await later
        assert office.journal.snapshots == [({"done": [1, 2]}, 2)]
        assert office.scribe.since_snapshot == 1

    play(story)


def test_a_snapshot_after_a_restart_stands_for_all_that_was_there() -> None:
    async def story() -> None:
        journal = Memory(number=41)
        scribe = Scribe(journal)
        await scribe.compact(lambda: {"all": True})
        assert journal.snapshots == [({"all": True}, 41)]

    asyncio.run(story())


def test_no_snapshot_is_taken_of_what_is_owed_nor_does_a_failed_one_count() -> None:
    async def story(office: Office) -> None:
        await office.write(1)
        office.journal.failing = True
        with pytest.raises(JournalError):
            await office.scribe.compact(dict)
        assert office.scribe.since_snapshot == 1
        await office.write(2, urgent=True)
        await office.scribe.compact(dict)
        assert office.journal.snapshots == []

    play(story)
