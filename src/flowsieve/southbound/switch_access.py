"""How the switches of a network are reached, and who they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from flowsieve.network.names import Names, SwitchId
from flowsieve.network.port_numbers import Numbers


@dataclass(frozen=True)
class SwitchAccess:
    """Switches that dial us at `listen`, or that are dialled at their addresses; their identities tell them apart.

    `numbers` are what they call their ports, where that was said, and `hosts` names for those that are found, by
    MAC address. `vswitchd` is the control socket of the Open vSwitch that all of them live in, if there is one;
    `interface` the one that events come and go by on hosts, None for the only one.
    """

    identities: Mapping[str, SwitchId]
    addresses: Mapping[str, str] = field(default_factory=dict)
    listen: str | None = None
    numbers: Numbers = field(default_factory=dict)
    hosts: Mapping[str, str] = field(default_factory=dict)
    vswitchd: str | None = None
    interface: str | None = None

    @property
    def names(self) -> Names:
        return Names({identity: switch for switch, identity in self.identities.items()}, self.hosts)
