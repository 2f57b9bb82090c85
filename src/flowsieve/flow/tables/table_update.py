"""What changes in all tables with an update, as rows of a kernel and as what they mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flowsieve.flow.diff import Change, Ports
from flowsieve.flow.tables import table_kernel
from flowsieve.index.dz import Dz


@dataclass(frozen=True, slots=True, eq=False)
class TableUpdate:
    """The net difference of all tables, rows as in table_kernel, and the tries whose port sets changed."""

    switches: tuple[str, ...]
    partitions: int
    rows: NDArray[np.uint64]
    tries: NDArray[np.int64]

    def __len__(self) -> int:
        """How many flow operations it takes."""
        return len(self.rows)

    def operations(self) -> dict[str, int]:
        """Flow operations per switch, where there are any."""
        numbers, counts = np.unique(self.rows[:, 0] // np.uint64(self.partitions), return_counts=True)
        return {self.switches[int(n)]: int(count) for n, count in zip(numbers, counts, strict=True)}

    @property
    def touched(self) -> set[str]:
        """The switches whose port sets have changed, be their tables the same or not."""
        return {self.switches[n] for n in (self.tries // self.partitions).tolist()}

    def by_switch(self) -> dict[str, list[Change]]:
        words = (self.rows.shape[1] - table_kernel.C_PORTS) // 2
        found: dict[str, list[Change]] = {}
        known: dict[tuple[int, ...], Ports] = {}
        cells: dict[tuple[int, int, int], Dz] = {}  # the same ones stand in the tables of many switches
        last, own = -1, list[Change]()  # rows of one trie stand together
        for row in self.rows.tolist():
            cell = row[1], row[2], row[3]
            dz = cells.get(cell)
            if dz is None:
                dz = cells[cell] = dz_of(*cell)
            old = ports_of(row[6 : 6 + words], known) if row[4] else None
            new = ports_of(row[6 + words :], known) if row[5] else None
            if row[0] != last:
                last, own = row[0], found.setdefault(self.switches[row[0] // self.partitions], [])
            own.append(Change(dz, old, new))
        return found


def dz_of(hi: int, lo: int, length: int) -> Dz:
    return Dz((hi << 64 | lo) >> (128 - length), length)


def ports_of(words: list[int], known: dict[tuple[int, ...], Ports]) -> Ports:
    """The port numbers of a label, counted from 1."""
    key = tuple(words)
    if key not in known:
        known[key] = tuple(
            64 * w + bit + 1 for w, word in enumerate(words) for bit in range(64) if word >> bit & 1
        )
    return known[key]
