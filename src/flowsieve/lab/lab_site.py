"""A lab as the place of a controller's switches."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path

from flowsieve.control.discovery.differences import Difference
from flowsieve.errors import BadInput
from flowsieve.flow.guard import known_sources
from flowsieve.header.address import Prefix
from flowsieve.lab.blueprint import HOST_INTERFACE
from flowsieve.lab.lab import OPERATOR, Lab
from flowsieve.network.names import Names
from flowsieve.network.topology import Topology
from flowsieve.serving.calls.tokens import Tokens
from flowsieve.serving.config import Config
from flowsieve.serving.site.site import CLAIM, OwnSite, Site
from flowsieve.southbound.fabric import Claim, Fabric, Report
from flowsieve.southbound.openflow.datapath_id import switch_id
from flowsieve.southbound.openflow.fabric import OpenFlowFabric


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
        return self._config.folder or self._lab.directory / "controller"

    @property
    def calls(self) -> list[str]:
        return [f"unix:{self._socket}", *self._config.service.http]

    @property
    def _socket(self) -> Path:
        """The lab's own; where controllers share a lab, each has one, and that of the lab leads to who leads."""
        own, control = self._lab.requests, self._config.control
        return own.with_name(f"{control.node}-{own.name}") if control.etcd else own

    @property
    def names(self) -> Names:
        lab = self._lab
        hosts = {lab.addresses(host).mac: host for host in lab.topology.hosts}
        return Names({switch_id(lab.datapath_id(switch)): switch for switch in lab.topology.switches}, hosts)

    @property
    def claim_file(self) -> Path:
        """With the lab, whatever the state: who listens at the lab's socket is its controller, and nobody else is."""
        return self._lab.directory / CLAIM

    def sources(self, topology: Topology, family: int) -> Mapping[str, Prefix]:
        return known_sources(topology, family)

    def fabric(self, report: Report, claim: Claim | None = None) -> Fabric:
        lab = self._lab
        return OpenFlowFabric(lab.switch_addresses, control=f"unix:{lab.control}", report=report, claim=claim)

    def tell_tokens(self, tokens: Tokens) -> None:
        """Leave each host's token where `flowsieve lab exec` finds it, and the operator's where commands do."""
        folder = self._lab.directory / "tokens"
        folder.mkdir(mode=0o700, exist_ok=True)
        for name, token in [
            (OPERATOR, tokens.operator),
            *((each, tokens.of(each)) for each in self.topology.hosts),
        ]:
            with os.fdopen(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
                file.write(token)

    def announce(self) -> None:
        """Have the lab's socket lead to ours, where it is another."""
        own, socket = self._lab.requests, self._socket
        if socket != own:
            new = socket.with_name(socket.name + "-link")
            new.unlink(missing_ok=True)
            new.symlink_to(socket.name)
            new.replace(own)

    def more(self, config: Config) -> tuple[str, ...]:
        config.check_network(self.topology)
        if config.access is not None:
            raise BadInput(f"{config.path} now has [switches]; that takes a restart")
        return ()

    def take(self, config: Config) -> None:
        self._config = config


def site_of(config: Config, lab: Lab | None = None) -> Site:
    """Where the switches of a configuration are: as it says, or else in a lab."""
    if config.access is not None:
        return OwnSite(config)
    if lab is None:
        raise BadInput(
            f"{config.path} has no [switches], and there is no lab; bring one up, or name the switches"
        )
    return LabSite(config, lab)
