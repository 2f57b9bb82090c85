"""The right of a controller to its switches, kept in a file: who it is, and the number of its last start.

A number that switches are claimed with is a *term* (the upper half) and a controller (the lower). Terms grow by one
from one start to the next. Who takes over from another controller begins a new age, a multiple of `AGE`: its numbers
are then above all that the other ever claimed a switch with, also those switches that were away meanwhile.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from flowsieve.errors import BadJournal, JournalError
from flowsieve.southbound.fabric import Claim

log = logging.getLogger(__name__)

HALF = 1 << 32
AGE = 1 << 16
MOST_OVERTAKEN = 64


@dataclass(frozen=True, slots=True)
class Tenure:
    """What the file says: which controller this is, its last term, and the controllers it has taken over from."""

    controller: int
    term: int = 0
    overtaken: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for each in (self.controller, self.term, *self.overtaken):
            if not isinstance(each, int) or not 0 <= each < HALF:
                raise ValueError(f"{each!r} is no number of 32 bits")

    @property
    def number(self) -> int:
        return self.term * HALF + self.controller

    @classmethod
    def first(cls) -> Tenure:
        """That of a controller that nobody knows yet."""
        return cls(secrets.randbelow(HALF - 2) + 1)

    @classmethod
    def read(cls, text: str | bytes) -> Tenure:
        """What `written` made; raises ValueError, KeyError or TypeError where it did not."""
        known = json.loads(text)
        return cls(known["controller"], known["term"], tuple(known["overtaken"]))

    def written(self) -> str:
        return json.dumps(asdict(self))


def later(one: int, other: int) -> bool:
    """Whether a number comes after another, as switches see it: they count in a circle of 64 bits."""
    return 0 < (one - other) % HALF**2 < HALF**2 // 2


class TermClaim(Claim, ABC):
    """A claim whose numbers outlive the process, wherever they are kept; with `take_over`, also to switches of others.

    Once another has claimed a switch after us, it stays with that one, whatever `take_over` says.
    """

    def __init__(self, tenure: Tenure, take_over: bool = False) -> None:
        self._tenure = tenure
        self._take_over = take_over
        self._claiming = False  # whether a number of this start was given out
        self._turn = asyncio.Lock()

    @abstractmethod
    async def _keep(self, tenure: Tenure) -> None:
        """Have it outlive us; raises JournalError where that cannot be."""

    @property
    def number(self) -> int:
        """The last one that was given out, perhaps by an earlier process."""
        return self._tenure.number

    def covers(self, number: int) -> bool:
        """Whether it is one of our own, of one that we have taken over from, or we take over now."""
        known, after_us = self._tenure, later(number, self._tenure.number)
        if self._claiming and after_us:
            return False
        whose = number % HALF
        return whose == known.controller or self._take_over or (whose in known.overtaken and not after_us)

    async def above(self, number: int | None) -> int:
        """The number of this start; where that would not do, a later one, which counts from then on."""
        async with self._turn:
            new = self._tenure if self._claiming else replace(self._tenure, term=_next(self._tenure.term))
            if number is not None and number % HALF != new.controller:
                whose = number % HALF
                if whose not in new.overtaken:
                    log.warning("switches are taken over from another controller (generation %#x)", number)
                    known = (*new.overtaken, whose)[-MOST_OVERTAKEN:]
                    new = replace(new, overtaken=known, term=_next_age(new.term))
                if not later(new.number, number):
                    new = replace(new, term=_next_age(number // HALF))
            elif number is not None and not (self._claiming or later(new.number, number)):
                new = replace(new, term=_next(number // HALF))
            if new != self._tenure:
                try:
                    await self._keep(new)
                except JournalError as error:
                    if not self._tenure.term or (number is not None and later(number, self._tenure.number)):
                        raise
                    log.error("%s; the number of the last start is used again", error)
                    new = self._tenure
            if new != self._tenure or not self._claiming:
                log.info("switches are claimed with generation %#x from now on", new.number)
            self._tenure, self._claiming = new, True
            return new.number


class KeptClaim(TermClaim):
    """A claim whose numbers are in a file."""

    def __init__(self, path: Path, take_over: bool = False) -> None:
        self._path = path
        there = path.exists()
        super().__init__(read_tenure(path) if there else Tenure.first(), take_over)
        if not there:
            write_tenure(path, self._tenure)

    async def _keep(self, tenure: Tenure) -> None:
        await asyncio.to_thread(write_tenure, self._path, tenure)


def _next(term: int) -> int:
    return (term + 1) % (HALF - 1)


def _next_age(term: int) -> int:
    return (term // AGE + 1) * AGE % (HALF - AGE)


def read_tenure(path: Path) -> Tenure:
    """What a file says."""
    try:
        return Tenure.read(path.read_text())
    except OSError as error:
        raise JournalError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise BadJournal(
            f"{path}, which says which switches are this controller's, is damaged ({error}); bring back a copy, or "
            "move it away and take the switches over"
        ) from None


def write_tenure(path: Path, tenure: Tenure) -> None:
    """Have the file say so, whole at once, also after a power cut."""
    new = path.with_name(path.name + "-new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with new.open("w") as file:
            file.write(tenure.written())
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise JournalError(f"{path} cannot be written: {error.strerror}") from None
