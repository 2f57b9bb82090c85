"""Labels that name receivers: a bit for each host behind the tag and the number of a set of hosts.

    | tag (16 bits) | number of the set | a bit for each host of the set |

A packet is for the hosts whose bits are set. Where a network has more hosts than an address has bits, they are in
several sets, and an event is sent once for each set in which somebody wants it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from flowsieve.errors import BadInput, BadTopology, nearest
from flowsieve.header.address import Prefix, address_text
from flowsieve.header.match import PREFIX_MASKS, Masked, Match, PrefixMatch, match_on
from flowsieve.header.tag import POOLS, Tag

HEADER = "receivers"
MOST_SETS = 1024  # a switch has two entries for each set and port
Sets = tuple[tuple[str, ...], ...]
# Puts hosts into sets of so many at most, in the order of their bits; each host into one.
Assignment = Callable[[int], Sets]


class Place(NamedTuple):
    """Where a host's bit is: the number of its set, and its place there, counted from the left."""

    set: int
    bit: int


@dataclass(frozen=True, slots=True)
class ReceiverLabels:
    """The bits of all hosts under one tag.

    >>> labels = ReceiverLabels(POOLS["receivers"][0], (("h1", "h2", "h3"),))
    >>> labels.texts(["h1", "h3"]), [str(match) for match in labels.none_of(["h2"]).values()]
    (['ff1e:a000::'], ['dst ff1e::/ffff:4000::'])
    """

    tag: Tag
    sets: Sets
    least_set_bits: int = 0  # more than it takes to number the sets, where others are to come
    set_bits: int = field(init=False)
    _places: Mapping[str, Place] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        needed = (len(self.sets) - 1).bit_length() if self.sets else 0
        set_bits = max(needed, self.least_set_bits)
        places = {
            host: Place(number, bit) for number, row in enumerate(self.sets) for bit, host in enumerate(row)
        }
        room = self.tag.group.width - self.tag.group.length - set_bits
        if len(self.sets) > MOST_SETS:
            raise BadInput(f"hosts are in {len(self.sets):,} sets; right are {MOST_SETS:,} or fewer")
        if any(len(row) > room for row in self.sets):
            most = max(map(len, self.sets))
            raise BadInput(
                f"a set has {most} hosts; beside the numbers of {len(self.sets)} sets there are {room} bits"
            )
        if len(places) < sum(map(len, self.sets)):
            raise BadInput("a host is in two sets, or twice in one; right is once")
        object.__setattr__(self, "set_bits", set_bits)
        object.__setattr__(self, "_places", MappingProxyType(places))

    @classmethod
    def make(cls, assign: Assignment, tag: Tag = POOLS[HEADER][0]) -> ReceiverLabels:
        """The labels of the sets that an assignment makes, with as few bits for their numbers as will do."""
        for set_bits in range(MOST_SETS.bit_length()):
            sets = assign(tag.group.width - tag.group.length - set_bits)
            if len(sets) <= 1 << set_bits:
                return cls(tag, sets)
        raise BadTopology(f"the hosts take more than {MOST_SETS:,} sets, and labels have no more")

    @property
    def family(self) -> int:
        return self.tag.group.family

    @property
    def bits(self) -> int:
        """How many bits of an address are used behind the tag."""
        return self.set_bits + max(map(len, self.sets), default=0)

    @property
    def hosts(self) -> Collection[str]:
        """All hosts that have a bit."""
        return self._places.keys()

    # Entries.

    def group(self, number: int) -> Prefix:
        """What the addresses of a set begin with."""
        group = self.tag.group
        return Prefix(group.family, group.bits << self.set_bits | number, group.length + self.set_bits)

    def any_of(self, number: int) -> PrefixMatch:
        """All packets of a set, whomever they are for."""
        return PrefixMatch(self.group(number))

    def none_of(self, hosts: Iterable[str]) -> dict[int, Match]:
        """For each set that some of these hosts are in, the packets of it that are for none of them."""
        found: dict[int, Match] = {}
        for number, mask in self.masks(hosts).items():
            group = self.group(number)
            leading = PREFIX_MASKS[group.family][group.length]
            found[number] = match_on(None, Masked(group.family, group.first, leading | mask))
        return found

    def none_but(self, hosts: Iterable[str]) -> dict[int, Masked]:
        """For each set that some of these hosts are in, what packets of it are to that are for nobody else of it.

        Bits that no host has yet may be set: whoever knows of a host that comes does not wait for those who do not.

        >>> labels = ReceiverLabels(POOLS["receivers"][0], (("h1", "h2", "h3"),))
        >>> [str(each) for each in labels.none_but(["h1", "h3"]).values()]
        ['ff1e::/ffff:4000::']
        """
        some, found = frozenset(hosts), dict[int, Masked]()
        for number in sorted(self.masks(some)):
            group = self.group(number)
            others = self.masks(host for host in self.sets[number] if host not in some).get(number, 0)
            leading = PREFIX_MASKS[group.family][group.length]
            found[number] = Masked(group.family, group.first, leading | others)
        return found

    def masks(self, hosts: Iterable[str]) -> dict[int, int]:
        """The bits of hosts, for each set that some of them are in."""
        found: dict[int, int] = {}
        for host in hosts:
            number, _ = place = self.place(host)
            found[number] = found.get(number, 0) | self._bit(place)
        return found

    def place(self, host: str) -> Place:
        """Where a host's bit is."""
        if host not in self._places:
            raise BadInput(f"there is no bit for host {host!r}{nearest(host, self._places)}")
        return self._places[host]

    # Packets.

    def addresses(self, receivers: Iterable[str]) -> list[int]:
        """Where an event for these hosts is sent to: an address for each set that has some of them."""
        return [self.group(number).first | bits for number, bits in sorted(self.masks(receivers).items())]

    def texts(self, receivers: Iterable[str]) -> list[str]:
        """The same as people write them."""
        return [address_text(self.family, address) for address in self.addresses(receivers)]

    def receivers(self, address: int) -> tuple[str, ...]:
        """For whom a packet to an address is; nobody for one that is no label."""
        for number, row in enumerate(self.sets):
            if self.any_of(number).holds(0, address):
                return tuple(host for host in row if address & self._bit(self._places[host]))
        return ()

    def keys(
        self, wanted: Mapping[str, NDArray[np.bool_]], events: int
    ) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.uint64]]:
        """The packets of many events, given which of them each host wants: rows of events, and addresses as keys."""
        rows, his, los = [], [], []
        for number, row in enumerate(self.sets):
            hi, lo = np.zeros(events, np.uint64), np.zeros(events, np.uint64)
            some = np.zeros(events, np.bool_)
            for host in row:
                if host in wanted:
                    bit, some = self._bit(self._places[host]), some | wanted[host]
                    word, part = (hi, bit >> 64) if bit >> 64 else (lo, bit)
                    word[wanted[host]] |= np.uint64(part)
            sent, first = np.flatnonzero(some), self.group(number).first
            rows.append(sent)
            his.append(hi[sent] | np.uint64(first >> 64))
            los.append(lo[sent] | np.uint64(first & (1 << 64) - 1))
        if not rows:
            return np.zeros(0, np.int64), np.zeros(0, np.uint64), np.zeros(0, np.uint64)
        joined = np.concatenate(rows)
        order = np.argsort(joined, kind="stable")
        return joined[order], np.concatenate(his)[order], np.concatenate(los)[order]

    def _bit(self, place: Place) -> int:
        group = self.tag.group
        return 1 << (group.width - group.length - self.set_bits - place.bit - 1)
