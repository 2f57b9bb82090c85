"""Links that flap are left out of the trees until they are stable.

Every mending costs entries on many switches, and what is under way where the link dies. A link therefore gets a
penalty each time it goes down; the penalty halves with time. Beyond one threshold the link counts as down, up or
not, until the penalty has decayed below a second, lower one (as RFC 2439 does it for routes, here in seconds).
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

from flowsieve.errors import BadInput
from flowsieve.network.mend import Edge
from flowsieve.network.topology import Topology

PENALTY = 1000.0  # for going down once; the thresholds are in the same unit


@dataclass(frozen=True, slots=True)
class DampingSettings:
    """How much flapping is tolerated.

    With the defaults a link is left out when it fails for the third time in some ten seconds: for half a minute at
    least, and `longest_seconds` at most after it failed last.
    """

    half_life_seconds: float = 15.0
    suppress: float = 2000.0
    reuse: float = 750.0
    longest_seconds: float = 60.0

    def __post_init__(self) -> None:
        if not 0 < self.half_life_seconds < math.inf:
            raise BadInput(f"a half-life of {self.half_life_seconds} s; right is more than 0")
        if not PENALTY <= self.suppress < math.inf:
            raise BadInput(
                f"links are left out beyond {self.suppress:g}; right is {PENALTY:g} or more, since a link that "
                "is pulled and plugged once must not be"
            )
        if not 0 < self.reuse < self.suppress:
            raise BadInput(f"links are used again below {self.reuse:g}; right is 0 to {self.suppress:g}")
        if self.ceiling < self.suppress + PENALTY:
            least = self.half_life_seconds * math.log2((self.suppress + PENALTY) / self.reuse)
            raise BadInput(
                f"a link is left out for {self.longest_seconds:g} s at most; right is {least:.1f} s or more, "
                "since a penalty takes that long to decay"
            )

    @property
    def ceiling(self) -> float:
        """The most that a penalty can be: from there it takes `longest_seconds` to decay."""
        return float(self.reuse * 2 ** min(self.longest_seconds / self.half_life_seconds, 500.0))

    def decayed(self, penalty: float, seconds: float) -> float:
        """What is left of a penalty after some time."""
        return float(penalty * 2 ** (-max(0.0, seconds) / self.half_life_seconds))

    def stable_after(self, penalty: float) -> float:
        """How many seconds a penalty takes to decay to where a link is used again."""
        return self.half_life_seconds * math.log2(penalty / self.reuse)


@dataclass(slots=True)
class _FlapHistory:
    """What is remembered of a link: its penalty at a time, whether it is up, and until when it is left out."""

    penalty: float = 0.0
    at: float = -math.inf
    up: bool = True
    until: float = -math.inf


class Damping:
    """Hears of links that come and go; a link of which nothing was told is up and stable.

    >>> damping, edge = Damping(), frozenset(("s1", "s2"))
    >>> for second in range(6):
    ...     damping.tell(edge, second % 2 == 1, second)
    >>> [sorted(each) for each in damping.suppressed(now=6)], round(damping.next_change(now=6), 1)
    ([['s1', 's2']], 32.1)
    >>> damping.suppressed(now=33)
    frozenset()
    """

    def __init__(self, settings: DampingSettings | None = None) -> None:
        self.settings = settings or DampingSettings()
        self._links: dict[Edge, _FlapHistory] = {}

    def tell(self, edge: Edge, up: bool, now: float) -> None:
        """A link is up or down; told again where nothing changed, it makes no difference."""
        link = self._links.setdefault(edge, _FlapHistory())
        if link.up == up:
            return
        link.up = up
        if up:
            return
        settings, now = self.settings, max(now, link.at)
        grown = settings.decayed(link.penalty, now - link.at) + PENALTY
        link.penalty, link.at = min(grown, settings.ceiling), now
        if link.penalty > settings.suppress or link.until > now:
            link.until = max(link.until, now + settings.stable_after(link.penalty))

    def suppressed(self, now: float) -> frozenset[Edge]:
        """The links that are left out."""
        return frozenset(edge for edge, link in self._links.items() if link.until > now)

    def next_change(self, now: float) -> float | None:
        """When the next link will be stable, if none of them goes down before."""
        return min((link.until for link in self._links.values() if link.until > now), default=None)

    def penalty(self, edge: Edge, now: float) -> float:
        """How flapping a link is."""
        link = self._links.get(edge)
        return 0.0 if link is None else self.settings.decayed(link.penalty, now - link.at)


def dispensable(topology: Topology, down: Collection[Edge], flapping: Collection[Edge]) -> frozenset[Edge]:
    """Of the flapping links, those that can be left out without cutting anything off that could be reached.

    A bad link is better than none. Of several that could each hold the same parts together, the first by name stays.

    >>> from flowsieve.network.generators import line, ring
    >>> edge = frozenset(("s0", "s1"))
    >>> dispensable(line(3), (), {edge}), dispensable(ring(3), (), {edge}) == {edge}
    (frozenset(), True)
    """
    part = {switch: {switch} for switch in topology.switches}

    def joins(edge: Edge) -> bool:
        a, b = edge
        if part[a] is part[b]:
            return False
        both = part[a] | part[b]
        for switch in both:
            part[switch] = both
        return True

    up = [edge for link in topology.links if (edge := frozenset((link.a, link.b))) not in down]
    for edge in up:
        if edge not in flapping:
            joins(edge)
    doubtful = sorted((edge for edge in up if edge in flapping), key=sorted)
    needed = {edge for edge in doubtful if joins(edge)}
    return frozenset(flapping) - needed
