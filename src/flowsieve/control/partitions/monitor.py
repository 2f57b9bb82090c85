"""Finds a configurator that falls behind, and the partition that it should hand over ([PLEROMA], adaptive balancing).

Queues say who falls behind, not how much room the others have: somebody with an empty queue may be idle or just keep
up. So a move can turn out wrong, and queues alone would then say to undo it, and so on for ever. Therefore a partition
never goes back to a configurator that it was taken from, until `forget` is called: each moves at most once per
configurator, and migrations come to an end whatever is observed. Whoever assigns partitions anew by past load, after a
long period or because a configurator came or went, calls `forget`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from flowsieve.errors import BadInput
from flowsieve.index.dz import Dz

Queues = Mapping[
    str, Mapping[Dz, int]
]  # of each configurator: how many requests wait for each of its partitions


@dataclass(frozen=True, slots=True)
class MonitorSettings:
    """When somebody is overloaded.

    `threshold`: how far beyond the mean, as a share of it. `least`: nobody with fewer requests waiting is; a burst that
    is served at once is no overload, and one request may have a part in each partition. `rest_seconds`: one that
    has moved stays for that long.
    """

    threshold: float = 0.25
    least: int = 128
    rest_seconds: float = 5.0

    def __post_init__(self) -> None:
        if not 0 < self.threshold < math.inf:
            raise BadInput(
                f"the threshold of overload is {self.threshold}; right is more than 0, such as 0.25"
            )
        if self.least < 1:
            raise BadInput(f"overload begins with {self.least} requests waiting; right is 1 or more")
        if not 0 <= self.rest_seconds < math.inf:
            raise BadInput(f"a partition rests for {self.rest_seconds} s; right is 0 or more")


@dataclass(frozen=True, slots=True)
class Migration:
    """A partition goes from one configurator to another."""

    dz: Dz
    giver: str
    receiver: str


class Monitor:
    """Observes queues from time to time; each time, at most one partition should move.

    >>> a, b = Dz.parse("0"), Dz.parse("1")
    >>> monitor = Monitor(MonitorSettings(least=100))
    >>> monitor.observe(0.0, {"c1": {a: 50, b: 40}, "c2": {}})  # nobody knows yet whether it grows
    >>> monitor.observe(1.0, {"c1": {a: 60, b: 45}, "c2": {}})
    Migration(dz=Dz('0'), giver='c1', receiver='c2')
    """

    def __init__(self, settings: MonitorSettings | None = None) -> None:
        self.settings = settings or MonitorSettings()
        self._waited: dict[Dz, int] = {}  # for each partition, when last observed
        self._moved: dict[Dz, float] = {}
        self._left: dict[Dz, set[str]] = {}
        self._under_way: Migration | None = None

    def observe(self, now: float, queues: Queues) -> Migration | None:
        """What should move, if anything; the caller sees to it, and the queues of later observations show it.

        Every partition is named under its owner, also if nothing waits for it.
        """
        growing = {name for name, own in queues.items() if self._grew(own)}
        self._waited = {dz: waiting for own in queues.values() for dz, waiting in own.items()}
        if len(queues) < 2 or self._still_moving(now, queues):
            return None
        loads = {name: sum(own.values()) for name, own in queues.items()}
        limit = (1 + self.settings.threshold) * sum(loads.values()) / len(loads)
        receiver = min(loads, key=loads.__getitem__)
        for giver in sorted(loads, key=loads.__getitem__, reverse=True):
            load = loads[giver]
            if load <= limit or load < self.settings.least or giver not in growing:
                continue
            for dz, waiting in sorted(queues[giver].items(), key=lambda each: (-each[1], each[0])):
                # So both are below what the giver has now: the larger of the two loads falls.
                helps = 0 < waiting <= limit - loads[receiver]
                if helps and self._may_go(dz, receiver, now):
                    return self._decided(Migration(dz, giver, receiver), now)
        return None

    def forget(self) -> None:
        """Partitions have been assigned anew: each may go anywhere again."""
        self._moved, self._left, self._under_way = {}, {}, None

    def _grew(self, own: Mapping[Dz, int]) -> bool:
        """Whether more waits than did for the same partitions: one that has just come is no growth by itself."""
        return sum(own.values()) > sum(self._waited.get(dz, waiting) for dz, waiting in own.items())

    def _still_moving(self, now: float, queues: Queues) -> bool:
        """Whether the last migration is under way; one of which nothing is seen for long is not waited for."""
        last = self._under_way
        if last is None:
            return False
        arrived = last.dz in queues.get(last.receiver, ())
        lost = last.giver not in queues or last.receiver not in queues
        if arrived or lost or self._rested(last.dz, now):
            self._under_way = None
        return self._under_way is not None

    def _rested(self, dz: Dz, now: float) -> bool:
        return now - self._moved.get(dz, -math.inf) >= self.settings.rest_seconds

    def _may_go(self, dz: Dz, receiver: str, now: float) -> bool:
        return self._rested(dz, now) and receiver not in self._left.get(dz, ())

    def _decided(self, migration: Migration, now: float) -> Migration:
        self._moved[migration.dz], self._under_way = now, migration
        self._left.setdefault(migration.dz, set()).add(migration.giver)
        return migration
