"""Who wants the same events: audiences, the hosts that want one event, and what sets of hosts cost them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Audiences:
    """Groups of hosts, by their numbers, and how much each counts.

    Those of audience e are `host[start[e]:start[e + 1]]`; the audiences of host v are
    `audience[first[v]:first[v + 1]]`.
    """

    start: Numbers
    host: Numbers
    weight: Numbers
    first: Numbers
    audience: Numbers

    @classmethod
    def of(cls, hosts: int, groups: Sequence[Sequence[int]], weights: Iterable[int]) -> Audiences:
        """Audiences of a number of hosts, from a list of each."""
        start = np.cumsum([0, *map(len, groups)]).astype(np.int64)
        host = np.array([member for group in groups for member in group], np.int64)
        return cls.joined(hosts, start, host, np.array([*weights], np.int64))

    @classmethod
    def joined(cls, hosts: int, start: Numbers, host: Numbers, weight: Numbers) -> Audiences:
        """The same, all lists in one."""
        order = np.argsort(host, kind="stable")
        first = np.searchsorted(host[order], np.arange(hosts + 1)).astype(np.int64)
        return cls(start, host, weight, first, _owners(start)[order])

    def __len__(self) -> int:
        return len(self.weight)

    @property
    def hosts(self) -> int:
        return len(self.first) - 1

    def with_more(self, more: Audiences, scale: int = 1) -> Audiences:
        """These, each of which counts so many times what it did, and others."""
        return Audiences.joined(
            self.hosts,
            np.concatenate([self.start, more.start[1:] + self.start[-1]]),
            np.concatenate([self.host, more.host]),
            np.concatenate([self.weight * scale, more.weight]),
        )

    def cost(self, part: Numbers) -> int:
        """How many sets the audiences touch, each counted by its weight, where `part` has the set of each host."""
        sets = int(part.max(initial=0)) + 1
        touched = np.unique(_owners(self.start) * sets + part[self.host]) // sets
        return int(self.weight[touched].sum())


def _owners(start: Numbers) -> Numbers:
    return np.repeat(np.arange(len(start) - 1, dtype=np.int64), np.diff(start))
