"""A DzSet: a part of the content space, as a set of dz in canonical form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flowsieve.errors import BadInput
from flowsieve.index import dzset_kernel as kernel
from flowsieve.index.dz import MAX_LENGTH, Dz

Words = NDArray[np.uint64]
Lengths = NDArray[np.int64]

_LOW = (1 << 64) - 1


@final
class DzSet:
    """A set of dz of which none covers another and no two are siblings, sorted; it never changes.

    The dz stand in three arrays: `hi` and `lo` hold each one left-aligned in 128 bits, `length` its length.
    What the operations mean is written down in `algebra`.

    >>> left, right = DzSet.of("00", "010"), DzSet.of("011", "1")
    >>> left | right
    DzSet('')
    >>> DzSet.of("0") - DzSet.of("010")
    DzSet('00', '011')
    >>> DzSet.of("0") & DzSet.of("010", "11")
    DzSet('010')
    """

    __slots__ = ("_hash", "hi", "length", "lo")

    hi: Words
    lo: Words
    length: Lengths
    _hash: int | None

    def __init__(self, cells: Iterable[Dz] = ()) -> None:
        listed = list(cells)
        aligned = [dz.aligned for dz in listed]
        hi = np.array([number >> 64 for number in aligned], np.uint64)
        lo = np.array([number & _LOW for number in aligned], np.uint64)
        self._seal(*_canonical(hi, lo, np.array([dz.length for dz in listed], np.int64)))

    def _seal(self, hi: Words, lo: Words, length: Lengths) -> None:
        for name, array in (("hi", hi), ("lo", lo), ("length", length)):
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        object.__setattr__(self, "_hash", None)

    @classmethod
    def _sealed(cls, arrays: tuple[Words, Words, Lengths]) -> DzSet:
        """A set of arrays that are known to be canonical, and that nobody else holds."""
        made = cls.__new__(cls)
        made._seal(*arrays)
        return made

    @classmethod
    def of(cls, *cells: Dz | str | Iterable[Dz | str]) -> DzSet:
        """A set from dz, from their texts, or from iterables of either."""
        listed: list[Dz] = []
        for cell in cells:
            parts = (cell,) if isinstance(cell, Dz | str) else cell
            listed.extend(part if isinstance(part, Dz) else Dz.parse(part) for part in parts)
        return cls(listed)

    @classmethod
    def from_arrays(cls, hi: ArrayLike, lo: ArrayLike, length: ArrayLike) -> DzSet:
        """A set from left-aligned dz in any order and any form."""
        hi, lo = np.array(hi, np.uint64), np.array(lo, np.uint64)
        lengths = np.array(length, np.int64)
        if not (hi.ndim == 1 and hi.shape == lo.shape == lengths.shape):
            raise BadInput(f"the arrays of dz differ in shape: {hi.shape}, {lo.shape}, {lengths.shape}")
        if (row := int(kernel.first_untidy(hi, lo, lengths))) >= 0:
            raise BadInput(
                f"dz {row} of the arrays is none: 0 to {MAX_LENGTH} bits and zeros behind them, "
                f"not {lengths[row]} bits of {int(hi[row]):016x}{int(lo[row]):016x}"
            )
        return cls._sealed(_canonical(hi, lo, lengths))

    @classmethod
    def cut(cls, hi: Words, lo: Words, length: Lengths, sizes: Iterable[int]) -> list[DzSet]:
        """Sets whose dz stand one set after the other in arrays, each set with its number of dz."""
        if not hi.shape == lo.shape == length.shape or int(kernel.first_untidy(hi, lo, length)) >= 0:
            raise BadInput("the arrays are none that sets of dz were written into")
        made, start = [], 0
        for size in sizes:
            end = start + size
            made.append(cls._sealed((hi[start:end], lo[start:end], length[start:end])))
            start = end
        if start != len(hi):
            raise BadInput(f"the sizes of sets of dz add up to {start}, and there are {len(hi)} dz")
        return made

    def run(self, first: int, last: int) -> DzSet:
        """The dz from one up to and without another, in their order."""
        return self._sealed((self.hi[first:last], self.lo[first:last], self.length[first:last]))

    def covers(self, dz: Dz) -> bool:
        """Whether the whole cell lies in this set."""
        return self._find(dz) >= 0

    def covers_set(self, other: DzSet) -> bool:
        """Whether the whole other set lies in this one."""
        return bool(kernel.covers_all(*self._arrays, *other._arrays))

    def covers_many(self, hi: Words, lo: Words, length: int) -> NDArray[np.bool_]:
        """Which of many dz of one length, left-aligned, lie in this set."""
        found: NDArray[np.int64] = kernel.find_many(*self._arrays, hi, lo, length)
        return found >= 0

    def overlaps(self, other: DzSet) -> bool:
        """Whether the two share anything."""
        return bool(kernel.overlap_any(*self._arrays, *other._arrays))

    def __or__(self, other: DzSet) -> DzSet:
        return self._sealed(kernel.union(*self._arrays, *other._arrays))

    def __and__(self, other: DzSet) -> DzSet:
        return self._sealed(kernel.intersection(*self._arrays, *other._arrays))

    def __sub__(self, other: DzSet) -> DzSet:
        return self._sealed(kernel.difference(*self._arrays, *other._arrays))

    @property
    def share(self) -> float:
        """The part of the space that the set takes, by volume."""
        return float(np.exp2(-self.length.astype(np.float64)).sum())

    def texts(self) -> list[str]:
        """The dz as texts, in order."""
        return [str(dz) for dz in self]

    def __len__(self) -> int:
        return len(self.hi)

    def __iter__(self) -> Iterator[Dz]:
        for hi, lo, length in zip(self.hi.tolist(), self.lo.tolist(), self.length.tolist(), strict=True):
            yield Dz((hi << 64 | lo) >> (128 - length), length)

    def __contains__(self, dz: object) -> bool:
        if not isinstance(dz, Dz):
            return False
        found = self._find(dz)
        return found >= 0 and int(self.length[found]) == dz.length

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DzSet):
            return NotImplemented
        return all(np.array_equal(a, b) for a, b in zip(self._arrays, other._arrays, strict=True))

    def __hash__(self) -> int:
        if self._hash is None:
            object.__setattr__(self, "_hash", hash(tuple(array.tobytes() for array in self._arrays)))
        assert self._hash is not None
        return self._hash

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a DzSet does not change: {name}")

    def __reduce__(self) -> tuple[Any, ...]:
        return DzSet.from_arrays, self._arrays

    def __repr__(self) -> str:
        shown = [repr(text) for _, text in zip(range(8), map(str, self), strict=False)]
        more = [f"… {len(self) - 8} more"] if len(self) > 8 else []
        return f"DzSet({', '.join(shown + more)})"

    @property
    def _arrays(self) -> tuple[Words, Words, Lengths]:
        return self.hi, self.lo, self.length

    def _find(self, dz: Dz) -> int:
        aligned = dz.aligned
        return int(kernel.find(*self._arrays, np.uint64(aligned >> 64), np.uint64(aligned & _LOW), dz.length))


def union(sets: Sequence[DzSet]) -> DzSet:
    """All that lies in some of many sets."""
    return DzSet._sealed(
        _canonical(
            np.concatenate([dz.hi for dz in sets]),
            np.concatenate([dz.lo for dz in sets]),
            np.concatenate([dz.length for dz in sets]),
        )
    )


def _canonical(hi: Words, lo: Words, length: Lengths) -> tuple[Words, Words, Lengths]:
    order = np.lexsort((length, lo, hi))
    arrays: tuple[Words, Words, Lengths] = kernel.canonical(hi[order], lo[order], length[order])
    return arrays


EMPTY = DzSet()
WHOLE = DzSet((Dz(0, 0),))
