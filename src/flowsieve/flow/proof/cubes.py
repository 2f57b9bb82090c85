"""Sets of addresses as unions of cubes: addresses some of whose bits are fixed.

What entries with masks do to all addresses at once is followed in these. Regions are lists of cubes that share nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from flowsieve.header.address import WIDTH

MOST_CUBES = 20_000  # of one region


class TooManyCubes(Exception):
    """A region falls apart into so many cubes that nobody follows them."""


class Cube(NamedTuple):
    """The addresses in which the bits of `mask` are as in `value`, which has no others."""

    value: int
    mask: int

    def meet(self, other: Cube) -> Cube | None:
        """What lies in both."""
        if (self.value ^ other.value) & self.mask & other.mask:
            return None
        return Cube(self.value | other.value, self.mask | other.mask)

    def minus(self, other: Cube) -> Iterator[Cube]:
        """What lies in this one alone, in cubes that share nothing."""
        if (self.value ^ other.value) & self.mask & other.mask:
            yield self
            return
        value, mask, asked = self.value, self.mask, other.mask & ~self.mask
        while asked:
            bit = 1 << asked.bit_length() - 1
            asked ^= bit
            yield Cube(value | bit & ~other.value, mask | bit)
            value, mask = value | bit & other.value, mask | bit

    def size(self) -> int:
        """How many of all addresses it has, in units of the smallest cube."""
        return 1 << WIDTH[6] - self.mask.bit_count()

    def with_some(self, bits: int) -> int | None:
        """An address in it that has some of these bits, and no more of any than it must; None if it has none."""
        if self.value & bits:
            return self.value
        free = bits & ~self.mask
        return self.value | free & -free if free else None


Region = list[Cube]


def shared(region: Iterable[Cube], cube: Cube) -> Region:
    """What of a region lies in a cube."""
    return [both for each in region if (both := each.meet(cube)) is not None]


def without(region: Iterable[Cube], cube: Cube) -> Region:
    """What of a region lies outside a cube."""
    left = [piece for each in region for piece in each.minus(cube)]
    if len(left) > MOST_CUBES:
        raise TooManyCubes
    return left
