"""Detours: how events get to the far end of a link that has died, before a controller hears of it.

A link u-v is emulated: u sends what should go over it by another way, under a mark of the link; the switches on that
way pass marked packets on as they come in, and v takes the mark off and handles them as if they had come in over the
link. So a tree that has the link stays as it is.

The mark is a VLAN id that follows from the names of u and v: the same as long as there is the link, whatever else the
network becomes. It says for which link a packet goes round; which way it takes, the switches know.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import pairwise
from typing import NamedTuple

from flowsieve.network.mend import Edge
from flowsieve.network.topology import Topology

MARKS = range(1, 4095)  # the VLAN ids that are free to use
NOWHERE = 0  # no port
ENTRIES_PER_WAY = 3  # not back over the link, back where a packet came from, and all others

Path = tuple[str, ...]


class Way(NamedTuple):
    """Where a switch sends what should go over a dead link: out of the port `via`, under a mark."""

    mark: int
    via: int


class Arrival(NamedTuple):
    """A port at which packets with a mark come in."""

    port: int
    mark: int


@dataclass(frozen=True, slots=True)
class Protection:
    """What one switch does for detours.

    `links` are the ports to other switches that it watches; where one of them dies and has a way in `ways`, that is
    taken. `relays` says out of which port marked packets go on, `landings` at which port those that end here are
    taken to have come in. All of that is about multicast of one `family`.
    """

    links: frozenset[int] = frozenset()
    ways: Mapping[int, Way] = field(default_factory=dict)
    relays: Mapping[Arrival, int] = field(default_factory=dict)
    landings: Mapping[Arrival, int] = field(default_factory=dict)
    family: int = field(default=6, compare=False)

    @property
    def entries(self) -> int:
        return ENTRIES_PER_WAY * len(self.ways) + len(self.relays) + len(self.landings)

    @property
    def groups(self) -> int:
        """How many fast-failover groups it takes."""
        return len(self.links)

    def closed_at(self, ports: Collection[int]) -> Protection:
        """What is left where nothing may go out or come in by some ports, nor by a way around them."""
        ways = {port: way for port, way in self.ways.items() if port not in ports}
        landings = {arrival: port for arrival, port in self.landings.items() if port not in ports}
        return replace(self, ways=ways, landings=landings)


NO_PROTECTION = Protection()


def mark_of(near: str, far: str) -> int:
    """The mark of what should go over a link from one end to the other."""
    name = f"{near}\0{far}".encode()
    return MARKS[int.from_bytes(blake2b(name, digest_size=8).digest()) % len(MARKS)]


def way_around(topology: Topology, edge: Edge, unusable: Collection[Edge]) -> Path | None:
    """The quickest way from one end of a link to the other without it, by latency, then by links; None without any.

    >>> from flowsieve.network.generators import ring
    >>> way_around(ring(4), frozenset(("s0", "s1")), ())
    ('s0', 's3', 's2', 's1')
    """
    start, end = sorted(edge)
    waiting: list[tuple[float, int, Path]] = [(0.0, 0, (start,))]
    done: set[str] = set()
    while waiting:
        latency, links, path = heapq.heappop(waiting)
        here = path[-1]
        if here == end:
            return path
        if here in done:
            continue
        done.add(here)
        for near in topology.linked(here):
            over = frozenset((here, near))
            if near not in done and over != edge and over not in unusable:
                taken = latency + topology.latency_ms(here, near)
                heapq.heappush(waiting, (taken, links + 1, (*path, near)))
    return None


def ways_around(
    topology: Topology,
    edges: Iterable[Edge],
    unusable: Collection[Edge],
    most: int | None = None,
    known: Mapping[Edge, Path] | None = None,
) -> dict[Edge, Path]:
    """A way around each of some links, where there is one and it takes no switch more entries than `most`.

    A way that is known already and still usable stays.
    """
    found: dict[Edge, Path] = {}
    made: dict[str, Protection] = {}
    old = known or {}

    def take(edge: Edge, path: Path | None) -> bool:
        parts = _parts(topology, path) if path is not None else None
        if parts is None or path is None:
            return False
        joined = {switch: _joined(made.get(switch, NO_PROTECTION), part) for switch, part in parts.items()}
        if any(each is None or (most is not None and each.entries > most) for each in joined.values()):
            return False
        made.update({switch: each for switch, each in joined.items() if each is not None})
        found[edge] = path
        return True

    wanted = sorted(edges, key=sorted)
    left = [
        edge for edge in wanted if not (edge in old and usable(old[edge], unusable) and take(edge, old[edge]))
    ]
    for edge in left:
        take(edge, way_around(topology, edge, unusable))
    return found


def usable(path: Path, unusable: Collection[Edge]) -> bool:
    """Whether a way has none of some links."""
    return not any(edge in unusable for edge in edges_on(path))


def edges_on(path: Path) -> list[Edge]:
    """The links that a way takes."""
    return [frozenset(pair) for pair in pairwise(path)]


def protections(topology: Topology, paths: Iterable[Path], family: int = 6) -> dict[str, Protection]:
    """What each switch does for detours that take these ways, in both directions."""
    made = {
        switch: Protection(
            frozenset(topology.port(switch, near) for near in topology.linked(switch)), family=family
        )
        for switch in topology.switches
    }
    for path in paths:
        for switch, part in (_parts(topology, path) or {}).items():
            made[switch] = _joined(made[switch], part) or made[switch]
    return made


class Landing(NamedTuple):
    """Where a packet that went around a link is handled: at a switch, as if it had come in at a port, after a way."""

    switch: str
    port: int
    path: Path


def landing(
    topology: Topology,
    held: Mapping[str, Protection],
    near: str,
    far: str,
    unusable: Collection[Edge] = (),
) -> Landing | None:
    """Where a packet from one end of a dead link to the other is handled; None if it is dropped on the way.

    The port is `NOWHERE` where it goes in a circle, or to a host.
    """
    way = held.get(near, NO_PROTECTION).ways.get(topology.port(near, far))
    if way is None:
        return None
    path, out = [near], way.via
    for _ in topology.switches:
        here = path[-1]
        there = topology.neighbour(here, out)
        if there in topology.attached:
            return Landing(here, NOWHERE, tuple(path))
        if frozenset((here, there)) in unusable:
            return None
        path.append(there)
        arrival, protection = Arrival(topology.port(there, here), way.mark), held.get(there, NO_PROTECTION)
        if arrival in protection.landings:
            return Landing(there, protection.landings[arrival], tuple(path))
        if arrival not in protection.relays:
            return None
        out = protection.relays[arrival]
    return Landing(path[-1], NOWHERE, tuple(path))


def right(topology: Topology, found: Landing, near: str, far: str) -> bool:
    """Whether a packet was handled where it should be, as if it had come over the link."""
    return (found.switch, found.port) == (far, topology.port(far, near))


def emulated(
    topology: Topology, held: Mapping[str, Protection], near: str, far: str, unusable: Collection[Edge] = ()
) -> bool:
    """Whether packets from one end of a dead link get to the other as if over it, on links that can be used."""
    found = landing(topology, held, near, far, unusable)
    return found is not None and right(topology, found, near, far)


def bridged(
    topology: Topology, held: Mapping[str, Protection], edges: Iterable[Edge], unusable: Collection[Edge] = ()
) -> dict[Edge, Path]:
    """Of some links, those that packets get around in both directions, and the way that they take."""
    found = {}
    for edge in edges:
        near, far = sorted(edge)
        there = landing(topology, held, near, far, unusable)
        both = there is not None and right(topology, there, near, far)
        if there is not None and both and emulated(topology, held, far, near, unusable):
            found[edge] = there.path
    return found


def _parts(topology: Topology, path: Path) -> dict[str, Protection] | None:
    """What each switch on a way does for it, in both directions; None where the marks of the two are in the way."""
    made: dict[str, Protection] = {}
    for way in (path, path[::-1]):
        near, far, mark = way[0], way[-1], mark_of(way[0], way[-1])
        parts = [(near, Protection(ways={topology.port(near, far): Way(mark, topology.port(near, way[1]))}))]
        for before, here, after in zip(way, way[1:], way[2:], strict=False):
            arrival = Arrival(topology.port(here, before), mark)
            parts.append((here, Protection(relays={arrival: topology.port(here, after)})))
        last = Arrival(topology.port(far, way[-2]), mark)
        parts.append((far, Protection(landings={last: topology.port(far, near)})))
        for switch, part in parts:
            joined = _joined(made.get(switch, NO_PROTECTION), part)
            if joined is None:
                return None
            made[switch] = joined
    return made


def _joined(one: Protection, other: Protection) -> Protection | None:
    """Both at once; None where they do different things to the same packets, since two links have one mark."""
    if one.relays.keys() & other.landings.keys() or one.landings.keys() & other.relays.keys():
        return None
    if any(one.relays.get(arrival, out) != out for arrival, out in other.relays.items()):
        return None
    if any(one.landings.get(arrival, port) != port for arrival, port in other.landings.items()):
        return None
    if {way.mark for way in one.ways.values()} & {way.mark for way in other.ways.values()}:
        return None  # table entries tell the ways of a switch apart by their marks
    return replace(
        one,
        ways={**one.ways, **other.ways},
        relays={**one.relays, **other.relays},
        landings={**one.landings, **other.landings},
    )
