"""The event space divided into partitions: disjoint dz that cover it. A request is cut along them.

Entries of different partitions never meet (no entry reaches beyond its partition), so whoever decides on one needs to
know nothing of the others.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field

from flowsieve.errors import BadPlan
from flowsieve.index.dz import MAX_LENGTH, WHOLE_SPACE, Dz
from flowsieve.index.dzset import DzSet
from flowsieve.index.sample import EventSample
from flowsieve.network.topology import Topology
from flowsieve.network.tree import MAX_TREES, TreeMap, center_tree, check_partition

MOST_PARTITIONS = MAX_TREES


@dataclass(frozen=True, slots=True)
class Division:
    """Partitions, in their order; `cut` says what of a set of dz lies in which.

    >>> three = Division.of(["000", "0010", "0011", "01", "1"])
    >>> [(str(dz), part) for dz, part in three.cut(DzSet.of("00"))]
    [('000', DzSet('000')), ('0010', DzSet('0010')), ('0011', DzSet('0011'))]
    """

    partitions: tuple[Dz, ...]
    _starts: tuple[int, ...] = field(init=False, compare=False, repr=False)
    _whole: dict[Dz, DzSet] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        ordered = sorted(self.partitions)
        check_partition(ordered)
        object.__setattr__(self, "partitions", tuple(ordered))
        object.__setattr__(self, "_starts", tuple(dz.aligned for dz in ordered))
        object.__setattr__(self, "_whole", {dz: DzSet.of(dz) for dz in ordered})

    @classmethod
    def of(cls, texts: Iterable[str]) -> Division:
        return cls(tuple(map(Dz.parse, texts)))

    @classmethod
    def even(cls, n: int) -> Division:
        """n partitions of the same size, or of two sizes where n is no power of two.

        >>> [str(dz) for dz in Division.even(3).partitions]
        ['00', '01', '1']
        """
        if not 1 <= n <= MOST_PARTITIONS:
            raise BadPlan(f"the space cannot be divided into {n} partitions; right is 1 to {MOST_PARTITIONS}")
        partitions = [WHOLE_SPACE]
        while len(partitions) < n:
            partitions += partitions.pop(0).children  # the largest, and of these the first
        return cls(tuple(partitions))

    @property
    def depth(self) -> int:
        """How many bits tell all partitions apart."""
        return max(dz.length for dz in self.partitions)

    def of_dz(self, dz: Dz) -> Dz:
        """The partition that a dz lies in."""
        found = self.partitions[bisect_right(self._starts, dz.aligned) - 1]
        if not found.covers(dz):
            raise BadPlan(f"dz {str(dz)!r} lies in several partitions; ask for one of its parts")
        return found

    def cut(self, dz: DzSet) -> list[tuple[Dz, DzSet]]:
        """What of a set lies in each partition that it reaches into; together that is the set."""
        first = 0
        found: list[tuple[Dz, DzSet]] = []
        n = len(dz)
        keys = [hi << 64 | lo for hi, lo in zip(dz.hi.tolist(), dz.lo.tolist(), strict=True)]
        while first < n:
            at = bisect_right(self._starts, keys[first]) - 1
            partition = self.partitions[at]
            if dz.length[first] <= partition.length:  # it covers this one, and perhaps some after it
                end = keys[first] + (1 << (128 - int(dz.length[first])))
                while at < len(self.partitions) and self._starts[at] < end:
                    found.append((self.partitions[at], self._whole[self.partitions[at]]))
                    at += 1
                first += 1
                continue
            beyond = self._starts[at + 1] if at + 1 < len(self._starts) else 1 << 128
            last = first + 1
            while last < n and keys[last] < beyond:
                last += 1
            found.append((partition, dz if last - first == n else dz.run(first, last)))
            first = last
        return found

    def __len__(self) -> int:
        return len(self.partitions)


def partition_trees(topology: Topology, n: int, sample: EventSample | None = None) -> TreeMap:
    """A division of the space into n partitions, each with a tree; where a sample says what to expect, by that."""
    if n == 1:
        return TreeMap.single(center_tree(topology))
    partitions = Division.even(n).partitions
    if sample is None:
        return TreeMap.over(topology, partitions)
    events = len(sample.hi)
    fell = (DzSet.of(dz).covers_many(sample.hi, sample.lo, MAX_LENGTH).sum() for dz in partitions)
    return TreeMap.over(topology, partitions, [(1 + float(count)) / (events + n) for count in fell])
