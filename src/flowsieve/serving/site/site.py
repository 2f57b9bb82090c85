"""Where a controller's switches are: `Site` is all that it needs to know; `OwnSite` reads it from a configuration."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from flowsieve.control.discovery.differences import Difference
from flowsieve.control.discovery.growth import without
from flowsieve.errors import BadInput, BadTopology
from flowsieve.header.address import Prefix
from flowsieve.header.host_groups import host_addresses
from flowsieve.network.mend import edges_of
from flowsieve.network.names import Names, SwitchId
from flowsieve.network.topology import Topology
from flowsieve.serving.calls.tokens import Tokens
from flowsieve.serving.config import Config
from flowsieve.serving.site.unknown_switches import UnknownSwitches
from flowsieve.southbound.fabric import Claim, Fabric, Report
from flowsieve.southbound.kinds import fabric_of
from flowsieve.southbound.switch_access import SwitchAccess

CLAIM = "claim.json"


class Site(Protocol):
    """All that differs between a lab (`lab/lab_site.py`) and other networks."""

    @property
    def topology(self) -> Topology:
        """The network as it is brought up, or described."""
        ...

    @property
    def name(self) -> str: ...

    @property
    def folder(self) -> Path:
        """Where the controller keeps its journal and its secret."""
        ...

    @property
    def calls(self) -> list[str]:
        """Where it takes requests."""
        ...

    @property
    def interface(self) -> str | None:
        """The interface by which hosts send and receive events; None if they have only one."""
        ...

    @property
    def names(self) -> Names: ...

    @property
    def differences(self) -> Collection[Difference]:
        """Differences from the configuration that discovery does not see."""
        ...

    @property
    def claim_file(self) -> Path:
        """Where it is kept which controller the switches belong to."""
        ...

    def fabric(self, report: Report, claim: Claim | None = None) -> Fabric:
        """The switches, not connected yet; ports have the switches' own numbers. Who has no claim only looks."""
        ...

    def sources(self, topology: Topology, family: int) -> Mapping[str, Prefix]:
        """The addresses that hosts of a network send from, as far as they are known."""
        ...

    def tell_tokens(self, tokens: Tokens) -> None: ...

    def announce(self) -> None:
        """Have those who look for the network's controller find this one."""
        ...

    def more(self, config: Config) -> tuple[str, ...]:
        """The switches that a configuration has in addition; raises where it is about another network."""
        ...

    def take(self, config: Config) -> None:
        """Go on with a configuration, once `more` was asked."""
        ...


class OwnSite:
    """Switches as a configuration names them, wherever they are."""

    def __init__(self, config: Config) -> None:
        assert config.access is not None and config.network is not None
        self._config = config
        self.access: SwitchAccess = config.access  # a switch may be added
        self.topology = config.network.topology
        self._unknown_switches = UnknownSwitches()

    @property
    def name(self) -> str:
        return str(self._config.path)

    @property
    def folder(self) -> Path:
        assert self._config.folder is not None
        return self._config.folder

    @property
    def calls(self) -> list[str]:
        return list(self._config.service.http)

    @property
    def interface(self) -> str | None:
        return self.access.interface

    @property
    def names(self) -> Names:
        return self.access.names

    @property
    def differences(self) -> Collection[Difference]:
        return self._unknown_switches.differences

    @property
    def claim_file(self) -> Path:
        return self.folder / CLAIM

    def sources(self, topology: Topology, family: int) -> Mapping[str, Prefix]:
        """A real host has the addresses that its operator gave it; nobody tells them here."""
        return {}

    def fabric(self, report: Report, claim: Claim | None = None) -> Fabric:
        return fabric_of(self.access, self._unknown, report, claim)

    def tell_tokens(self, tokens: Tokens) -> None:
        """A real host gets its token from its operator."""

    def announce(self) -> None:
        """Clients are told by their operator where controllers are."""

    def more(self, config: Config) -> tuple[str, ...]:
        """Where links are found, switches that will dial us may be added, and hosts may be given names."""
        old, new = self._config, config
        if new.access is None or old.network is None or new.network is None:
            raise BadInput(f"{config.path} has no [switches] any more; that takes a restart")
        named = new.access.identities
        added = tuple(switch for switch in named if switch not in self.access.identities)
        identities = {switch: identity for switch, identity in named.items() if switch not in added}
        kept = replace(new.access, identities=identities, hosts=self.access.hosts)
        grown = with_switches(old.network.topology, added)
        wanted = with_switches(new.network.topology, (), first=old.network.topology.switches)
        if kept != self.access or (added and not old.finds_links) or grown != wanted:
            raise BadInput(
                f"{config.path} now has other switches, addresses, ports, links or hosts; that takes a restart"
            )
        return added

    def take(self, config: Config) -> None:
        assert config.access is not None
        self.access, self._config = config.access, config

    def _unknown(self, identity: SwitchId) -> str | None:
        """The name of a switch that was added since; one that has none is noted."""
        name = self.names.switch(identity)
        if name is None:
            self._unknown_switches.met(identity)
        return name


def described(known: Topology, site: Topology) -> Topology:
    """What was found before, with what the configuration says now: other switches, perhaps, and port numbers.

    A switch that is not configured any more is forgotten with its links, unless there are hosts at it.
    """
    gone = [each for each in known.switches if each not in site.switches and not known.attached_at(each)]
    known = without(known, [edge for edge in edges_of(known) if not edge.isdisjoint(gone)])
    numbers: dict[str, dict[str, int]] = {}
    for network in (known, site):
        for switch in network.switches:
            for near in network.neighbours(switch):
                if known.attached.get(near, switch) == switch:  # else it has moved
                    numbers.setdefault(switch, {})[near] = network.number(switch, near)
    switches = tuple(each for each in dict.fromkeys((*known.switches, *site.switches)) if each not in gone)
    return Topology(switches, known.links, known.attached, numbers, known.kinds)


def with_switches(topology: Topology, switches: Iterable[str], first: Iterable[str] = ()) -> Topology:
    """A topology with more switches, not linked yet; those in `first` come first."""
    every = tuple(dict.fromkeys((*first, *topology.switches, *switches)))
    return Topology(every, topology.links, topology.attached, topology.numbers, topology.kinds)


def event_groups(topology: Topology, family: int) -> Mapping[str, str]:
    """The address at which each host gets its events."""
    return {
        host: each.events_ipv6 if family == 6 else each.events_ipv4
        for host, each in host_addresses(topology).items()
    }


def host_behind(topology: Topology, switch: str, number: int) -> str | None:
    """The host at a port of a switch, by the switch's own number, if there is one."""
    with suppress(BadTopology):
        near = topology.behind(switch, number)
        return near if near in topology.hosts else None
    return None
