"""The guard of a switch: which events it takes in at which port, before its content entries see them.

A host's port takes in what the host has advertised, from its own address, so many events a second; where packets name
their receivers, those that name nobody whom the host may not address; where labels stand in the source as well, from
any that is one. A port to another switch takes in all: what comes there was let in before. A port that nobody knows
takes in nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from flowsieve.errors import BadInput
from flowsieve.flow.owner import SOLE, Owner
from flowsieve.flow.punt import MAX_RATE
from flowsieve.flow.send_policy import SendPolicy
from flowsieve.header.address import Prefix
from flowsieve.header.bloom import HEADER as BLOOM
from flowsieve.header.bloom import SOURCES
from flowsieve.header.encoding import Encoding
from flowsieve.header.host_groups import host_addresses
from flowsieve.header.match import PREFIX_MASKS, Masked, PrefixMatch
from flowsieve.header.receivers import ReceiverLabels
from flowsieve.header.tag import POOLS
from flowsieve.index.dz import Dz
from flowsieve.index.dzset import EMPTY, WHOLE, DzSet
from flowsieve.network.host_patterns import HostPatterns
from flowsieve.network.topology import EndpointKind, Topology

GUARD_PRIORITY = (
    1900  # of what comes in anywhere; one more for a port that is named, two for what its host may send
)
MOST_PREFIXES = 16  # a port
LEAST_IN_SET = 102  # hosts that have bits behind one number of a set, at least

Admitted = Prefix | Masked  # addresses that events are sent to
Labelled = Mapping[str, tuple[Masked, ...]]  # what the labels of each host may be


@dataclass(frozen=True, slots=True)
class Gate:
    """What a host's port takes in: what is from its `source`, or whomever, and within `admitted`, at a `rate`.

    A rate of 0 is no limit.
    """

    port: int
    source: Prefix | None
    admitted: tuple[Admitted, ...]
    rate: int = 0

    def __post_init__(self) -> None:
        if self.port < 1:
            raise BadInput(f"no host is at port {self.port}; right is 1 and up")
        if not 0 <= self.rate <= MAX_RATE:
            raise BadInput(f"{self.rate} events a second are no limit; right is 0 to {MAX_RATE:,}")
        if self.source is not None and self.source.length != self.source.width and self.source != SOURCES:
            raise BadInput(
                f"{self.source} is no host's address; right is a whole one, or {SOURCES} for labels"
            )


@dataclass(frozen=True, slots=True)
class Guard:
    """Where packets to a group come in; `gates` are the hosts' ports, `links` those that take in all.

    An `open` guard takes in everything everywhere, and has neither. Where several owners share a switch, each has a
    guard for its own `parts` of the group, and says nothing of the others. Where some hosts send labels, it is about
    the group of these `labels` as well.
    """

    group: Prefix
    open: bool = True
    gates: tuple[Gate, ...] = ()
    links: tuple[int, ...] = ()
    owner: int = 0
    parts: tuple[Prefix, ...] | None = None  # None: all of it
    labels: Prefix | None = None

    def __post_init__(self) -> None:
        if self.open and (self.gates or self.links):
            raise BadInput("an open guard has no gates; right is one that is not open")
        ports = [*self.links, *(gate.port for gate in self.gates)]
        if len(set(ports)) < len(ports):
            raise BadInput(f"a port is guarded twice, of {sorted(ports)}; right is one gate for each")
        for part in self.parts or ():
            if not self.group.covers(part):
                raise BadInput(f"a guard is for {part}, which is not in {self.group}")
        for gate in self.gates:
            for some in gate.admitted:
                if not any(_covers(part, some) for part in self.within):
                    told = " or ".join(map(str, self.within)) or "any part of it"
                    raise BadInput(f"port {gate.port} is to take in {some}, which is not in {told}")

    @property
    def within(self) -> tuple[Prefix, ...]:
        """What it is about."""
        own = (self.group,) if self.parts is None else self.parts
        return own if self.labels is None else (*own, self.labels)

    @property
    def entries(self) -> int:
        """How many entries it takes: for each part one at each port, and one for what comes in anywhere else."""
        admitted = sum(len(gate.admitted) for gate in self.gates)
        return len(self.within) * (1 + len(self.links) + len(self.gates)) + admitted


@dataclass(frozen=True, slots=True)
class GuardSettings:
    """How hosts are guarded: with so many `prefixes` a port, at a `rate`, from their own `sources` where known."""

    prefixes: int = MOST_PREFIXES
    rate: int = 0
    sources: Mapping[str, Prefix] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.prefixes < 1:
            raise BadInput(f"{self.prefixes} prefixes a port let nothing in; right is 1 and up")


class LabelGroup(NamedTuple):
    """Where labels stand beside dz: what they begin with, and the hosts that send them, and nothing else."""

    group: Prefix
    hosts: HostPatterns


@dataclass(frozen=True, slots=True)
class Refusals:
    """Events that a gate did not take in: those `outside` of what is admitted there, those `over_rate`."""

    outside: int = 0
    over_rate: int = 0


def guard_of(
    topology: Topology,
    switch: str,
    encoding: Encoding,
    advertised: Mapping[str, DzSet],
    settings: GuardSettings | None,
    owner: Owner = SOLE,
    labels: LabelGroup | None = None,
    allowed: Labelled | None = None,
) -> Guard:
    """The guard of a switch, given what its hosts have advertised in its owner's part; an open one without settings.

    `labels` are what some hosts send beside the dz of others; `allowed` are those that each host which has advertised
    something may send, where a policy tells them.
    """
    group, part, roots = encoding.tag.group, owner.part, [DzSet((root,)) for root in encoding.roots]
    whole = part == WHOLE and len(roots) == 1
    parts = None if whole else tuple(each for root in roots for each in _prefixes(encoding, part & root))
    beside = None if labels is None else labels.group
    if settings is None:
        return Guard(group, owner=owner.number, parts=parts, labels=beside)

    def admitted(host: str) -> tuple[Admitted, ...]:
        own = advertised.get(host, EMPTY)
        if allowed is not None:
            return allowed.get(host, ())
        if labels is not None and labels.hosts.hold(host):
            return (labels.group,) if len(own) else ()
        each = max(1, settings.prefixes // len(roots))
        apart = (DzSet(coarsened(own & root, each)) & part for root in roots)
        return tuple(prefix for cells in apart for prefix in _prefixes(encoding, cells))

    ends = {name: topology.endpoint(name) for name in topology.attached_at(switch)}
    linked = [topology.port(switch, near) for near in topology.linked(switch)]
    others = [end.port for end in ends.values() if end.kind is not EndpointKind.HOST]
    gates = [
        Gate(
            end.port,
            SOURCES if encoding.tag in POOLS[BLOOM] else settings.sources.get(name),
            admitted(name),
            settings.rate,
        )
        for name, end in ends.items()
        if end.kind is EndpointKind.HOST
    ]
    return Guard(group, False, tuple(gates), (*linked, *others), owner.number, parts, beside)


def labels_of(hosts: Iterable[str], labels: ReceiverLabels, policy: SendPolicy) -> Labelled:
    """What the labels of some hosts may be: for each set, those that name nobody whom the host may not address."""
    return {host: tuple(labels.none_but(policy.reached(host, labels.hosts)).values()) for host in hosts}


def sets_within(topology: Topology) -> int:
    """How many sets the hosts of a network are in, at most: so many entries say which of them a host may address."""
    return max(1, -(-len(topology.hosts) // LEAST_IN_SET))


def most_entries(topology: Topology, prefixes: int, groups: int = 1) -> int:
    """How many entries a guard of so many groups takes at most at a switch, with so many prefixes for each host."""
    return max(
        (
            groups * (1 + len(topology.linked(switch)) + len(there)) + prefixes * len(there)
            for switch in topology.switches
            for there in [topology.attached_at(switch)]
        ),
        default=0,
    )


def prefixes_within(topology: Topology, room: int, groups: int = 1) -> int:
    """How many prefixes each host may have, so that a guard has no more entries than that; 0 if none fits."""
    fitting = (n for n in range(MOST_PREFIXES + 1) if most_entries(topology, n, groups) <= room)
    return max(fitting, default=0)


def known_sources(topology: Topology, family: int) -> dict[str, Prefix]:
    """The hosts' own addresses, on a network that gives each the one of its number."""
    return {
        host: Prefix.parse(own.ipv6 if family == 6 else own.ipv4)
        for host, own in host_addresses(topology).items()
    }


def asked_of(some: Admitted) -> Masked:
    """The bits of an address that tell whether it is one of these."""
    if isinstance(some, Masked):
        return some
    return Masked(some.family, some.first, PREFIX_MASKS[some.family][some.length])


def _covers(part: Prefix, some: Admitted) -> bool:
    whole, asked = asked_of(part), asked_of(some)
    return (
        part.family == asked.family
        and asked.mask & whole.mask == whole.mask
        and asked.value & whole.mask == whole.value
    )


def _prefixes(encoding: Encoding, cells: DzSet) -> tuple[Prefix, ...]:
    """The addresses that events in some cells are sent to; all of the group where no prefix tells them."""
    matches = [encoding.match_of(dz) for dz in cells]
    found = [match.destination for match in matches if isinstance(match, PrefixMatch)]
    return tuple(found) if len(found) == len(matches) else (encoding.tag.group,)


def coarsened(cells: DzSet, most: int) -> list[Dz]:
    """At most so many cells that hold all of these: the nearest ones are made one.

    Cells are kept apart where the cells that hold two neighbours are widest; so no two of the result overlap.

    >>> [str(dz) for dz in coarsened(DzSet.of("0000", "0011", "1"), 2)]
    ['00', '1']
    """
    sorted_cells = sorted(cells)
    if len(sorted_cells) <= most:
        return sorted_cells
    shared = [_shared(a, b) for a, b in pairwise(sorted_cells)]
    cuts = sorted(sorted(range(len(shared)), key=lambda i: shared[i].length)[: most - 1])
    bounds = [0, *(cut + 1 for cut in cuts), len(sorted_cells)]
    return [_shared(sorted_cells[begin], sorted_cells[end - 1]) for begin, end in pairwise(bounds)]


def _shared(a: Dz, b: Dz) -> Dz:
    """The smallest cell that holds both."""
    length = min(a.length, b.length, 128 - (a.aligned ^ b.aligned).bit_length())
    return Dz(a.bits >> (a.length - length), length)
