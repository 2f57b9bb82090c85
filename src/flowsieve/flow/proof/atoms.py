"""The address space cut into atoms: ranges whose addresses are all treated alike.

A set of atoms is a column of bits, 64 atoms a word; many sets over the same atoms are the columns of a
matrix.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flowsieve.flow.flat import FlatTable, Words
from flowsieve.flow.proof import verify_kernel as kernel
from flowsieve.flow.wiring import Wiring
from flowsieve.header.encoding import Encoding, Keys
from flowsieve.index.dzset import DzSet


@dataclass(frozen=True, slots=True, eq=False)
class Ranges:
    """Stretches of keys, each belonging to a column; an end of 0 is that of the whole space."""

    column: NDArray[np.int64]
    begin: Keys
    end: Keys

    @classmethod
    def of(cls, encoding: Encoding, regions: Sequence[tuple[int, DzSet]]) -> Ranges:
        """Where parts of the content space lie among the keys."""
        sets = [dz for _, dz in regions]
        hi, lo, length = (
            np.concatenate([getattr(dz, name) for dz in sets] or [np.empty(0, kind)])
            for name, kind in (("hi", np.uint64), ("lo", np.uint64), ("length", np.int64))
        )
        begin = encoding.keys_of(hi, lo)
        return cls(
            column=np.repeat(np.array([column for column, _ in regions], np.int64), list(map(len, sets))),
            begin=begin,
            end=kernel.ends_of(*begin, length + encoding.ahead),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Atoms:
    """Atom i reaches from key (hi, lo)[i] to the next one's; the first starts at 0."""

    hi: Words
    lo: Words

    @classmethod
    def between(cls, cuts: Iterable[Keys]) -> Atoms:
        """The atoms that these keys separate."""
        pairs = [(np.zeros(1, np.uint64), np.zeros(1, np.uint64)), *cuts]
        hi, lo = np.concatenate([hi for hi, _ in pairs]), np.concatenate([lo for _, lo in pairs])
        order = np.lexsort((lo, hi)) if lo.any() else np.argsort(hi)
        hi, lo = hi[order], lo[order]
        new = np.append(True, (hi[1:] != hi[:-1]) | (lo[1:] != lo[:-1]))
        return cls(hi[new], lo[new])

    def __len__(self) -> int:
        return len(self.hi)

    @property
    def words(self) -> int:
        return -(-len(self) // 64)

    def addressed(self, encoding: Encoding, bits: int) -> Words:
        """The atoms that an event of so many bits can be sent to, as a column."""
        flags = np.ones(64 * self.words, np.uint8)
        below = (1 << (128 - encoding.ahead - bits)) - 1
        hi, lo = np.uint64(below >> 64), np.uint64(below & (2**64 - 1))
        for atom in np.flatnonzero((self.hi & hi | self.lo & lo) != 0).tolist():
            flags[atom] = any(True for _ in encoding.cells_between(bits, *self.span(atom)))
        return np.packbits(flags, bitorder="little").view(np.uint64)

    def span(self, atom: int) -> tuple[int, int]:
        """The first key of an atom and the one just behind it, as numbers."""
        if atom + 1 < len(self):
            return self._key(atom), self._key(atom + 1)
        return self._key(atom), 1 << 128

    def _key(self, atom: int) -> int:
        return int(self.hi[atom]) << 64 | int(self.lo[atom])

    def marked(self, ranges: Ranges, columns: int) -> Words:
        """The atoms in each column's ranges."""
        bits = np.zeros((self.words, columns), np.uint64)
        kernel.mark(bits, ranges.column, self.hi, self.lo, *ranges.begin, *ranges.end)
        return bits

    def sent(self, tables: Sequence[FlatTable], wiring: Wiring) -> Words:
        """The atoms that leave each slot, if they come to its switch at all."""
        sends = np.zeros((self.words, wiring.slots), np.uint64)
        for first, table in zip(wiring.first, tables, strict=False):
            begin = kernel.numbers_of(self.hi, self.lo, table.hi, table.lo)
            kernel.spread(sends, first, begin, len(self), table.ports)
        return sends

    def runs(self, bits: Words) -> Iterator[tuple[int, int]]:
        """The stretches of keys that a set of atoms is made of, as (first, just behind)."""
        flags = np.unpackbits(np.ascontiguousarray(bits).view(np.uint8), bitorder="little")[: len(self)]
        edges = np.flatnonzero(np.diff(flags, prepend=0, append=0)).reshape(-1, 2)
        for begin, end in edges.tolist():
            yield self.span(begin)[0], self.span(end - 1)[1]
