"""What was lost on the way, although filtering leaves gaps: silence proves nothing, counts do.

A subscriber cannot tell a lost event from one that it did not ask for by sequence numbers alone. So a
publisher counts, for a few prefix lengths (the *rungs* of a ladder), what it has sent into the cell of each, and
stamps every packet with the counts of its own cells. Whoever wants a cell as a whole sees each of its counts: a
gap is a loss, exactly.

A stamp is two numbers: the count, and the *birth*, the sequence number of the first event counted. A publisher
forgets cells when there are too many; the next event into such a cell begins a new count with a later birth.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from flowsieve.index.dz import Dz
from flowsieve.index.dzset import DzSet
from flowsieve.protocol.limits import MAX_NUMBER

STEP = 4  # bits from rung to rung
LONGEST = 44  # no rung is longer: cells so small are hardly ever hit twice
CELLS = 1 << 14  # cells that a publisher counts on each rung, and that a subscriber follows in all
RECENT = 32  # dz that a publisher tells digests of
PUBLISHERS = 1 << 12  # that a subscriber knows
GAPS = 1 << 8  # holes in a cell's counts that may still be filled


@cache
def ladder(bits: int) -> tuple[int, ...]:
    """The prefix lengths that are counted for dz of so many bits: at most 12.

    >>> ladder(11)
    (0, 4, 8, 11)
    """
    rungs = tuple(range(0, min(bits, LONGEST), STEP))
    return (*rungs, bits) if bits <= LONGEST else rungs


class Stamper:
    """The publisher's counts."""

    def __init__(self, bits: int, cells: int = CELLS) -> None:
        self._bits = bits
        self._cells = cells
        self._rungs: list[tuple[int, dict[int, list[int]]]] = [(bits - length, {}) for length in ladder(bits)]
        self._recent: dict[int, None] = {}

    def stamp(self, dz: Dz, seq: int) -> list[int]:
        """Count an event about to be sent to a dz; what to write on its packet: a count and a birth per rung."""
        stamps: list[int] = []
        bits = dz.bits
        for shift, counts in self._rungs:
            cell = bits >> shift
            found = counts.get(cell)
            if found is None:
                if len(counts) >= self._cells:
                    del counts[next(iter(counts))]
                found = counts[cell] = [0, seq]
            found[0] += 1
            stamps += found
        recent = self._recent
        recent.pop(bits, None)
        recent[bits] = None
        if len(recent) > RECENT:
            del recent[next(iter(recent))]
        return stamps

    def digests(self) -> list[tuple[Dz, list[int]]]:
        """The dz last sent to, and the stamps as they stand: they show the loss of what nothing came after."""
        return [(Dz(bits, self._bits), self._standing(bits)) for bits in reversed(self._recent)]

    def rest(self) -> None:
        """Tell no more of what was sent so far."""
        self._recent.clear()

    def _standing(self, bits: int) -> list[int]:
        stamps: list[int] = []
        for shift, counts in self._rungs:
            stamps += counts.get(bits >> shift, (0, 0))
        return stamps


@dataclass(slots=True)
class _Count:
    """What a subscriber knows of one cell's count: `high` was sent; all to there came, but for the gaps."""

    high: int
    gaps: list[tuple[int, int]] = field(default_factory=list)  # first and last of those that did not come

    def reach(self, count: int) -> int:
        """Learn that all up to a count were sent; how many of them are missing."""
        missing = count - self.high
        if missing > 0:
            self.gaps.append((self.high + 1, count))
            if len(self.gaps) > GAPS:
                del self.gaps[0]
            self.high = count
        return max(0, missing)

    def fill(self, count: int) -> bool:
        """Whether a count was missing; it came."""
        for at, (first, last) in enumerate(self.gaps):
            if first <= count <= last:
                ends = ((first, count - 1), (count + 1, last))
                self.gaps[at : at + 1] = [end for end in ends if end[0] <= end[1]]
                return True
        return False


@dataclass(slots=True)
class _Publisher:
    """The highest sequence number seen; what has one above `floor` was sent after our DZ was in force."""

    highest: int = 0
    floor: int | None = None


class _Cell(NamedTuple):
    """One count of one publisher: for dz of so many bits, the cell on a rung, and the count's birth."""

    publisher: bytes
    bits: int
    rung: int
    prefix: int
    birth: int


class LossMeter:
    """The subscriber's side: how many packets into its DZ were sent and did not come.

    Never more than were lost, whatever order packets come in and however often, as long as what comes late is
    not later than hundreds of other losses. Where nothing can be said, because no counted cell lies in the DZ,
    an event is `unchecked`. What a publisher sent before its first packet that came is not counted.
    """

    def __init__(self, cells: int = CELLS, publishers: int = PUBLISHERS) -> None:
        self.lost = 0
        self.unchecked = 0
        self._room = cells, publishers
        self._wanted: dict[int, set[int]] = {}  # the DZ: by length, its dz
        self._counts: dict[_Cell, _Count] = {}
        self._left: dict[_Cell, _Count] = {}  # counts with gaps that we do not follow any more
        self._publishers: dict[bytes, _Publisher] = {}
        self._crowded = False  # publishers were forgotten: one that seems new may be none

    def want(self, dz: DzSet) -> None:
        """From now on the network owes us this DZ; counts that we go on to follow go on."""
        self._wanted = {}
        for each in dz:
            self._wanted.setdefault(each.length, set()).add(each.bits)
        for cell in [cell for cell in self._counts if not self._follows(cell)]:
            count = self._counts.pop(cell)
            if count.gaps:
                if len(self._left) >= self._room[0]:
                    del self._left[next(iter(self._left))]
                self._left[cell] = count
        for publisher in self._publishers.values():
            publisher.floor = None

    def begin(self, dz: DzSet, before: LossMeter) -> None:
        """Begin where the network has owed us a DZ since before the first packet was counted.

        `before` has heard of what came so far. A count that was born after all that came of its publisher has to be
        seen from its start: none of it has come yet.
        """
        self.want(dz)
        self._crowded = before._crowded
        self._publishers = {
            name: _Publisher(known.highest, MAX_NUMBER if before._crowded else known.highest)
            for name, known in before._publishers.items()
        }

    def heard(self, publisher: bytes, seq: int) -> None:
        """A packet came that is counted elsewhere; what was sent before it may have come as well."""
        known = self._met(publisher)
        known.highest = max(known.highest, seq)

    def wants(self, dz: Dz) -> bool:
        """Whether a dz lies in our DZ."""
        return self._rung(dz, dz.length) is not None

    def saw(self, publisher: bytes, seq: int, dz: Dz, stamps: tuple[int, ...], *, event: bool = True) -> int:
        """A packet came, an event or a digest; how many more are lost now, negative if one came late."""
        known = self._known(publisher, seq)
        rung, rungs = self._rung(dz, dz.length), len(ladder(dz.length))
        if len(stamps) != 2 * rungs:
            return 0
        change = self._late(publisher, dz, stamps) if self._left and event else 0
        if rung == rungs:
            self.unchecked += event
        elif rung is not None and stamps[2 * rung]:
            change += self._follow(known, _cell(publisher, dz, rung, stamps), stamps[2 * rung], event)
        self.lost += change
        return change

    def _known(self, publisher: bytes, seq: int) -> _Publisher:
        known = self._met(publisher)
        known.highest = max(known.highest, seq)
        if known.floor is None:
            known.floor = MAX_NUMBER if self._crowded else known.highest
        return known

    def _met(self, publisher: bytes) -> _Publisher:
        known = self._publishers.get(publisher)
        if known is None:
            if len(self._publishers) >= self._room[1]:
                del self._publishers[next(iter(self._publishers))]
                self._crowded = True
            known = self._publishers[publisher] = _Publisher()
        return known

    def _follow(self, known: _Publisher, cell: _Cell, count: int, event: bool) -> int:
        """Compare a count with what we know of it; how many more are lost."""
        followed = self._counts.get(cell) or self._begin(known, cell, count - event)
        if event and count == followed.high + 1:
            followed.high = count
            return 0
        missing = followed.reach(count)
        return missing - (event and followed.fill(count))

    def _begin(self, known: _Publisher, cell: _Cell, before: int) -> _Count:
        """Begin to follow a count: from its start if that lies in our time, else from here."""
        assert known.floor is not None
        if len(self._counts) >= self._room[0]:
            oldest = next(iter(self._counts))
            del self._counts[oldest]
            owner = self._publishers.get(oldest.publisher)
            if owner is not None and owner.floor is not None:
                # What we forget must not seem new when it returns.
                owner.floor = max(owner.floor, owner.highest)
        count = self._counts[cell] = _Count(0 if cell.birth > known.floor else before)
        return count

    def _late(self, publisher: bytes, dz: Dz, stamps: tuple[int, ...]) -> int:
        """Take back losses that were counted while we followed other cells."""
        change = 0
        for rung in range(len(stamps) // 2):
            cell = _cell(publisher, dz, rung, stamps)
            count = self._left.get(cell)
            if count is not None and count.fill(stamps[2 * rung]):
                change -= 1
                if not count.gaps:
                    del self._left[cell]
        return change

    def _rung(self, dz: Dz, bits: int) -> int | None:
        """The first rung on which the cell of a dz lies in our DZ; None if the dz itself does not."""
        for length, cells in self._wanted.items():
            if length <= dz.length and dz.bits >> (dz.length - length) in cells:
                return bisect_left(ladder(bits), length)
        return None

    def _follows(self, cell: _Cell) -> bool:
        dz = Dz(cell.prefix, ladder(cell.bits)[cell.rung])
        return self._rung(dz, cell.bits) == cell.rung


def _cell(publisher: bytes, dz: Dz, rung: int, stamps: tuple[int, ...]) -> _Cell:
    length = ladder(dz.length)[rung]
    return _Cell(publisher, dz.length, rung, dz.bits >> (dz.length - length), stamps[2 * rung + 1])
