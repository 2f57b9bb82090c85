"""In what the network that was found differs from the one that an operator described."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import Enum

from flowsieve.control.discovery.findings import Findings, FoundLink, SwitchPort
from flowsieve.network.mend import Edge
from flowsieve.network.topology import Topology


class DifferenceKind(Enum):
    """In what a network can differ from its description."""

    SWITCH_MISSING = "switch missing"
    SWITCH_UNKNOWN = "switch unknown"
    LINK_MISSING = "link missing"
    LINK_UNKNOWN = "link unknown"
    WRONG_PORT = "wrong port"
    ONE_SIDED = "one-sided link"
    HOST_ELSEWHERE = "host elsewhere"
    HOST_UNKNOWN = "host unknown"


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not as described, and a sentence for the operator."""

    kind: DifferenceKind
    text: str

    def __str__(self) -> str:
        return self.text


def differences(
    findings: Findings, topology: Topology, closed: Collection[Edge] = ()
) -> tuple[Difference, ...]:
    """All that is not as the topology says; links in `closed` are known to carry nothing, and may be missing.

    A host that says nothing is not missing, and one without a configured name is taken for the one that
    should be at its port.
    """
    return (
        *_switches_amiss(findings, topology),
        *_links_missing(findings, topology, closed),
        *_links_unknown(findings, topology),
        *_hosts_amiss(findings, topology),
    )


def _switches_amiss(findings: Findings, topology: Topology) -> Iterator[Difference]:
    for switch in findings.switches:
        if switch not in topology.switches:
            yield Difference(
                DifferenceKind.SWITCH_UNKNOWN,
                f"switch {switch} is connected, and the configuration has none of that name",
            )
    for switch in topology.switches:
        if switch not in findings.switches:
            yield Difference(DifferenceKind.SWITCH_MISSING, f"switch {switch} is not connected")


def _links_missing(findings: Findings, topology: Topology, closed: Collection[Edge]) -> Iterator[Difference]:
    there = set(findings.switches)
    far = {near: far for link in findings.links for near, far in ((link.a, link.b), (link.b, link.a))}
    for link in topology.links:
        a = SwitchPort(link.a, topology.number(link.a, link.b))
        b = SwitchPort(link.b, topology.number(link.b, link.a))
        edge = frozenset((link.a, link.b))
        if far.get(a) == b or edge in closed or not edge <= there:
            continue
        name = FoundLink(a, b)
        found = [each for each in findings.links if each.edge == edge]
        heard = [(a, b) for a, b in findings.one_sided if edge == {a.switch, b.switch}]
        if found:
            shown = ", ".join(map(str, found))
            yield Difference(
                DifferenceKind.WRONG_PORT, f"the link {name} is plugged into other ports: {shown}"
            )
        elif heard:
            origin, receiver = heard[0]
            yield Difference(
                DifferenceKind.ONE_SIDED,
                f"the link {name} is heard in one direction only: from {origin} at {receiver}",
            )
        else:
            yield Difference(
                DifferenceKind.LINK_MISSING, f"the link {name} is missing: nothing comes over it"
            )


def _links_unknown(findings: Findings, topology: Topology) -> Iterator[Difference]:
    described = {frozenset((link.a, link.b)) for link in topology.links}
    for link in findings.links:
        if link.edge in described:
            if not _is_described(link, topology) and any(
                _is_described(o, topology) for o in _beside(findings, link)
            ):
                yield Difference(
                    DifferenceKind.LINK_UNKNOWN, f"the link {link} is a second one beside that described"
                )
            continue
        meant = [
            f"{end} should lead to {other}" for end in sorted(link.ends) if (other := _meant(end, topology))
        ]
        why = f" ({'; '.join(meant)})" if meant else ""
        yield Difference(DifferenceKind.LINK_UNKNOWN, f"the link {link} is not in the configuration{why}")
    for origin, receiver in findings.one_sided:
        if frozenset((origin.switch, receiver.switch)) not in described:
            yield Difference(
                DifferenceKind.ONE_SIDED,
                f"{receiver} hears {origin}, and not the other way round; no such link is configured",
            )


def _beside(findings: Findings, link: FoundLink) -> list[FoundLink]:
    return [each for each in findings.links if each.edge == link.edge and each != link]


def _hosts_amiss(findings: Findings, topology: Topology) -> Iterator[Difference]:
    for host in findings.hosts:
        if host.name in topology.hosts:
            endpoint = topology.endpoint(host.name)
            right = SwitchPort(endpoint.switch, topology.number(endpoint.switch, host.name))
            if host.place != right:
                yield Difference(
                    DifferenceKind.HOST_ELSEWHERE,
                    f"host {host.name} is at {host.place}; it should be at {right}",
                )
        elif _meant(host.place, topology) not in topology.hosts:
            meant = _meant(host.place, topology)
            why = f", where {meant} should be" if meant else ""
            yield Difference(
                DifferenceKind.HOST_UNKNOWN,
                f"a host that nobody named, {host.mac}, sends from {host.place}{why}",
            )


def _is_described(link: FoundLink, topology: Topology) -> bool:
    """Whether a link joins the very ports that the topology says."""
    (a, b), ports = sorted(link.edge), {end.switch: end.port for end in link.ends}
    return ports == {a: topology.number(a, b), b: topology.number(b, a)}


def _meant(place: SwitchPort, topology: Topology) -> str | None:
    """The neighbour that a port should have, if it should have one."""
    return topology.behind(place.switch, place.port) if place.switch in topology.switches else None
