"""Which hosts share a set, and in which order, where packets name their receivers: it never changes for a host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from flowsieve.errors import BadTopology
from flowsieve.network.locality import hosts_by_locality
from flowsieve.network.topology import Topology
from flowsieve.network.tree import center_tree

LEAST_NUMBER_BITS = 4  # so that a network of a few hosts may grow to thousands
MOST_NUMBER_BITS = 10
MOST_HOSTS = 1728  # whatever sets they are in, their numbers are below what a matcher can tell apart


@dataclass(frozen=True, slots=True)
class HostPlaces:
    """Hosts in sets that are numbered with so many bits, beside which an address has room for so many hosts.

    A host that is found later gets the next place that is free: whatever was sent before is for the same hosts still.
    """

    sets: tuple[tuple[str, ...], ...] = ()
    number_bits: int = 0
    address_bits: int = 112  # behind the tag
    _numbers: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        room = self.address_bits - self.number_bits
        numbers = {
            host: at * room + room - 1 - bit
            for at, row in enumerate(self.sets)
            for bit, host in enumerate(row)
        }
        object.__setattr__(self, "_numbers", numbers)

    def extended(self, topology: Topology) -> HostPlaces:
        """The same, and places for the hosts of a network that have none yet.

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
        for host in new:
            if not rows or len(rows[-1]) == room:
                rows.append([])
            rows[-1].append(host)
        if len(rows) > 1 << bits:
            raise BadTopology(
                f"the network has {len(known) + len(new):,} hosts, and its labels have room for {room << bits:,}, as "
                "was decided when the first were found; a controller with another state folder decides anew"
            )
        return replace(self, sets=tuple(map(tuple, rows)), number_bits=bits)

    def number(self, host: str) -> int:
        """The number of a host: its bit, counted from the right, behind those of the sets before its own."""
        return self._numbers[host]

    def _bits_for(self, hosts: int) -> int:
        for bits in range(LEAST_NUMBER_BITS, MOST_NUMBER_BITS + 1):
            if hosts <= (self.address_bits - bits) << bits:
                return bits
        raise BadTopology(f"labels cannot name {hosts // 2:,} hosts")

    def to_json(self) -> list[object]:
        return [self.number_bits, [list(row) for row in self.sets]]

    @classmethod
    def from_json(cls, data: Sequence[object]) -> HostPlaces:
        """What `to_json` wrote down."""
        bits, sets = data
        if not isinstance(bits, int) or not isinstance(sets, list):
            raise ValueError(f"{data!r} are no sets of hosts")
        return cls(tuple(tuple(map(str, row)) for row in sets), bits)
