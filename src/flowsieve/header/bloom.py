"""Labels that are Bloom filters of the filters an event matches, in the source and the destination of a packet.

    source        | fixed prefix (16 bits) | the first half of the bits  |
    destination   | tag (16 bits)          | the second half of the bits |

Each filter has `k` of the `m` bits, told by its text. A packet has the bits of all filters that it is for, and an
entry asks for those of one. It may find them there though that filter is not among them: a false positive.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b

from flowsieve.errors import BadInput
from flowsieve.header.address import Prefix
from flowsieve.header.match import PREFIX_MASKS, Masked, Match, PrefixMatch, match_on
from flowsieve.header.tag import POOLS, Tag

HEADER = "bloom"
# Of addresses that anybody may give to hosts (RFC 4193), and none of the hosts of a scenario or lab.
SOURCES = Prefix.parse("fd1d::/16")
_DRAW_BYTES = 4  # of a hash, for each bit that is drawn


@dataclass(frozen=True, slots=True)
class BloomLabels:
    """How filters stand in packets under one tag: `k` bits each.

    >>> labels = BloomLabels(2)
    >>> labels.m, str(labels.match_of(1 << 223 | 1)), labels.addresses(1 << 223 | 1)[0] == SOURCES.first | 1 << 111
    (224, 'src 0:8000::/0:8000:: dst ff1d::1/ffff::1', True)
    """

    k: int
    tag: Tag = POOLS[HEADER][0]
    sources: Prefix = SOURCES

    def __post_init__(self) -> None:
        if self.sources.family != self.tag.group.family:
            raise BadInput(f"{self.sources} and {self.tag.group} are of two families; right is one")
        if not 1 <= self.k <= self.m:
            raise BadInput(f"a filter has {self.k} bits; right are 1 to {self.m}")

    @classmethod
    def tuned(cls, filters: int) -> BloomLabels:
        """The labels that deceive least in packets for so many filters."""
        return cls(best_k(cls(1).m, filters))

    @property
    def family(self) -> int:
        return self.tag.group.family

    @property
    def m(self) -> int:
        """How many bits a packet has for filters."""
        return self._source_bits + self._destination_bits

    @property
    def _source_bits(self) -> int:
        return self.sources.width - self.sources.length

    @property
    def _destination_bits(self) -> int:
        return self.tag.group.width - self.tag.group.length

    def pattern(self, text: str) -> int:
        """The bits of the filter with this text, all of them different; one in `m` bits is as likely as any other.

        Those for a smaller k are some of those for a larger one.
        """
        found, block = 0, 0
        while True:
            draws = blake2b(text.encode(), salt=block.to_bytes(8)).digest()
            for at in range(0, len(draws), _DRAW_BYTES):
                found |= 1 << int.from_bytes(draws[at : at + _DRAW_BYTES]) % self.m
                if found.bit_count() == self.k:
                    return found
            block += 1

    # Entries.

    @property
    def any(self) -> PrefixMatch:
        """All packets under the tag."""
        return PrefixMatch(self.tag.group)

    def match_of(self, pattern: int) -> Match:
        """The packets that have all bits of a pattern."""
        group, high, low = self.tag.group, *self._halves(pattern)
        leading = PREFIX_MASKS[group.family][group.length]
        return match_on(
            Masked(self.family, high, high), Masked(self.family, group.first | low, leading | low)
        )

    def pattern_of(self, match: Match) -> int | None:
        """The bits that an entry asks for, if it asks for no others: the inverse of `match_of`."""
        source, destination = match.parts
        group, low = self.tag.group, (1 << self._destination_bits) - 1
        high_bits = 0 if source is None else source.value
        known = high_bits >> self._source_bits == 0 and match.within(group)
        pattern = high_bits << self._destination_bits | destination.value & low
        return pattern if known and self.match_of(pattern) == match else None

    # Packets.

    def addresses(self, bits: int) -> tuple[int, int]:
        """The source and the destination of a packet that has these bits."""
        high, low = self._halves(bits)
        return self.sources.first | high, self.tag.group.first | low

    def bits_of(self, patterns: Iterable[int]) -> int:
        """The bits of a packet that is for the filters with these patterns."""
        bits = 0
        for pattern in patterns:
            bits |= pattern
        return bits

    def _halves(self, bits: int) -> tuple[int, int]:
        return bits >> self._destination_bits, bits & (1 << self._destination_bits) - 1


def false_positive_rate(m: int, k: int, filters: int) -> float:
    """How likely k of m bits that differ are all set in a packet for so many other filters."""
    clear = (1 - k / m) ** filters
    return float((1 - clear) ** k)


def best_k(m: int, filters: int) -> int:
    """How many bits a filter should have so that packets for so many filters deceive least."""
    if filters < 1:
        raise BadInput(f"packets are for {filters} filters; right is 1 or more")
    near = m * math.log(2) / filters
    # With k different bits a filter the best k is a little below the well-known one; that for few filters is large.
    some = range(max(1, math.floor(near / 2)), min(m, math.ceil(near) + 1) + 1)
    return min(some, key=lambda k: (false_positive_rate(m, k, filters), k))
