"""How what an index plan makes of events and filters stands in packets, and what switches match to tell it.

A *key* is an address of 128 bits in two words (hi, lo); an IPv4 address fills the first 32 of them. Many dz at once
are left-aligned in such words too, as in a DzSet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from flowsieve.errors import BadPlan
from flowsieve.header.address import Prefix, address_text
from flowsieve.header.match import Match, PrefixMatch
from flowsieve.header.tag import POOLS, Tag
from flowsieve.index.dz import WHOLE_SPACE, Dz

CONTENT_PRIORITY = 1000  # 0 is the table miss; 2000 and up are transitions and service
Keys = tuple[NDArray[np.uint64], NDArray[np.uint64]]


class Encoding(Protocol):
    """What another way of labelling packets has to say; all of it under one tag."""

    def __hash__(self) -> int: ...
    @property
    def tag(self) -> Tag: ...
    @property
    def family(self) -> int:
        """Of the addresses: 4 or 6."""

    @property
    def roots(self) -> tuple[Dz, ...]:
        """The widest cells that an address can tell: all of the space, unless it is that of two indexes."""

    @property
    def room(self) -> int:
        """How many bits of dz a packet can carry."""

    # Entries.

    def match_of(self, dz: Dz) -> Match:
        """What the entry for a dz matches."""

    def priority_of(self, dz: Dz) -> int:
        """The priority of the entry for a dz: a longer one wins over those that cover it."""

    def dz_of(self, match: Match) -> Dz | None:
        """The dz whose entry has this match; None if there is none."""

    def owns(self, match: Match) -> bool:
        """Whether an entry with this match could only be ours."""

    # Packets.

    def address_of(self, dz: Dz) -> int:
        """Where an event in this cell is sent to."""

    def destination(self, dz: Dz) -> bytes:
        """The same as bytes, as they stand in the packet."""

    def text(self, dz: Dz) -> str:
        """The same as people write it."""

    def dz_at(self, destination: bytes, bits: int) -> Dz | None:
        """The dz of so many bits whose `destination` this is; None if it is that of none."""

    # Many at once, as keys.

    @property
    def ahead(self) -> int:
        """How many bits of a key stand before the dz."""

    def keys_of(self, hi: NDArray[np.uint64], lo: NDArray[np.uint64]) -> Keys:
        """The keys of the addresses of many dz."""

    def cells_between(self, bits: int, begin: int, end: int) -> Iterator[Dz]:
        """The fewest cells of at most so many bits whose events are sent to keys from `begin` up to `end`."""


class PrefixEncoding:
    """A dz stands behind the tag's group prefix: entries match address prefixes, packets go to the first address.

    >>> encoding = PrefixEncoding(Tag(Prefix.parse("ff0e::/16")))
    >>> str(encoding.match_of(Dz.parse("110"))), encoding.text(Dz.parse("110010"))
    ('ff0e:c000::/19', 'ff0e:c800::')
    """

    def __init__(self, tag: Tag, former: Sequence[Tag] = ()) -> None:
        """Entries under `former` tags are ours, too: left behind at a switch that was away when they were to go."""
        group = tag.group
        self._groups = group, *(each.group for each in former)
        self.tag, self.family = tag, group.family
        self.room, self.ahead = group.width - group.length, group.length
        self.roots: tuple[Dz, ...] = (WHOLE_SPACE,)
        self._first, self._bytes = group.first, group.width // 8

    def match_of(self, dz: Dz) -> PrefixMatch:
        return _match_of(self.tag.group, dz)

    def priority_of(self, dz: Dz) -> int:
        return CONTENT_PRIORITY + dz.length

    def dz_of(self, match: Match) -> Dz | None:
        if not isinstance(match, PrefixMatch) or not self.tag.group.covers(match.destination):
            return None
        length = match.destination.length - self.ahead
        return Dz(match.destination.bits & ((1 << length) - 1), length)

    def owns(self, match: Match) -> bool:
        return any(map(match.within, self._groups))

    def address_of(self, dz: Dz) -> int:
        return self.match_of(dz).destination.first

    def destination(self, dz: Dz) -> bytes:
        return (self._first | dz.bits << (self.room - dz.length)).to_bytes(self._bytes)

    def text(self, dz: Dz) -> str:
        return address_text(self.family, self.address_of(dz))

    def dz_at(self, destination: bytes, bits: int) -> Dz | None:
        if len(destination) != self._bytes or bits > self.room:
            return None
        address = int.from_bytes(destination)
        if address >> self.room != self.tag.group.bits:
            return None
        return Dz((address & ((1 << self.room) - 1)) >> (self.room - bits), bits)

    def keys_of(self, hi: NDArray[np.uint64], lo: NDArray[np.uint64]) -> Keys:
        group = np.uint64(self.tag.group.bits << (64 - self.ahead))
        behind = np.uint64(self.ahead)
        return group | hi >> behind, hi << np.uint64(64 - self.ahead) | lo >> behind

    def cells_between(self, bits: int, begin: int, end: int) -> Iterator[Dz]:
        """An event is sent to the first address of its finest cell, so a stretch between two of them has none."""
        room = 128 - self.ahead
        group = self.tag.group.bits << room
        begin, end = max(begin - group, 0), min(end - group, 1 << room)
        at, stop = (-(-key >> (room - bits)) for key in (begin, end))
        while at < stop:
            size = at & -at or 1 << bits
            while at + size > stop:
                size >>= 1
            yield Dz(at // size, bits + 1 - size.bit_length())
            at += size


@lru_cache(maxsize=1 << 14)
def _match_of(group: Prefix, dz: Dz) -> PrefixMatch:
    """What is wanted somewhere stands in the tables all along the way there, so few matches are made often."""
    if dz.length > group.width - group.length:
        room = group.width - group.length
        raise BadPlan(f"a dz of {dz.length} bits does not fit the {room} bits behind {group}")
    return PrefixMatch(Prefix(group.family, group.bits << dz.length | dz.bits, group.length + dz.length))


def encoding_of(header: str) -> Encoding:
    """The encoding that a scenario's header names, under the first tag of its pool."""
    return PrefixEncoding(POOLS[header][0])
