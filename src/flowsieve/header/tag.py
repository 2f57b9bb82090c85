"""A tag says under which plan and tree an address was made: it is the group prefix that the address begins with."""

from __future__ import annotations

from dataclasses import dataclass

from flowsieve.header.address import Prefix


@dataclass(frozen=True, slots=True)
class Tag:
    """A group prefix; `header.encoding` says how packets are made under it."""

    group: Prefix


DZ_HEADERS = ("ipv6", "ipv4")  # their addresses say what is in a packet
LABEL_HEADERS = ("receivers", "bloom")  # those of these for whom it is
# The papers' prefixes first, then those that transitions borrow.
POOLS: dict[str, tuple[Tag, ...]] = {
    "ipv6": tuple(Tag(Prefix.parse(text)) for text in ("ff0e::/16", "ff15::/16", "ff18::/16")),
    "ipv4": tuple(Tag(Prefix.parse(text)) for text in ("225.128.0.0/9", "239.0.0.0/9", "239.128.0.0/9")),
    "receivers": (Tag(Prefix.parse("ff1e::/16")),),
    "bloom": (Tag(Prefix.parse("ff1d::/16")),),
}
LABEL_GROUPS = tuple(tag.group for header in LABEL_HEADERS for tag in POOLS[header])
