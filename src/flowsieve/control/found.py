"""A topology made of what discovery has found, or the reason why none can be.

In a topology the order of links and hosts decides the ports (see `network.topology`). What was found has ports
already, so an order is looked for that gives every switch the ports that it has.
"""

from __future__ import annotations

import heapq
import ipaddress
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeVar

from flowsieve.control.findings import Findings, FoundHost, FoundLink
from flowsieve.errors import BadTopology
from flowsieve.network.topology import Link, Topology

Item = TypeVar("Item", bound=Hashable)
Row = Mapping[int, FoundLink | FoundHost]


def topology_found(findings: Findings) -> Topology:
    """The network as it was found; the same findings always make the same topology.

    Raises BadTopology where something is heard in one direction only, and where no topology has these ports.
    """
    _check(findings)
    number = {switch: n for n, switch in enumerate(findings.switches)}
    rows = {switch: _row(switch, findings) for switch in findings.switches}
    for switch, row in rows.items():
        _check_row(switch, row)
    links = _merged(
        [[each for each in row.values() if isinstance(each, FoundLink)] for row in rows.values()],
        lambda link: sorted(number[end.switch] for end in link.ends),
    )
    if links is None:
        raise BadTopology(
            "the ports of the links follow no common order: a topology lists the links one after the other and "
            "numbers each switch's ports in that order; plug the links that close a ring in last"
        )
    hosts = _merged(
        [[each for each in row.values() if isinstance(each, FoundHost)] for row in rows.values()], _rank
    )
    assert hosts is not None  # a host is at one switch only
    made = Topology(
        findings.switches,
        tuple(_link(each, number) for each in links),
        {host.name: host.place.switch for host in hosts},
    )
    assert not findings.differences(made), findings.differences(made)
    return made


def _check(findings: Findings) -> None:
    if not findings.switches:
        raise BadTopology("no switch is connected, so there is no network to describe")
    for origin, receiver in findings.one_sided:
        raise BadTopology(
            f"{receiver} hears {origin}, and not the other way round; wait until both do, or mend the cable"
        )
    pairs = Counter(link.edge for link in findings.links)
    for link in findings.links:
        if len(link.edge) == 1:
            raise BadTopology(f"switch {link.a.switch} is linked with itself: {link}")
        if pairs[link.edge] > 1:
            raise BadTopology(
                f"there are {pairs[link.edge]} links such as {link}; a topology has room for one"
            )
    names = Counter([host.name for host in findings.hosts] + list(findings.switches))
    for name, times in names.items():
        if times > 1:
            raise BadTopology(f"{name!r} is the name of {times} hosts or switches; one of them needs another")


def _row(switch: str, findings: Findings) -> Row:
    """What is at each port of a switch, in the order of the ports."""
    row: dict[int, FoundLink | FoundHost] = {}
    for link in findings.links:
        row |= {end.port: link for end in link.ends if end.switch == switch}
    for host in findings.hosts:
        if host.place.switch == switch:
            other = row.setdefault(host.place.port, host)
            if isinstance(other, FoundHost) and other is not host:
                raise BadTopology(f"the hosts {other.name} and {host.name} are both at {host.place}")
    return dict(sorted(row.items()))


def _check_row(switch: str, row: Row) -> None:
    """A topology has a switch's links first and its hosts after them, and leaves no port out."""
    last_link = max((port for port, each in row.items() if isinstance(each, FoundLink)), default=0)
    for right, (port, each) in enumerate(row.items(), 1):
        if port != right:
            raise BadTopology(
                f"nothing was heard at port {right} of switch {switch}, but at port {port}; a topology leaves no "
                "port out: plug in there, or wait until what is there has sent something"
            )
        if isinstance(each, FoundHost) and port < last_link:
            raise BadTopology(
                f"host {each.name} is at {each.place}, before a link at port {last_link}; in a topology "
                "the links have the first ports"
            )


def _link(found: FoundLink, number: Mapping[str, int]) -> Link:
    a, b = sorted(found.edge, key=number.__getitem__)
    return Link(a, b)


def _rank(host: FoundHost) -> tuple[int, int, str]:
    """Hosts come in the order of their addresses, as those who number them mean it; without one they come last."""
    numbers = [ipaddress.ip_address(address) for address in host.addresses]
    first = min(((each.version, int(each)) for each in numbers), default=(7, 0))
    return (*first, host.name)


def _merged(chains: Sequence[Sequence[Item]], key: Callable[[Item], Any]) -> list[Item] | None:
    """All items in an order that keeps each chain's, the lowest key first; none if there is no such order.

    No two items have the same key.
    """
    before: Counter[Item] = Counter()
    after: dict[Item, list[Item]] = {item: [] for chain in chains for item in chain}
    for chain in chains:
        for item, following in pairwise(chain):
            after[item].append(following)
            before[following] += 1
    ready = [(key(item), item) for item in after if not before[item]]
    heapq.heapify(ready)
    merged: list[Item] = []
    while ready:
        _, item = heapq.heappop(ready)
        merged.append(item)
        for following in after[item]:
            before[following] -= 1
            if not before[following]:
                heapq.heappush(ready, (key(following), following))
    return merged if len(merged) == len(after) else None
