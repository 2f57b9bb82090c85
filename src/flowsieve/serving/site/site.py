"""Where a controller's switches are: in a lab on this machine, or wherever its configuration says."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from flowsieve.control.discovery.findings import Difference
from flowsieve.control.discovery.growth import without
from flowsieve.errors import BadInput, BadTopology
from flowsieve.header.host_groups import host_addresses
from flowsieve.lab.blueprint import HOST_INTERFACE
from flowsieve.lab.lab import Lab
from flowsieve.network.mend import edges_of
from flowsieve.network.names import Names
from flowsieve.network.topology import Topology
from flowsieve.serving.calls.tokens import Tokens
from flowsieve.serving.config import Config
from flowsieve.serving.site.switch_access import SwitchAccess
from flowsieve.serving.site.unknown_switches import UnknownSwitches
from flowsieve.southbound.fabric import LiveSwitches, SwitchEvent
from flowsieve.southbound.numbered import NumberedSwitches
from flowsieve.southbound.openflow.fabric import OpenFlowFabric
from flowsieve.testing.lab_control import switch_addresses

Report = Callable[[SwitchEvent], None]


class Site(Protocol):
    """All that differs between a lab and a network that is none."""

    @property
    def topology(self) -> Topology:
        """The network as it is brought up, or described."""
        ...

    @property
    def name(self) -> str: ...

    @property
    def folder(self) -> Path:
        """Where the controller remembers."""
        ...

    @property
    def calls(self) -> list[str]:
        """Where it takes requests."""
        ...

    @property
    def interface(self) -> str | None:
        """By which hosts send and receive events; None for the only one."""
        ...

    @property
    def names(self) -> Names: ...

    @property
    def differences(self) -> Collection[Difference]:
        """In what it differs from what was described, besides what discovery tells."""
        ...

    def fabric(self, report: Report) -> OpenFlowFabric: ...

    def counted(self, fabric: OpenFlowFabric, topology: Callable[[], Topology]) -> LiveSwitches:
        """The switches of a fabric by the topology's ports."""
        ...

    def tell_tokens(self, tokens: Tokens) -> None: ...

    def more(self, config: Config) -> tuple[str, ...]:
        """The switches that a configuration has in addition; raises where it is about another network."""
        ...

    def take(self, config: Config) -> None:
        """Go on with a configuration, once `more` was asked."""
        ...


class LabSite:
    """The switches of a lab, each dialled at its socket."""

    interface: str | None = HOST_INTERFACE
    differences: Collection[Difference] = ()

    def __init__(self, config: Config, lab: Lab) -> None:
        self._config, self._lab = config, lab
        self.topology = lab.topology
        config.check_network(lab.topology)

    @property
    def name(self) -> str:
        return f"lab {self._lab.name}"

    @property
    def folder(self) -> Path:
        """As the configuration says, or with the lab, as long as that is up."""
        return self._config.service.state or self._lab.directory / "controller"

    @property
    def calls(self) -> list[str]:
        return [f"unix:{self._lab.requests}", *self._config.service.http]

    @property
    def names(self) -> Names:
        lab = self._lab
        hosts = {lab.addresses(host).mac: host for host in lab.topology.hosts}
        return Names({lab.datapath_id(switch): switch for switch in lab.topology.switches}, hosts)

    def fabric(self, report: Report) -> OpenFlowFabric:
        return OpenFlowFabric(switch_addresses(self._lab), control=f"unix:{self._lab.control}", report=report)

    def counted(self, fabric: OpenFlowFabric, topology: Callable[[], Topology]) -> LiveSwitches:
        return fabric

    def tell_tokens(self, tokens: Tokens) -> None:
        """Leave each host's token where `flowsieve lab exec` finds it."""
        folder = self._lab.directory / "tokens"
        folder.mkdir(mode=0o700, exist_ok=True)
        for host in self.topology.hosts:
            with os.fdopen(os.open(folder / host, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
                file.write(tokens.of(host))

    def more(self, config: Config) -> tuple[str, ...]:
        config.check_network(self.topology)
        if config.reach is not None:
            raise BadInput(f"{config.path} now has [switches]; that takes a restart")
        return ()

    def take(self, config: Config) -> None:
        self._config = config


class OwnSite:
    """Switches that are told apart by their datapath ids, wherever they are."""

    def __init__(self, config: Config) -> None:
        assert config.reach is not None and config.network is not None
        self._config = config
        self.reach: SwitchAccess = config.reach  # a switch may be added
        self.topology = config.network.topology
        self._unknown_switches = UnknownSwitches()

    @property
    def name(self) -> str:
        return str(self._config.path)

    @property
    def folder(self) -> Path:
        return self._config.service.state or self._config.path.with_suffix(".state")

    @property
    def calls(self) -> list[str]:
        return list(self._config.service.http)

    @property
    def interface(self) -> str | None:
        return self.reach.interface

    @property
    def names(self) -> Names:
        return self.reach.names

    @property
    def differences(self) -> Collection[Difference]:
        return self._unknown_switches.differences

    def fabric(self, report: Report) -> OpenFlowFabric:
        reach = self.reach
        return OpenFlowFabric(
            reach.addresses,
            listen=reach.listen,
            datapaths=reach.datapaths,
            unknown=self._unknown,
            control=reach.vswitchd,
            report=report,
        )

    def counted(self, fabric: OpenFlowFabric, topology: Callable[[], Topology]) -> LiveSwitches:
        return NumberedSwitches(fabric, topology)

    def tell_tokens(self, tokens: Tokens) -> None:
        """A real host gets its token from its operator."""

    def more(self, config: Config) -> tuple[str, ...]:
        """Where links are found, switches that will dial us may be added, and hosts may be given names."""
        old, new = self._config, config
        if new.reach is None or old.network is None or new.network is None:
            raise BadInput(f"{config.path} has no [switches] any more; that takes a restart")
        added = tuple(switch for switch in new.reach.datapaths if switch not in self.reach.datapaths)
        kept = replace(
            new.reach,
            datapaths={
                switch: new.reach.datapaths[switch] for switch in new.reach.datapaths if switch not in added
            },
            hosts=self.reach.hosts,
        )
        if (
            kept != self.reach
            or (added and not old.finds_links)
            or with_switches(old.network.topology, added)
            != with_switches(new.network.topology, (), first=old.network.topology.switches)
        ):
            raise BadInput(
                f"{config.path} now has other switches, addresses, ports, links or hosts; that takes a restart"
            )
        return added

    def take(self, config: Config) -> None:
        assert config.reach is not None
        self.reach, self._config = config.reach, config

    def _unknown(self, datapath: int) -> str | None:
        for name, number in self.reach.datapaths.items():
            if number == datapath:
                return name
        self._unknown_switches.met(datapath)
        return None


def site_of(config: Config, lab: Lab | None) -> Site:
    """Where the switches of a configuration are."""
    if config.reach is not None:
        return OwnSite(config)
    if lab is None:
        raise BadInput(
            f"{config.path} has no [switches], and there is no lab; bring one up, or name the switches"
        )
    return LabSite(config, lab)


def described(known: Topology, site: Topology) -> Topology:
    """What was found before, with what the configuration says now: other switches, perhaps, and port numbers.

    A switch that is not configured any more is forgotten with its links, unless there are hosts at it.
    """
    gone = [
        switch for switch in known.switches if switch not in site.switches and not known.attached_at(switch)
    ]
    known = without(known, [edge for edge in edges_of(known) if not edge.isdisjoint(gone)])
    numbers = {
        switch: {near: known.number(switch, near) for near in known.neighbours(switch)}
        for switch in known.switches
    }
    for switch in site.switches:
        row = {near: site.number(switch, near) for near in site.neighbours(switch)}
        numbers[switch] = {**numbers.get(switch, {}), **row}
    switches = tuple(each for each in dict.fromkeys((*known.switches, *site.switches)) if each not in gone)
    return Topology(
        switches,
        known.links,
        known.attached,
        {each: row for each, row in numbers.items() if row},
        known.kinds,
    )


def with_switches(topology: Topology, switches: Iterable[str], first: Iterable[str] = ()) -> Topology:
    """A topology with more switches, which nothing leads to yet; where it is said which come first, these do."""
    every = tuple(dict.fromkeys((*first, *topology.switches, *switches)))
    return Topology(every, topology.links, topology.attached, topology.numbers, topology.kinds)


def event_groups(topology: Topology, family: int) -> Mapping[str, str]:
    """Where events for each host come in."""
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
