"""Which packets an entry is for: a closed union of two kinds, and what callers ask of either.

A packet has a source and a destination address of one family, both as numbers. A `PrefixMatch` looks at the first
bits of the destination; a `MaskedMatch` at any bits of both.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import NamedTuple

from flowsieve.errors import BadInput
from flowsieve.header.address import WIDTH, Prefix, address_text

PREFIX_MASKS = {
    family: tuple((1 << width) - (1 << width - length) for length in range(width + 1))
    for family, width in WIDTH.items()
}


@dataclass(frozen=True, slots=True)
class Masked:
    """Some bits of an address: those set in `mask` are as in `value`.

    >>> str(Masked.parse("ff1e::5/ffff::f"))
    'ff1e::5/ffff::f'
    """

    family: int
    value: int
    mask: int

    def __post_init__(self) -> None:
        fits = self.family in WIDTH and 0 <= self.mask < 1 << WIDTH[self.family]
        if not fits or self.value & ~self.mask or self.value < 0:
            raise BadInput(
                f"no masked address: family {self.family}, value {self.value:#x} under mask {self.mask:#x}; "
                "right is a value that has no bit outside its mask"
            )

    @classmethod
    def parse(cls, text: str) -> Masked:
        try:
            value, mask = map(ipaddress.ip_address, text.split("/"))
        except ValueError:
            value, mask = ipaddress.IPv4Address(0), ipaddress.IPv6Address(0)
        if value.version != mask.version:
            raise BadInput(f"{text!r} is not a value and a mask in two addresses, such as 'ff1e::5/ffff::f'")
        return cls(value.version, int(value), int(mask))

    @property
    def prefix(self) -> Prefix | None:
        """The prefix that says the same, if the mask is one of leading bits."""
        length = self.mask.bit_count()
        if self.mask != PREFIX_MASKS[self.family][length]:
            return None
        return Prefix(self.family, self.value >> (WIDTH[self.family] - length), length)

    def __str__(self) -> str:
        return f"{address_text(self.family, self.value)}/{address_text(self.family, self.mask)}"


class Rank(NamedTuple):
    """How narrow a match is: how many bits it asks for, and which of the source and of the destination.

    Two matches of one rank and family that hold one packet are equal.
    """

    bits: int
    source_mask: int
    destination_mask: int


_PREFIX_RANKS = {
    family: tuple(Rank(length, 0, mask) for length, mask in enumerate(masks))
    for family, masks in PREFIX_MASKS.items()
}


@dataclass(frozen=True, slots=True)
class PrefixMatch:
    """Packets whose destination lies in a prefix, whatever their source."""

    destination: Prefix

    @property
    def family(self) -> int:
        return self.destination.family

    @property
    def parts(self) -> tuple[Masked | None, Masked]:
        """What is asked of the source, None for nothing, and of the destination."""
        where = self.destination
        return None, Masked(where.family, where.first, PREFIX_MASKS[where.family][where.length])

    @property
    def rank(self) -> Rank:
        return _PREFIX_RANKS[self.destination.family][self.destination.length]

    @property
    def value(self) -> int:
        """The bits asked for: those of the source, if any, 128 places above those of the destination."""
        where = self.destination
        return where.bits << (WIDTH[where.family] - where.length)

    @property
    def sort_key(self) -> tuple[int, ...]:
        """Prefixes come first, as `Prefix` orders them."""
        where = self.destination
        return 0, where.family, where.bits, where.length

    def holds(self, source: int, destination: int) -> bool:
        """Whether a packet of the same family is one of these."""
        where = self.destination
        return destination >> (where.width - where.length) == where.bits

    def within(self, group: Prefix) -> bool:
        """Whether all destinations lie in a prefix."""
        return group.covers(self.destination)

    def __str__(self) -> str:
        return str(self.destination)


@dataclass(frozen=True, slots=True)
class MaskedMatch:
    """Packets that have some bits in their source, or any source for None, and some in their destination.

    What a destination prefix says as well is said by `PrefixMatch`, so that equal matches are equal values.

    >>> str(MaskedMatch(None, Masked.parse("ff1e::5/ffff::f")))
    'dst ff1e::5/ffff::f'
    """

    source: Masked | None
    destination: Masked

    def __post_init__(self) -> None:
        if self.source is None:
            if self.destination.prefix is not None:
                raise BadInput(f"{self} is a prefix; right is a PrefixMatch on {self.destination.prefix}")
        elif self.source.family != self.destination.family or not self.source.mask:
            raise BadInput(f"{self}; right is one family, and no source where none of its bits are asked for")

    @property
    def family(self) -> int:
        return self.destination.family

    @property
    def parts(self) -> tuple[Masked | None, Masked]:
        return self.source, self.destination

    @property
    def rank(self) -> Rank:
        source, destination = self.source.mask if self.source else 0, self.destination.mask
        return Rank(source.bit_count() + destination.bit_count(), source, destination)

    @property
    def value(self) -> int:
        return (self.source.value if self.source else 0) << 128 | self.destination.value

    @property
    def sort_key(self) -> tuple[int, ...]:
        source = (self.source.value, self.source.mask) if self.source else (0, 0)
        return 1, self.family, self.destination.value, self.destination.mask, *source

    def holds(self, source: int, destination: int) -> bool:
        where, by = self.destination, self.source
        return destination & where.mask == where.value and (by is None or source & by.mask == by.value)

    def within(self, group: Prefix) -> bool:
        where, leading = self.destination, PREFIX_MASKS[group.family][group.length]
        return (
            where.family == group.family
            and where.mask & leading == leading
            and where.value & leading == group.first
        )

    def __str__(self) -> str:
        return f"src {self.source} dst {self.destination}" if self.source else f"dst {self.destination}"


Match = PrefixMatch | MaskedMatch


def match_on(source: Masked | None, destination: Masked) -> Match:
    """The match that asks for these bits, of the kind that says it."""
    if source is not None and not source.mask:
        source = None
    prefix = destination.prefix if source is None else None
    return MaskedMatch(source, destination) if prefix is None else PrefixMatch(prefix)


def parse_match(destination: str, source: str | None = None) -> Match:
    """A match from text: the destination as a prefix or as value/mask, the source as value/mask."""
    if source is not None:
        return match_on(Masked.parse(source), Masked.parse(destination))
    _, slash, behind = destination.partition("/")
    if slash and not behind.isdecimal():
        return match_on(None, Masked.parse(destination))
    return PrefixMatch(Prefix.parse(destination))
