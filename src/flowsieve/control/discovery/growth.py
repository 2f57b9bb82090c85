"""The topology that follows from what discovery has found, in addition to what is known."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterable

from flowsieve.control.discovery.findings import Findings, FoundHost, FoundLink, SwitchPort
from flowsieve.network.mend import Edge
from flowsieve.network.topology import Link, Topology


def grown(known: Topology, findings: Findings) -> Topology:
    """A topology with all that was found in addition, as far as it fits; what is known stays, and comes first.

    A second link between two switches, a link of a switch with itself, a second host at a port and what is found at
    a port that leads elsewhere are left out; they show as differences.

    >>> network = Topology.make([("s1", "s2")], {"h1": "s1"})
    >>> new = grown(network, Findings(("s1", "s3"), (FoundLink(SwitchPort("s1", 7), SwitchPort("s3", 4)),)))
    >>> [(link.a, link.b) for link in new.links], new.number("s1", "s3"), new.number("s1", "h1")
    ([('s1', 's2'), ('s1', 's3')], 7, 2)
    """
    switches = tuple(dict.fromkeys((*known.switches, *findings.switches)))
    book = _Book(known, switches)
    links = [link for link in _in_order(findings.links, switches) if book.enter_link(link)]
    hosts = [host for host in sorted(findings.hosts, key=_rank) if book.enter_host(host)]
    if not links and not hosts and switches == known.switches:
        return known
    return Topology(
        switches,
        (*known.links, *(Link(link.a.switch, link.b.switch) for link in links)),
        {**known.attached, **{host.name: host.place.switch for host in hosts}},
        book.numbers,
        known.kinds,
    )


def without(known: Topology, edges: Collection[Edge]) -> Topology:
    """A topology without some of its links; hosts and switches stay, and so do the numbers of all other ports.

    >>> network = Topology.make([("s1", "s2"), ("s1", "s3")], {"h1": "s1"})
    >>> less = without(network, [frozenset(("s1", "s2"))])
    >>> less.neighbours("s1"), less.number("s1", "h1")
    (('s3', 'h1'), 3)
    """
    links = tuple(link for link in known.links if frozenset((link.a, link.b)) not in edges)
    numbers = {
        switch: {
            near: known.number(switch, near)
            for near in known.neighbours(switch)
            if frozenset((switch, near)) not in edges
        }
        for switch in known.switches
    }
    return Topology(known.switches, links, known.attached, numbers, known.kinds)


def moved(known: Topology, host: str, place: SwitchPort) -> Topology:
    """A topology with a host at another port; all else stays, also the numbers of hosts, and so their addresses.

    >>> network = Topology.make([("s1", "s2")], {"h1": "s1", "h2": "s1"})
    >>> other = moved(network, "h1", SwitchPort("s2", 7))
    >>> list(other.hosts.items()), other.number("s2", "h1"), other.number("s1", "h2")
    ([('h1', 's2'), ('h2', 's1')], 7, 3)
    """
    numbers = {
        switch: {near: known.number(switch, near) for near in known.neighbours(switch) if near != host}
        for switch in known.switches
    }
    numbers[place.switch][host] = place.port
    attached = {**known.attached, host: place.switch}
    return Topology(known.switches, known.links, attached, numbers, known.kinds)


class _Book:
    """Which port of which switch leads where, while something is added."""

    def __init__(self, known: Topology, switches: Iterable[str]) -> None:
        self._names = {*switches, *known.attached}
        self.numbers: dict[str, dict[str, int]] = {switch: {} for switch in switches}
        for switch in known.switches:
            near = known.neighbours(switch)
            self.numbers[switch] = {other: known.number(switch, other) for other in near}

    def enter_link(self, link: FoundLink) -> bool:
        """Note a link; says whether there was room for it."""
        a, b = link.a, link.b
        if a.switch == b.switch or b.switch in self.numbers[a.switch] or self._taken(a) or self._taken(b):
            return False
        self.numbers[a.switch][b.switch], self.numbers[b.switch][a.switch] = a.port, b.port
        return True

    def enter_host(self, host: FoundHost) -> bool:
        """Note a host; says whether there was room for it."""
        if host.name in self._names or self._taken(host.place):
            return False
        self._names.add(host.name)
        self.numbers[host.place.switch][host.name] = host.place.port
        return True

    def _taken(self, place: SwitchPort) -> bool:
        return place.port in self.numbers[place.switch].values()


def _in_order(links: Iterable[FoundLink], switches: Iterable[str]) -> list[FoundLink]:
    """Links by their ends, switches counted as they are listed; of several between two the lowest ports first."""
    number = {switch: n for n, switch in enumerate(switches)}

    def rank(place: SwitchPort) -> tuple[int, int]:
        return number[place.switch], place.port

    turned = [FoundLink(*sorted(link.ends, key=rank)) for link in links]
    return sorted(turned, key=lambda link: (rank(link.a), rank(link.b)))


def _rank(host: FoundHost) -> tuple[int, int, str]:
    """Hosts in the order of their addresses; those without one come last."""
    numbers = [ipaddress.ip_address(address) for address in host.addresses]
    first = min(((each.version, int(each)) for each in numbers), default=(7, 0))
    return (*first, host.name)
