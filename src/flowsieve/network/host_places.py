"""Which hosts share a set, and in which order, where packets name their receivers: it never changes for a host."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from flowsieve.errors import BadInput, BadTopology
from flowsieve.network.locality import hosts_by_locality
from flowsieve.network.topology import Topology
from flowsieve.network.tree import center_tree

LEAST_NUMBER_BITS = 4  # so that a network of a few hosts may grow to thousands
MOST_NUMBER_BITS = 10
MOST_HOSTS = (
    1728  # in sets that are full but for the last, their numbers are below what a matcher can tell apart
)
MOST_NUMBERS = 2048  # of hosts, that a matcher can tell apart


@dataclass(frozen=True, slots=True)
class HostPlaces:
    """Hosts in sets that are numbered with so many bits, beside which an address has room for so many hosts.

    A host that is found later gets the next place that is free: whatever was sent before is for the same hosts still.
    Where somebody has chosen the sets (`chosen`), hosts have their places in them before they are found. There are
    trees for `spread` sets, over which hosts are spread evenly as far as they come together.
    """

    sets: tuple[tuple[str, ...], ...] = ()
    number_bits: int = 0
    address_bits: int = 112  # behind the tag
    spread: int = 1
    _numbers: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        room = self.address_bits - self.number_bits
        numbers = {
            host: at * room + room - 1 - bit
            for at, row in enumerate(self.sets)
            for bit, host in enumerate(row)
        }
        object.__setattr__(self, "_numbers", numbers)

    @classmethod
    def chosen(
        cls, sets: Sequence[Sequence[str]], hosts: int, address_bits: int = 112, spread: int = 1
    ) -> HostPlaces:
        """Places in sets that somebody has chosen, in a network that begins with so many hosts.

        What is too much for a set beside the sets' numbers has no place in it: such a host gets one when it is found.
        """
        there = max(hosts, sum(map(len, sets)))
        bits = max(cls(address_bits=address_bits, spread=spread)._bits_for(2 * there), _numbered(len(sets)))
        room = address_bits - bits
        if len(sets) * room > MOST_NUMBERS:
            raise BadInput(
                f"hosts are in {len(sets):,} sets; a controller serves {MOST_NUMBERS // room} at most, with up to "
                f"{room} hosts each"
            )
        return cls(tuple(tuple(row[:room]) for row in sets), bits, address_bits, spread)

    def begin_with(self, sets: Sequence[Sequence[str]]) -> bool:
        """Whether hosts are where these sets say, as far as there is room for them; others may have come later."""
        room = self.address_bits - self.number_bits
        return len(sets) <= len(self.sets) and all(
            tuple(row[:room]) == own[: len(row)] for row, own in zip(sets, self.sets, strict=False)
        )

    def extended(self, topology: Topology) -> HostPlaces:
        """The same, and places for the hosts of a network that have none yet: in the set with most hosts of its switch
        among those that have room, the first of them, or else in a new one. A set of several that have trees of their
        own has room for its share of all hosts, and for half as many again that come later to a switch of its hosts.

        How many bits number the sets is decided when the first hosts come, with room for as many again.
        """
        known = {host for row in self.sets for host in row}
        new = [host for host in hosts_by_locality(topology, center_tree(topology)) if host not in known]
        new += sorted(topology.hosts.keys() - known - set(new))  # of parts that are cut off
        if not new:
            return self
        if len(known) + len(new) > MOST_HOSTS:
            raise BadTopology(
                f"the network has {len(known) + len(new):,} hosts; labels that name them are matched for "
                f"{MOST_HOSTS:,} at most"
            )
        bits = self.number_bits if known else self._bits_for(2 * len(new))
        room = self.address_bits - bits
        rows = [list(row) for row in self.sets]
        near = [Counter(map(topology.hosts.get, row)) for row in rows]
        share = room if self.spread == 1 else min(room, -(-(len(known) + len(new)) // self.spread))
        for host in new:
            switch = topology.hosts[host]
            mates = [there[switch] for there in near]
            roomy = [at for at, row in enumerate(rows) if len(row) < share]
            if known and len(rows) >= self.spread and not any(mates[at] for at in roomy):
                more = min(room, share + share // 2)
                roomy = [at for at, row in enumerate(rows) if mates[at] and len(row) < more] or roomy
            at = max(roomy, key=mates.__getitem__) if roomy else len(rows)
            if not roomy:
                rows.append([])
                near.append(Counter())
            rows[at].append(host)
            near[at][switch] += 1
        most = min(1 << bits, MOST_NUMBERS // room)
        if len(rows) > most:
            raise BadTopology(
                f"the network has {len(known) + len(new):,} hosts, and its labels have room for {room * most:,}, as "
                "was decided when the first were found; a controller with another state folder decides anew"
            )
        return replace(self, sets=tuple(map(tuple, rows)), number_bits=bits)

    def set_of(self, host: str) -> int:
        """The number of the set that a host is in."""
        return self._numbers[host] // (self.address_bits - self.number_bits)

    def number(self, host: str) -> int:
        """The number of a host: its bit, counted from the right, behind those of the sets before its own."""
        return self._numbers[host]

    def _bits_for(self, hosts: int) -> int:
        """How many bits number the sets of so many hosts."""
        for bits in range(max(LEAST_NUMBER_BITS, _numbered(self.spread)), MOST_NUMBER_BITS + 1):
            if hosts <= (self.address_bits - bits) << bits:
                return bits
        raise BadTopology(f"labels cannot name {hosts // 2:,} hosts")

    def to_json(self) -> list[object]:
        spread = [] if self.spread == 1 else [self.spread]
        return [self.number_bits, [list(row) for row in self.sets], *spread]

    @classmethod
    def from_json(cls, data: Sequence[object]) -> HostPlaces:
        """What `to_json` wrote down."""
        bits, sets, spread = data if len(data) == 3 else (*data, 1)
        if not isinstance(bits, int) or not isinstance(sets, list) or not isinstance(spread, int):
            raise ValueError(f"{data!r} are no sets of hosts")
        return cls(tuple(tuple(map(str, row)) for row in sets), bits, spread=spread)


def most_spread(address_bits: int = 112) -> int:
    """Over how many sets hosts can be spread, such that a matcher can tell all their numbers apart.

    >>> most_spread()
    19
    """
    return max(
        sets
        for sets in range(1, 1 << MOST_NUMBER_BITS)
        if sets * (address_bits - max(LEAST_NUMBER_BITS, _numbered(sets))) <= MOST_NUMBERS
    )


def _numbered(sets: int) -> int:
    """How many bits number so many sets."""
    return max(0, sets - 1).bit_length()
