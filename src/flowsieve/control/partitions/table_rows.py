"""Entries of all tables as rows of numbers: so they come from kernels and processes, and few are looked at alone.

A row is as in `table_kernel`, with the number of the switch in the place of the trie: switch, hi, lo, length, was, is,
old ports, new ports. An entry that is there is a row that installs it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from flowsieve.flow.diff import Change, Ports
from flowsieve.flow.tables.table_kernel import C_HI, C_IS, C_LEN, C_LO, C_PORTS, C_TRIE, C_WAS
from flowsieve.flow.tables.table_update import TableUpdate
from flowsieve.index.dz import Dz

Rows = NDArray[np.uint64]

KEY = C_WAS  # columns before it tell entries apart
FEW = 2_000  # rows of a table, below which it is not worth while to put them together


def no_rows(words: int) -> Rows:
    """None, of tables whose entries have so many words of ports."""
    return np.zeros((0, C_PORTS + 2 * words), np.uint64)


def words_of(rows: Rows) -> int:
    return (int(rows.shape[1]) - int(C_PORTS)) // 2


def net(rows: Rows) -> Rows:
    """What rows come to, one after the other; what comes to nothing is left out. Sorted by switch and dz."""
    if len(rows) > 1:
        ordered = rows[np.lexsort((rows[:, C_LEN], rows[:, C_LO], rows[:, C_HI], rows[:, C_TRIE]))]
        first = np.ones(len(ordered), np.bool_)
        first[1:] = (ordered[1:, :KEY] != ordered[:-1, :KEY]).any(axis=1)
        last = np.append(first[1:], True)
        rows = ordered[first]
        new = C_PORTS + words_of(rows)
        rows[:, C_IS], rows[:, new:] = ordered[last, C_IS], ordered[last, new:]
    new = C_PORTS + words_of(rows)
    differs = rows[:, C_WAS] != rows[:, C_IS]
    found: Rows = rows[differs | (rows[:, C_PORTS:new] != rows[:, new:]).any(axis=1)]
    return found


def installed(rows: Rows) -> Rows:
    """The entries that there are after rows, as if each were new."""
    new = C_PORTS + words_of(rows)
    found: Rows = rows[rows[:, C_IS] == 1]
    found[:, C_WAS] = found[:, C_PORTS:new] = 0
    return found


def removed(rows: Rows) -> Rows:
    """Rows that take installed entries out."""
    new = C_PORTS + words_of(rows)
    found = rows.copy()
    found[:, C_WAS], found[:, C_PORTS:new] = rows[:, C_IS], rows[:, new:]
    found[:, C_IS] = found[:, new:] = 0
    return found


def difference(before: Rows, after: Rows) -> Rows:
    """How installed entries differ from others."""
    return net(np.concatenate((removed(before), after)))


def rows_from(changes: Mapping[str, Iterable[Change]], number: Mapping[str, int], words: int) -> Rows:
    """Changes as rows, given the numbers of switches."""
    made: list[list[int]] = []
    for switch, some in changes.items():
        for dz, old, new in some:
            aligned = dz.aligned
            head = [number[switch], aligned >> 64, aligned & (2**64 - 1), dz.length]
            head += [old is not None, new is not None]
            made.append(head + _words(old, words) + _words(new, words))
    return np.array(made, np.uint64).reshape(len(made), C_PORTS + 2 * words)


def changes_of(rows: Rows, switches: Sequence[str]) -> dict[str, list[Change]]:
    """Rows as changes by switch, given the names of all in their order; rows of a switch stand together."""
    return TableUpdate(tuple(switches), 1, rows, np.zeros(0, np.int64)).by_switch()


def renumbered(rows: Rows, numbers: Mapping[int, int], words: int) -> Rows:
    """The rows of switches that have other numbers now, in tables with so many words of ports; of others, none."""
    found = rows[np.isin(rows[:, C_TRIE], np.array(list(numbers), np.uint64))]
    made = np.zeros((len(found), C_PORTS + 2 * words), np.uint64)
    had = min(words_of(rows), words)
    made[:, :C_PORTS] = found[:, :C_PORTS]
    made[:, C_TRIE] = [numbers[number] for number in found[:, C_TRIE].tolist()]
    for start, was in ((C_PORTS, C_PORTS), (C_PORTS + words, C_PORTS + words_of(rows))):
        made[:, start : start + had] = found[:, was : was + had]
    return made


def within(rows: Rows, dz: Dz) -> NDArray[np.bool_]:
    """Which rows are about entries that a dz covers."""
    found = rows[:, C_LEN] >= np.uint64(dz.length)
    first = dz.aligned
    for column, word, bits in (
        (C_HI, first >> 64, min(dz.length, 64)),
        (C_LO, first & (2**64 - 1), max(0, dz.length - 64)),
    ):
        if bits:
            found &= rows[:, column] >> np.uint64(64 - bits) == np.uint64(word >> (64 - bits))
    return found


def places(rows: Rows, partitions: Sequence[Dz]) -> NDArray[np.int64]:
    """The number of the partition that each row's entry lies in, given all in their order."""
    if max(dz.length for dz in partitions) <= 64:
        starts = np.array([dz.aligned >> 64 for dz in partitions], np.uint64)
        return np.searchsorted(starts, rows[:, C_HI], side="right") - 1
    found = np.zeros(len(rows), np.int64)
    for number, dz in enumerate(partitions):
        found[within(rows, dz)] = number
    return found


class TableAims:
    """What all tables should hold. Rows are put together when somebody asks, or when they have become many.

    That is done switch by switch, so that nobody waits for all of them at once.
    """

    def __init__(self, words: int = 1) -> None:
        self.words = words
        self._tables: dict[int, _Aim] = {}  # by the numbers of switches

    def add(self, rows: Rows) -> None:
        """Tables change by these rows."""
        if not len(rows):
            return
        ordered = rows[np.argsort(rows[:, C_TRIE], kind="stable")]
        starts = np.flatnonzero(np.diff(ordered[:, C_TRIE])) + 1
        for some in np.split(ordered, starts):
            self._tables.setdefault(int(some[0, C_TRIE]), _Aim(no_rows(self.words))).add(some)

    def rows(self) -> Rows:
        """All entries, by switch and dz."""
        tables = (self._tables[number].rows() for number in sorted(self._tables))
        return np.concatenate((no_rows(self.words), *tables))

    def of(self, switch: int, switches: Sequence[str]) -> dict[Dz, Ports]:
        """The table of a switch, by its number."""
        if switch not in self._tables:
            return {}
        mine = changes_of(self._tables[switch].rows(), switches)
        return {dz: new for some in mine.values() for dz, _, new in some if new is not None}

    def size(self, switch: int) -> int:
        """How many entries a switch has."""
        return self._tables[switch].size if switch in self._tables else 0


class _Aim:
    """What one table should hold: entries, and changes that came since."""

    def __init__(self, base: Rows) -> None:
        self._base = base
        self._news: list[Rows] = []
        self._waiting = 0
        self.size = 0

    def add(self, rows: Rows) -> None:
        self._news.append(rows)
        self._waiting += len(rows)
        self.size += int(rows[:, C_IS].sum()) - int(rows[:, C_WAS].sum())
        if self._waiting > max(FEW, len(self._base)):
            self.rows()

    def rows(self) -> Rows:
        if self._news:
            self._base = installed(net(np.concatenate((self._base, *self._news))))
            self._news, self._waiting = [], 0
            assert len(self._base) == self.size, "changes do not fit the table that they are of"
        return self._base


def _words(ports: Ports | None, words: int) -> list[int]:
    found = [0] * words
    for port in ports or ():
        found[(port - 1) >> 6] |= 1 << ((port - 1) & 63)
    return found
