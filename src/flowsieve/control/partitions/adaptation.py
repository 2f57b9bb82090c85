"""The division of the event space adapts: partitions are split where requests are, and joined where that costs entries.

A partition that has more than its share of the requests cannot be balanced: whoever owns it has that much. But each
interest that covers a partition wholly costs an entry per partition, so a split does not help where most interests do,
and what is hardly asked for need not be divided.

A step never undoes the one before it: what a join makes would not be split, and what a split makes would not be joined,
given the same requests.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from flowsieve.errors import BadInput
from flowsieve.index.dz import MAX_LENGTH, Dz

MOST_STEPS = 8  # at once


@dataclass(frozen=True, slots=True)
class AdaptationSettings:
    """When to split and to join. A fair share of the requests is that of one of so many equal partitions.

    So many are `each` for each of the `configurators`, or as many as there are if their number is not given. Beyond
    `hot` fair shares a partition is split, two that together have less than `cold` are joined. Requests that cover a
    partition wholly are most of its load beyond the share `spanning` of it. No partition has more than `longest` bits,
    and there are no more than `most` of them.
    """

    hot: float = 2.0
    cold: float = 0.5
    spanning: float = 0.5
    longest: int = 12
    most: int = 256
    configurators: int | None = None
    each: int = 8

    def __post_init__(self) -> None:
        if not 0 < self.cold < self.hot < math.inf:
            raise BadInput(
                f"partitions are joined below {self.cold} fair shares and split beyond {self.hot}; right is more "
                "than 0 for the first, and more than that for the second"
            )
        if not 0 < self.spanning < 1:
            raise BadInput(f"most of a load is {self.spanning} of it; right is between 0 and 1")
        if not 0 <= self.longest <= MAX_LENGTH:
            raise BadInput(f"a partition has {self.longest} bits at most; right is 0 to {MAX_LENGTH}")
        if self.most < 1 or self.each < 1 or (self.configurators is not None and self.configurators < 1):
            raise BadInput("partitions and configurators are 1 or more")

    def fair_share(self, total: float, partitions: int) -> float:
        """What one of so many partitions should have of a load."""
        return total / (self.configurators * self.each if self.configurators else partitions)


@dataclass(frozen=True, slots=True)
class Split:
    """A partition becomes its two halves."""

    dz: Dz


@dataclass(frozen=True, slots=True)
class Join:
    """The two halves of this dz become one partition."""

    dz: Dz


def redivided(
    loads: Mapping[Dz, float],
    spanning: Mapping[Dz, float],
    settings: AdaptationSettings,
    joinable: Callable[[Dz], bool],
) -> tuple[Dz, ...] | None:
    """The partitions after some steps at once, in their order; None if all is well as it is.

    What the halves of a partition have is not known before they are there: each is taken to have half of it.
    """
    loads, spanning = dict(loads), dict(spanning)
    before = set(loads)
    for _ in range(MOST_STEPS):
        match adapted(loads, spanning, settings, joinable):
            case Split(dz):
                load, over = loads.pop(dz), spanning.pop(dz, 0.0)
                loads |= dict.fromkeys(dz.children, over + (load - over) / 2)
                spanning |= dict.fromkeys(dz.children, over)
            case Join(dz):
                over = min(spanning.pop(child, 0.0) for child in dz.children)
                loads[dz] = max(0.0, sum(loads.pop(child) for child in dz.children) - over)
                spanning[dz] = over
            case None:
                break
    return tuple(sorted(loads)) if loads.keys() != before else None


def adapted(
    loads: Mapping[Dz, float],
    spanning: Mapping[Dz, float],
    settings: AdaptationSettings,
    joinable: Callable[[Dz], bool] = lambda parent: True,
) -> Split | Join | None:
    """The next step, if there is one; what is not `joinable` is not joined.

    `loads` are the requests of the last period by partition, one that spans several counted in each. `spanning` is how
    many of them cover a partition wholly. Where it tells that also of the parent of two partitions, they are joined as
    soon as most requests cover both; where it does not, only if the joined one could not be hot even if none did.

    >>> loads = {Dz.parse("00"): 1.0, Dz.parse("01"): 2.0, Dz.parse("10"): 9.0, Dz.parse("11"): 90.0}
    >>> adapted(loads, {}, AdaptationSettings())
    Split(dz=Dz('11'))
    >>> adapted(loads, {Dz.parse("11"): 80.0}, AdaptationSettings())
    Join(dz=Dz('0'))
    """
    return _split(loads, spanning, settings) or _join(loads, spanning, settings, joinable)


def _split(
    loads: Mapping[Dz, float], spanning: Mapping[Dz, float], settings: AdaptationSettings
) -> Split | None:
    """The hottest of those that a split helps."""
    if len(loads) >= settings.most:
        return None
    fair = settings.fair_share(sum(loads.values()), len(loads))
    hot = [dz for dz, load in loads.items() if _is_split(dz, load, spanning.get(dz, 0.0), fair, settings)]
    return Split(min(hot, key=lambda dz: (-loads[dz], dz))) if hot else None


def _is_split(dz: Dz, load: float, spanning: float, fair: float, settings: AdaptationSettings) -> bool:
    return (
        load > settings.hot * fair and dz.length < settings.longest and spanning <= settings.spanning * load
    )


def _join(
    loads: Mapping[Dz, float],
    spanning: Mapping[Dz, float],
    settings: AdaptationSettings,
    joinable: Callable[[Dz], bool],
) -> Join | None:
    """Of the pairs that may be joined the one that has least."""
    if len(loads) <= (settings.configurators or 1):
        return None
    pairs = {
        parent: sum(loads[child] for child in parent.children)
        for dz in loads
        if (parent := dz.parent) and all(child in loads for child in parent.children)
    }
    found = [parent for parent in pairs if joinable(parent) and _is_joined(parent, loads, spanning, settings)]
    return Join(min(found, key=lambda dz: (pairs[dz], dz))) if found else None


def _is_joined(
    parent: Dz, loads: Mapping[Dz, float], spanning: Mapping[Dz, float], settings: AdaptationSettings
) -> bool:
    left, right = parent.children
    total, together = sum(loads.values()), loads[left] + loads[right]
    lesser = min(loads[left], loads[right])
    both = min(spanning.get(parent, 0.0), lesser)  # these are counted twice, and would be once
    fair = settings.fair_share(total - both, len(loads) - 1)
    if _is_split(parent, together - both, both, fair, settings):
        return False
    if together < settings.cold * settings.fair_share(total, len(loads)):
        return True
    at_most = min(spanning.get(left, 0.0), spanning.get(right, 0.0), lesser)
    guess = both if parent in spanning else at_most
    return guess > settings.spanning * (together - guess)
