"""A tag says under which plan and tree an address was made; the group prefix in front of the dz is the tag."""

from __future__ import annotations

from dataclasses import dataclass

from flowsieve.errors import BadPlan
from flowsieve.header.address import Prefix, address_text
from flowsieve.index.dz import Dz


@dataclass(frozen=True, slots=True)
class Tag:
    """A group prefix, and how a dz becomes an address behind it.

    >>> tag = Tag(Prefix.parse("ff0e::/16"))
    >>> str(tag.prefix(Dz.parse("110"))), tag.address(Dz.parse("110010"))
    ('ff0e:c000::/19', 'ff0e:c800::')
    """

    group: Prefix

    @property
    def room(self) -> int:
        """How many bits of dz fit behind the group prefix."""
        return self.group.width - self.group.length

    def prefix(self, dz: Dz) -> Prefix:
        """What a flow for this dz matches."""
        if dz.length > self.room:
            raise BadPlan(f"a dz of {dz.length} bits does not fit the {self.room} bits behind {self.group}")
        return Prefix(
            self.group.family, self.group.bits << dz.length | dz.bits, self.group.length + dz.length
        )

    def address(self, dz: Dz) -> str:
        """What an event in this cell is sent to."""
        return address_text(self.group.family, self.prefix(dz).first)

    def dz(self, prefix: Prefix) -> Dz:
        """The dz that a prefix under this tag was made from: the inverse of `prefix`."""
        if not self.group.covers(prefix):
            raise BadPlan(f"{prefix} does not lie in {self.group}")
        length = prefix.length - self.group.length
        return Dz(prefix.bits & ((1 << length) - 1), length)


# The papers' prefixes first, then those that transitions borrow.
POOLS: dict[str, tuple[Tag, ...]] = {
    "ipv6": tuple(Tag(Prefix.parse(text)) for text in ("ff0e::/16", "ff15::/16", "ff18::/16", "ff1e::/16")),
    "ipv4": tuple(Tag(Prefix.parse(text)) for text in ("225.128.0.0/9", "239.0.0.0/9", "239.128.0.0/9")),
}
