"""All that changes the state passes here, one after the other: it is written down, then it is done.

What comes while the journal is being written waits and is written at once. So the journal's order is the order in
which things were done, and a thousand requests a second do not wait for a thousand disks.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, TypeVar

from flowsieve.control.memory.journal import Entry, Journal, Snapshot
from flowsieve.errors import JournalError

log = logging.getLogger(__name__)

RETRY_SECONDS = 1.0  # until what is owed is written, though nothing else comes

T = TypeVar("T")
E = TypeVar("E", bound=Entry)


@dataclass(slots=True)
class _Turn:
    entry: Entry
    work: Callable[[], Any] | None
    urgent: bool
    sure: bool = False
    together: Callable[[Sequence[Any]], Sequence[Any]] | None = None  # instead of work of its own
    done: asyncio.Future[Any] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class Scribe:
    """`write` an entry and have its work done; `run` does all of it, in order."""

    def __init__(self, journal: Journal) -> None:
        self.trouble: str | None = None  # why nothing can be written, if it cannot
        self._journal = journal
        self._turns: list[_Turn] = []
        self._owed: list[Entry] = []  # done, and not written yet
        self._kept = True  # whether the journal keeps what is owed
        self._news = asyncio.Event()
        self.turns = 0  # that were taken
        self._number = journal.number
        self._since = journal.length

    @property
    def waiting(self) -> int:
        """How many wait for their turn."""
        return len(self._turns)

    @property
    def since_snapshot(self) -> int:
        """How many entries were written since the last snapshot."""
        return self._since

    async def write(
        self, entry: Entry, work: Callable[[], T], *, urgent: bool = False, sure: bool = False
    ) -> T:
        """Write an entry down, then do its work, after all that came before; returns what the work does, or raises.

        Where nothing can be written, nothing is done and JournalError is raised; but what is urgent is done, and
        written as soon as that is possible. The journal keeps it until then, if it can; where it has to be `sure`,
        it is not done otherwise. Where nothing will be written here any more, nothing is done at all.
        """
        result: T = await self._in_turn(_Turn(entry, work, urgent, sure))
        return result

    async def write_together(self, entry: E, work: Callable[[Sequence[E]], Sequence[T | Exception]]) -> T:
        """The same, with one work for all entries that come together: it returns for each what there is to return."""
        result: T = await self._in_turn(_Turn(entry, None, False, together=work))
        return result

    def _in_turn(self, turn: _Turn) -> asyncio.Future[Any]:
        """Its turn comes even if nobody waits any more: then its future is cancelled."""
        self._turns.append(turn)
        self._news.set()
        return turn.done

    async def compact(self, take: Callable[[], Snapshot]) -> None:
        """Keep a snapshot in the place of all that was done so far."""
        if not self._owed:
            number, since = self._number, self._since
            await self._journal.compact(take(), number)
            self._since -= since

    async def run(self) -> None:
        """Work until cancelled; all that wait are cancelled then."""
        turns: list[_Turn] = []
        try:
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(RETRY_SECONDS if self._owed else None):
                        await self._news.wait()
                self._news.clear()
                turns, self._turns = self._turns, []
                self._do(turns, await self._written(turns))
                self.turns += len(turns)
        finally:
            for turn in turns + self._turns:
                turn.done.cancel()

    def _do(self, turns: list[_Turn], unwritten: JournalError | None) -> None:
        for together, some in groupby(turns, key=lambda turn: turn.together):
            group = list(some)
            if together is None:
                for turn in group:
                    self._do_one(turn, unwritten)
            elif unwritten is not None:
                for turn in group:
                    _fail(turn, _same(unwritten))
            else:
                _do_all(group, together)

    def _do_one(self, turn: _Turn, unwritten: JournalError | None) -> None:
        if unwritten is not None and (unwritten.final or not turn.urgent or (turn.sure and not self._kept)):
            _fail(turn, _same(unwritten))
            return
        if unwritten is not None:
            self._owed.append(turn.entry)
        assert turn.work is not None
        try:
            _succeed(turn, turn.work())
        except Exception as error:  # also one of our own making: what comes after shall not suffer
            _fail(turn, error)

    async def _written(self, turns: list[_Turn]) -> JournalError | None:
        """Write the entries of all turns, after those that are owed; why not, if that failed."""
        entries = self._owed + [turn.entry for turn in turns]
        try:
            self._number = await self._journal.append(entries)
        except JournalError as error:
            if self.trouble is None:
                log.error("%s", error)
            self.trouble = str(error)
            urgent = [turn.entry for turn in turns if turn.urgent]
            self._kept = not urgent or await self._keep(self._owed + urgent)
            return error
        self._owed, self.trouble = [], None
        self._since += len(entries)
        return None

    async def _keep(self, entries: list[Entry]) -> bool:
        try:
            await self._journal.keep(entries)
        except JournalError:
            return False
        return True


def _do_all(turns: list[_Turn], work: Callable[[Sequence[Any]], Sequence[Any]]) -> None:
    try:
        results = work([turn.entry for turn in turns])
    except Exception as error:  # likewise
        results = [error] * len(turns)
    for turn, result in zip(turns, results, strict=True):
        if isinstance(result, Exception):
            _fail(turn, result)
        else:
            _succeed(turn, result)


def _same(error: JournalError) -> JournalError:
    """An error of its own for each who hears of it, of the same kind."""
    return type(error)(str(error))


def _succeed(turn: _Turn, result: Any) -> None:
    if not turn.done.done():
        turn.done.set_result(result)


def _fail(turn: _Turn, error: Exception) -> None:
    if not turn.done.done():
        turn.done.set_exception(error)
        turn.done.exception()  # whoever has left need not hear of it
