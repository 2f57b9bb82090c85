"""What tables should hold, as the owners of partitions have decided; while all begins anew, what they held before.

What somebody else says of a partition than its owner does not count; that is up to whoever calls `follow`.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from flowsieve.control.partitions.table_rows import (
    Rows,
    TableAims,
    difference,
    installed,
    net,
    no_rows,
    places,
    renumbered,
    words_of,
)
from flowsieve.flow.diff import Ports
from flowsieve.flow.tables.table_kernel import C_PORTS, C_TRIE
from flowsieve.index.dz import Dz


class DecidedTables:
    """The aims of all switches, and by what they have changed since somebody asked."""

    def __init__(self) -> None:
        self.switches: tuple[str, ...] = ()
        self.number: dict[str, int] = {}
        self._partitions: tuple[Dz, ...] = ()
        self._aims = TableAims()
        self._before: Rows | None = None  # the aims of before, until all partitions are taken up anew
        self._changes: list[Rows] = []

    def begin(self, switches: tuple[str, ...], partitions: tuple[Dz, ...], words: int) -> None:
        """All is to be decided anew, for these switches and partitions; entries have so many words of ports."""
        before = self._aims.rows() if self._before is None else self._before
        self.number = {name: number for number, name in enumerate(switches)}
        stay = {old: self.number[name] for old, name in enumerate(self.switches) if name in self.number}
        self._before, self._aims = renumbered(before, stay, words), TableAims(words)
        self.switches, self._partitions = switches, partitions

    @property
    def beginning(self) -> bool:
        """Whether some partition was not taken up yet since all began."""
        return self._before is not None

    def complete(self) -> None:
        """All partitions are taken up: tell how tables differ from what they should have held before."""
        assert self._before is not None, "it was begun"
        before, self._before = self._before, None
        self._changes = [changes] if len(changes := difference(before, self._aims.rows())) else []

    def fits(self, rows: Rows) -> bool:
        """Whether rows are about tables of this network."""
        right = rows.dtype == np.uint64 and rows.ndim == 2 and rows.shape[1] == C_PORTS + 2 * self._aims.words
        return right and not (len(rows) and int(rows[:, C_TRIE].max()) >= len(self.switches))

    def follow(self, some: Collection[Dz], rows: Rows) -> int:
        """Take over rows that are about some partitions; how many are about others."""
        if not len(rows):
            return 0
        counts = self.within(some, rows)
        self._ask(rows if counts.all() else rows[counts])
        return int((~counts).sum())

    def replace(self, some: Collection[Dz], rows: Rows) -> None:
        """Have all tables of some partitions be what these rows install."""
        before = self._aims.rows()
        self._ask(difference(before[self.within(some, before)], installed(rows[self.within(some, rows)])))

    def within(self, some: Collection[Dz], rows: Rows) -> NDArray[np.bool_]:
        """Which rows are about entries of some partitions."""
        if len(some) == len(self._partitions):
            return np.ones(len(rows), np.bool_)
        flags = np.array([dz in some for dz in self._partitions])
        return flags[places(rows, self._partitions)]

    def change_rows(self) -> Rows:
        """What tables have to change by, as rows; each is told once."""
        found, self._changes = self._changes, []
        if len(found) == 1:
            return found[0]
        return net(np.concatenate((no_rows(self._aims.words), *found)))

    def table(self, switch: str) -> dict[Dz, Ports]:
        """What a switch should hold, as far as it is decided."""
        return self._known.of(self.number[switch], self.switches)

    def size(self, switch: str) -> int:
        return self._known.size(self.number[switch])

    def entries(self, dz: Dz, switches: Collection[str]) -> dict[str, int]:
        """How many entries of a partition there are at each of some switches; none while all begins."""
        if not switches or self._before is not None:
            return {}
        rows = self._aims.rows()
        found = rows[self.within((dz,), rows)][:, C_TRIE].astype(np.int64)
        sizes = np.bincount(found, minlength=len(self.switches)).tolist()
        return {switch: sizes[self.number[switch]] for switch in switches}

    def there(self) -> dict[str, set[Dz]]:
        """The partitions of which something is at each switch: the coarsest table has an entry for each."""
        rows = self._aims.rows()
        pairs = np.stack((rows[:, C_TRIE].astype(np.int64), places(rows, self._partitions)), axis=1)
        found: dict[str, set[Dz]] = {switch: set() for switch in self.switches}
        for switch, place in np.unique(pairs, axis=0).tolist():
            found[self.switches[switch]].add(self._partitions[place])
        return found

    def _ask(self, rows: Rows) -> None:
        """Have tables follow; while all begins anew, that is told in the end."""
        if len(rows):
            self._aims.add(rows)
            if self._before is None:
                self._changes.append(rows)

    @property
    def _known(self) -> TableAims:
        if self._before is None:
            return self._aims
        found = TableAims(words_of(self._before))
        found.add(self._before)
        return found
