"""Where a dz stands in a packet: an address prefix after the group prefix that is its tag."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from functools import lru_cache

from flowsieve.errors import BadInput

WIDTH = {4: 32, 6: 128}


@dataclass(frozen=True, slots=True, order=True)
class Prefix:
    """An address prefix: the first `length` bits of an IPv4 or IPv6 address, as a number.

    >>> str(Prefix.parse("ff0e:c000::/19"))
    'ff0e:c000::/19'
    """

    family: int
    bits: int
    length: int

    def __post_init__(self) -> None:
        if self.family not in WIDTH or not 0 <= self.length <= WIDTH[self.family] or self.bits >> self.length:
            raise BadInput(f"no address prefix: family {self.family}, {self.length} bits of {self.bits:#x}")

    @classmethod
    def parse(cls, text: str) -> Prefix:
        try:
            net = ipaddress.ip_network(text)
        except ValueError as error:
            raise BadInput(f"{text!r} is not an address prefix such as 'ff0e:c000::/19': {error}") from None
        return cls(
            net.version, int(net.network_address) >> (net.max_prefixlen - net.prefixlen), net.prefixlen
        )

    @property
    def width(self) -> int:
        return WIDTH[self.family]

    @property
    def first(self) -> int:
        """The lowest address inside, as a number."""
        return self.bits << (self.width - self.length)

    def covers(self, other: Prefix) -> bool:
        gap = other.length - self.length
        return self.family == other.family and gap >= 0 and other.bits >> gap == self.bits

    def __str__(self) -> str:
        return f"{address_text(self.family, self.first)}/{self.length}"


@lru_cache(maxsize=1 << 16)
def address_text(family: int, number: int) -> str:
    """An address as people write it; few of them stand in many tables."""
    return str(ipaddress.IPv4Address(number) if family == 4 else ipaddress.IPv6Address(number))
