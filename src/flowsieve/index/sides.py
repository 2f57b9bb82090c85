"""Two spaces seen as one, while a network goes over from one index to another: a first bit says in which a cell lies.

So whatever works with cells of one space works with those of both.
"""

from __future__ import annotations

import numpy as np

from flowsieve.index.dz import Dz
from flowsieve.index.dzset import DzSet, Words

OLD, NEW = 0, 1

_TOP = np.uint64(63)
_ONE = np.uint64(1)


def on_side(side: int, dz: Dz) -> Dz:
    """A cell of one of the two spaces, in both together.

    >>> on_side(NEW, Dz.parse("01"))
    Dz('101')
    """
    return Dz(side << dz.length | dz.bits, dz.length + 1)


def side_of(dz: Dz) -> int | None:
    """In which space a cell lies; None if it holds both."""
    return dz.bits >> (dz.length - 1) if dz.length else None


def off_side(dz: Dz) -> Dz:
    """The cell of its own space that a cell of both together is."""
    length = dz.length - 1
    return Dz(dz.bits & ((1 << length) - 1), length)


def cells_on(side: int, cells: DzSet) -> DzSet:
    """A part of one of the two spaces, in both together."""
    return DzSet.from_arrays(*words_on(side, cells.hi, cells.lo), cells.length + 1)


def words_on(side: int, hi: Words, lo: Words) -> tuple[Words, Words]:
    """Many cells of one space, left-aligned in two words, in both together."""
    return hi >> _ONE | np.uint64(side) << _TOP, lo >> _ONE | hi << _TOP


def cells_of(side: int, cells: DzSet) -> DzSet:
    """What of a part of both together lies in one of them.

    >>> cells_of(OLD, DzSet.of("001", "1"))
    DzSet('01')
    """
    own = cells & DzSet((Dz(side, 1),))
    hi, lo = own.hi << _ONE | own.lo >> _TOP, own.lo << _ONE
    return DzSet.from_arrays(hi, lo, own.length - 1)
