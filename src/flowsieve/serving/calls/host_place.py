"""At which port a host is that asks for a token: where it is known to be, or where it is going to be found."""

from __future__ import annotations

import re

from flowsieve.errors import BadInput, nearest
from flowsieve.network.names import Names
from flowsieve.network.topology import Topology

_BY_MAC = re.compile(r"h[0-9a-f]{12}")  # what a host is called that nobody named; see `Names.host`

SwitchPort = tuple[str, int]  # a switch, and its own number for one of its ports


def host_place(host: str, at: str | None, topology: Topology, names: Names | None) -> SwitchPort:
    """The port of a host; `at` says it, as SWITCH:PORT, of one that is yet to be found by one of these `names`.

    Without `names` no host is going to be found, and all are known.

    >>> known = Topology.make([("s1", "s2")], {"ann": "s1"})
    >>> host_place("ann", None, known, None), host_place("bob", "s2:7", known, Names({}, {"02:00:00:00:00:01": "bob"}))
    (('s1', 2), ('s2', 7))
    """
    said = _place(at, topology) if at is not None else None
    if host in topology.hosts:
        switch = topology.endpoint(host).switch
        known = switch, topology.number(switch, host)
        if said is not None and said != known:
            raise BadInput(f"host {host!r} is at port {known[1]} of switch {switch}, not at {at}")
        return known
    if names is None:
        raise BadInput(f"there is no host {host!r}{nearest(host, topology.hosts)}")
    named = names.hosts.values()
    if host not in named and not _BY_MAC.fullmatch(host):
        hint = (
            nearest(host, [*topology.hosts, *named]) or "; right is a name in [names], or h and a MAC address"
        )
        raise BadInput(f"there is no host {host!r}, and none will be found by that name{hint}")
    if said is None:
        raise BadInput(
            f"host {host!r} is not found yet, and a token is bound to a port; say where it will be, as --at SWITCH:PORT"
        )
    if (near := topology.behind(*said)) is not None:
        raise BadInput(f"at port {said[1]} of switch {said[0]} is {near}, so {host!r} cannot be found there")
    return said


def _place(text: str, topology: Topology) -> SwitchPort:
    switch, _, number = text.rpartition(":")
    if switch not in topology.switches:
        raise BadInput(f"there is no switch {switch!r} in --at {text}{nearest(switch, topology.switches)}")
    if not (number.isascii() and number.isdigit() and int(number) > 0):
        raise BadInput(f"--at {text} has no port; right is SWITCH:PORT, such as {switch}:3")
    return switch, int(number)
