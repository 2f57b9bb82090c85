"""How the dz of two indexes stand in packets while a network goes over from one to the other: each behind its own tag.

The first bit of a dz says of which index it is (`index.sides`); what follows is what it is alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from flowsieve.errors import BadPlan
from flowsieve.header.address import Prefix
from flowsieve.header.encoding import Keys, PrefixEncoding
from flowsieve.header.match import Match, PrefixMatch
from flowsieve.header.tag import Tag
from flowsieve.index.dz import Dz
from flowsieve.index.sides import NEW, OLD, off_side, on_side, side_of


class JointEncoding:
    """Both encodings as one.

    >>> from flowsieve.header.tag import POOLS
    >>> joint = JointEncoding(*POOLS["ipv6"][:2])
    >>> str(joint.match_of(Dz.parse("0110"))), joint.text(Dz.parse("1110"))
    ('ff0e:c000::/19', 'ff15:c000::')
    """

    def __init__(self, old: Tag, new: Tag, former: Sequence[Tag] = ()) -> None:
        self._sides = PrefixEncoding(old, former), PrefixEncoding(new)
        if old == new or self._sides[OLD].room != self._sides[NEW].room:
            raise BadPlan(f"{old.group} and {new.group} cannot be in use beside each other")
        self.tag = Tag(_around(old.group, new.group))
        self.family = self._sides[OLD].family
        self.room, self.ahead = self._sides[OLD].room + 1, self._sides[OLD].ahead - 1

    @property
    def roots(self) -> tuple[Dz, ...]:
        return Dz(OLD, 1), Dz(NEW, 1)

    @property
    def sides(self) -> tuple[PrefixEncoding, PrefixEncoding]:
        """The encoding of the old index, and of the new one."""
        return self._sides

    # Entries.

    def match_of(self, dz: Dz) -> PrefixMatch:
        return self._side(dz).match_of(off_side(dz))

    def priority_of(self, dz: Dz) -> int:
        return self._side(dz).priority_of(off_side(dz))

    def dz_of(self, match: Match) -> Dz | None:
        for side, encoding in enumerate(self._sides):
            if (dz := encoding.dz_of(match)) is not None:
                return on_side(side, dz)
        return None

    def owns(self, match: Match) -> bool:
        return any(encoding.owns(match) for encoding in self._sides)

    # Packets.

    def address_of(self, dz: Dz) -> int:
        return self._side(dz).address_of(off_side(dz))

    def destination(self, dz: Dz) -> bytes:
        return self._side(dz).destination(off_side(dz))

    def text(self, dz: Dz) -> str:
        return self._side(dz).text(off_side(dz))

    def dz_at(self, destination: bytes, bits: int) -> Dz | None:
        for side, encoding in enumerate(self._sides):
            if bits and (dz := encoding.dz_at(destination, bits - 1)) is not None:
                return on_side(side, dz)
        return None

    # Many at once, as keys.

    def keys_of(self, hi: NDArray[np.uint64], lo: NDArray[np.uint64]) -> Keys:
        one, top = np.uint64(1), np.uint64(63)
        own_hi, own_lo = hi << one | lo >> top, lo << one
        (old_hi, old_lo), (new_hi, new_lo) = (each.keys_of(own_hi, own_lo) for each in self._sides)
        new = hi >> top == NEW
        return np.where(new, new_hi, old_hi), np.where(new, new_lo, old_lo)

    def cells_between(self, bits: int, begin: int, end: int) -> Iterator[Dz]:
        for side, encoding in enumerate(self._sides):
            yield from (on_side(side, dz) for dz in encoding.cells_between(bits - 1, begin, end))

    def _side(self, dz: Dz) -> PrefixEncoding:
        side = side_of(dz)
        if side is None:
            raise BadPlan("the cell of all events is that of two indexes, and no address tells it")
        return self._sides[side]


def _around(a: Prefix, b: Prefix) -> Prefix:
    """The longest prefix of both."""
    length = min(a.length, b.length)
    while a.first >> (a.width - length) != b.first >> (b.width - length):
        length -= 1
    return Prefix(a.family, a.first >> (a.width - length), length)
