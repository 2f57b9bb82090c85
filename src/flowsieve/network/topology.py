"""Switches, the links between them, and the endpoints at their edge: hosts, borders, filter servers."""

from __future__ import annotations

import ipaddress
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType

from flowsieve.errors import BadTopology, nearest
from flowsieve.network.port_numbers import Numbers, own_numbers

DEFAULT_LATENCY_MS = 0.05
MAX_LATENCY_MS = 3_600_000
FIRST_HOST_ADDRESS = ipaddress.IPv6Address("fd00:f::1")


@dataclass(frozen=True, slots=True)
class Link:
    """A link between two switches, the same in both directions."""

    a: str
    b: str
    latency_ms: float = DEFAULT_LATENCY_MS

    def __post_init__(self) -> None:
        _check_name("the end of a link", self.a)
        _check_name("the end of a link", self.b)
        if self.a == self.b:
            raise BadTopology(f"switch {_shown(self.a)} is linked with itself; a link joins two switches")
        latency = self.latency_ms
        if isinstance(latency, bool) or not isinstance(latency, int | float):
            raise BadTopology(f"the latency of {self} is {_shown(latency)}; it is a number of milliseconds")
        if not (math.isfinite(latency) and 0 <= latency <= MAX_LATENCY_MS):
            raise BadTopology(
                f"the latency of {self} is {latency} ms; it lies within 0 and {MAX_LATENCY_MS:,} ms"
            )

    def __str__(self) -> str:
        return f"the link {_shown(self.a)} - {_shown(self.b)}"


class EndpointKind(Enum):
    """What is attached to a switch's port: a host, the network of another controller, or a filter server."""

    HOST = "host"
    BORDER = "border"
    SERVER = "server"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where something is attached, its own address, and what it is."""

    switch: str
    port: int
    address: str
    kind: EndpointKind = EndpointKind.HOST


@dataclass(frozen=True, slots=True, repr=False)
class Topology:
    """A network; `attached` says at which switch each endpoint is, `kinds` what it is where it is no host.

    Port i+1 of a switch leads to `neighbours(switch)[i]`: first the switches that it is linked with, in the
    order of the links, then its endpoints, in theirs. Endpoints outside the `main` component are cut off. What a switch
    itself calls its ports, `numbers` says for those switches where that is something else: see `number`.

    >>> network = Topology.make([("s1", "s2")], {"h1": "s1", "h2": "s2"})
    >>> network.neighbours("s1"), network.endpoint("h2").port
    (('s2', 'h1'), 2)
    """

    switches: tuple[str, ...]
    links: tuple[Link, ...]
    attached: Mapping[str, str] = field(compare=False)
    numbers: Numbers = field(default_factory=dict, compare=False)
    kinds: Mapping[str, EndpointKind] = field(default_factory=dict, compare=False)
    hosts: Mapping[str, str] = field(init=False, compare=False)  # of those attached, the hosts
    # Equality and hash look at the endpoints in their order, since it decides the ports.
    _attached: tuple[tuple[str, str, EndpointKind], ...] = field(init=False)
    _numbers: tuple[tuple[str, tuple[int, ...]], ...] = field(init=False)
    _linked: Mapping[str, Mapping[str, float]] = field(init=False, compare=False)  # the latency in ms
    _ports: Mapping[str, Mapping[str, int]] = field(init=False, compare=False)
    _endpoints: Mapping[str, Endpoint] = field(init=False, compare=False)
    _components: tuple[frozenset[str], ...] = field(init=False, compare=False)
    _main: frozenset[str] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        _check_switches(self.switches)
        linked = _adjacency(self.switches, self.links)
        _check_endpoints(self.attached, self.kinds, linked)
        ports = {switch: {near: port for port, near in enumerate(row, 1)} for switch, row in linked.items()}
        endpoints = {}
        for number, (name, switch) in enumerate(self.attached.items()):
            port = ports[switch][name] = len(ports[switch]) + 1
            kind = self.kinds.get(name, EndpointKind.HOST)
            endpoints[name] = Endpoint(switch, port, str(FIRST_HOST_ADDRESS + number), kind)
        components = _connected(linked)
        crowd = Counter(self.attached.values())
        main = max(components, key=lambda part: (len(part), sum(crowd[switch] for switch in part)))
        derive = object.__setattr__
        derive(self, "attached", MappingProxyType(dict(self.attached)))
        hosts = {name: each.switch for name, each in endpoints.items() if each.kind is EndpointKind.HOST}
        derive(self, "hosts", MappingProxyType(hosts))
        derive(self, "_attached", tuple((name, each.switch, each.kind) for name, each in endpoints.items()))
        numbers = own_numbers(self.numbers, ports)
        derive(self, "numbers", MappingProxyType(numbers))
        derive(
            self, "_numbers", tuple(sorted((switch, tuple(row.values())) for switch, row in numbers.items()))
        )
        derive(self, "_linked", linked)
        derive(self, "_ports", ports)
        derive(self, "_endpoints", endpoints)
        derive(self, "_components", components)
        derive(self, "_main", main)

    @classmethod
    def make(
        cls,
        links: Iterable[Link | Sequence[str]],
        hosts: Mapping[str, str],
        switches: Iterable[str] = (),
        numbers: Numbers | None = None,
        kinds: Mapping[str, EndpointKind] | None = None,
    ) -> Topology:
        """The network of links as people write them: pairs of names will do, and parallel links become one.

        `switches` are needed only for those without a link, or to fix an order.
        """
        if not isinstance(hosts, Mapping):
            raise BadTopology(
                f"the hosts are {_shown(hosts)}; right is a table from host to switch, such as h1 = 's1'"
            )
        if isinstance(links, str | Mapping) or not isinstance(links, Iterable):
            raise BadTopology(
                f"the links are {_shown(links)}; right is a list of pairs, such as [['s1', 's2']]"
            )
        if isinstance(switches, str) or not isinstance(switches, Iterable):
            raise BadTopology(
                f"the switches are {_shown(switches)}; right is a list of names, such as ['s1', 's2']"
            )
        names = list(switches)
        for name in names:
            _check_name("the name of a switch", name)
        fastest: dict[frozenset[str], Link] = {}
        for number, entry in enumerate(links, 1):
            link = entry if isinstance(entry, Link) else _pair(entry, number)
            pair = frozenset((link.a, link.b))
            known = fastest.get(pair)
            if known is None:
                fastest[pair] = link
            elif link.latency_ms < known.latency_ms:
                fastest[pair] = Link(known.a, known.b, link.latency_ms)
            names += (link.a, link.b)
        return cls(tuple(dict.fromkeys(names)), tuple(fastest.values()), hosts, numbers or {}, kinds or {})

    def neighbours(self, switch: str) -> tuple[str, ...]:
        """The switches and hosts at a switch, in the order of its ports."""
        return tuple(self._row(switch))

    def linked(self, switch: str) -> tuple[str, ...]:
        """The switches that a switch is linked with, in the order of its ports."""
        self._row(switch)
        return tuple(self._linked[switch])

    def attached_at(self, switch: str) -> tuple[str, ...]:
        """The endpoints at a switch, in the order of its ports."""
        return self.neighbours(switch)[len(self._linked[switch]) :]

    def port(self, switch: str, neighbour: str) -> int:
        """The port of a switch that leads to a neighbour."""
        row = self._row(switch)
        if neighbour not in row:
            raise BadTopology(
                f"{_shown(neighbour)} is no neighbour of switch {_shown(switch)}{_hint(neighbour, row)}"
            )
        return row[neighbour]

    def neighbour(self, switch: str, port: int) -> str:
        """The switch or host that a port leads to."""
        row = self.neighbours(switch)
        if not 1 <= port <= len(row):
            raise BadTopology(f"switch {_shown(switch)} has no port {port}; its ports are 1 to {len(row)}")
        return row[port - 1]

    def number(self, switch: str, neighbour: str) -> int:
        """What a switch itself calls its port to a neighbour."""
        port = self.port(switch, neighbour)
        return self.numbers[switch][neighbour] if switch in self.numbers else port

    def behind(self, switch: str, number: int) -> str | None:
        """The switch or host at the port that a switch calls so; None if it has no such port of ours."""
        row = self._row(switch)
        return next((near for near, own in self.numbers.get(switch, row).items() if own == number), None)

    def endpoint(self, name: str) -> Endpoint:
        """Where an endpoint is attached, and what it is."""
        if name not in self._endpoints:
            raise BadTopology(f"there is no host {_shown(name)}{_hint(name, self._endpoints)}")
        return self._endpoints[name]

    def latency_ms(self, a: str, b: str) -> float:
        """How long a packet takes between two neighbours; a host is a default link away from its switch."""
        if a in self._endpoints:
            a, b = b, a
        self.port(a, b)
        return self._linked[a].get(b, DEFAULT_LATENCY_MS)

    def components(self) -> tuple[frozenset[str], ...]:
        """The parts that hang together, in the order of their first switches."""
        return self._components

    @property
    def main(self) -> frozenset[str]:
        """The component that is served: most switches, then most hosts, then first."""
        return self._main

    def reachable(self, host: str) -> bool:
        """Whether a host is in the main component."""
        return self.endpoint(host).switch in self._main

    def __str__(self) -> str:
        return f"{len(self.switches)} switches, {len(self.links)} links, {len(self.hosts)} hosts"

    def __repr__(self) -> str:
        return f"<Topology: {self}>"

    def __reduce__(self) -> tuple[type[Topology], tuple[object, ...]]:
        numbers = {switch: dict(row) for switch, row in self.numbers.items()}
        return Topology, (self.switches, self.links, dict(self.attached), numbers, dict(self.kinds))

    def _row(self, switch: str) -> Mapping[str, int]:
        if switch not in self._ports:
            raise BadTopology(f"there is no switch {_shown(switch)}{_hint(switch, self._ports)}")
        return self._ports[switch]


def _pair(entry: object, number: int) -> Link:
    """A link as written by hand."""
    if not isinstance(entry, list | tuple) or len(entry) != 2:
        raise BadTopology(
            f"a link is {_shown(entry)}; right are the names of two switches, such as ['s1', 's2']",
            place=f"link {number}",
        )
    try:
        return Link(*entry)
    except BadTopology as error:
        raise error.at(f"link {number}") from None


def _check_name(what: str, name: object) -> None:
    if not isinstance(name, str) or not name:
        raise BadTopology(f"{what} is {_shown(name)}; right is a name, such as 's1'")


def _check_switches(switches: Sequence[str]) -> None:
    if not switches:
        raise BadTopology(
            "the topology has no switches; right are links, such as [['s1', 's2']], or names of switches"
        )
    for name in switches:
        _check_name("the name of a switch", name)
    if len(set(switches)) < len(switches):
        raise BadTopology(f"switch {_shown(Counter(switches).most_common(1)[0][0])} is named twice")


def _adjacency(switches: Sequence[str], links: Sequence[Link]) -> dict[str, dict[str, float]]:
    """For each switch those that it is linked with, and the latency in ms."""
    linked: dict[str, dict[str, float]] = {switch: {} for switch in switches}
    for link in links:
        for end in (link.a, link.b):
            if end not in linked:
                raise BadTopology(f"{link} leads to unknown switch {_shown(end)}{_hint(end, linked)}")
        if link.b in linked[link.a]:
            raise BadTopology(f"{link} is there twice")
        linked[link.a][link.b] = linked[link.b][link.a] = link.latency_ms
    return linked


def _check_endpoints(
    attached: Mapping[str, str], kinds: Mapping[str, EndpointKind], switches: Mapping[str, object]
) -> None:
    for name, switch in attached.items():
        kind = kinds.get(name, EndpointKind.HOST).value
        _check_name(f"the name of a {kind}", name)
        _check_name(f"the switch of {kind} {_shown(name)}", switch)
        if name in switches:
            raise BadTopology(
                f"{_shown(name)} is the name of a switch and of a {kind}; one of them needs another name"
            )
        if switch not in switches:
            raise BadTopology(
                f"{kind} {_shown(name)} is at unknown switch {_shown(switch)}{_hint(switch, switches)}"
            )
    for name in kinds:
        if name not in attached:
            raise BadTopology(f"{_shown(name)} is of a kind, and attached nowhere{_hint(name, attached)}")


def _connected(linked: Mapping[str, Iterable[str]]) -> tuple[frozenset[str], ...]:
    """The connected components, in the order of their first switches."""
    seen: set[str] = set()
    parts = []
    for start in linked:
        if start in seen:
            continue
        part = {start}
        waiting = [start]
        while waiting:
            fresh = [near for near in linked[waiting.pop()] if near not in part]
            part.update(fresh)
            waiting += fresh
        seen |= part
        parts.append(frozenset(part))
    return tuple(parts)


def _hint(name: str, known: Iterable[str]) -> str:
    """What would have been right: the nearest known name, or the first few."""
    names = list(known)
    few = ", ".join(map(_shown, names[:5])) + (", …" if len(names) > 5 else "")
    return nearest(name[:100], names) or (f"; there are {few}" if names else "; there are none")


def _shown(value: object) -> str:
    """A value in an error: as Python writes it, shortened."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"
