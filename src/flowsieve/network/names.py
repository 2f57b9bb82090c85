"""Who the switches and hosts are that connect or are found, and what they are called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NewType

from flowsieve.errors import BadTopology

# Who a switch says it is. Only its southbound knows how it is made: everyone else compares it and shows it.
SwitchId = NewType("SwitchId", str)


@dataclass(frozen=True, slots=True)
class Names:
    """Switches by their identities, and hosts by MAC address: as configured, or else made from that address.

    >>> names = Names(switches={SwitchId("00a1"): "berlin"}, hosts={"02:00:00:00:00:01": "ann"})
    >>> names.switch(SwitchId("00a1")), names.identity("berlin")
    ('berlin', '00a1')
    >>> names.host("02:00:00:00:00:01"), names.host("02:00:00:00:00:ff")
    ('ann', 'h0200000000ff')
    """

    switches: Mapping[SwitchId, str] = field(default_factory=dict)
    hosts: Mapping[str, str] = field(default_factory=dict)
    _identities: Mapping[str, SwitchId] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        identities: dict[str, SwitchId] = {}
        for identity, name in self.switches.items():
            if name in identities:
                raise BadTopology(f"{name!r} is the name of the switches {identities[name]} and {identity}")
            identities[name] = identity
        hosts = {mac.lower(): name for mac, name in self.hosts.items()}
        object.__setattr__(self, "switches", MappingProxyType(dict(self.switches)))
        object.__setattr__(self, "hosts", MappingProxyType(hosts))
        object.__setattr__(self, "_identities", identities)

    def switch(self, identity: SwitchId) -> str | None:
        """What a switch is called; None if nobody has named it."""
        return self.switches.get(identity)

    def identity(self, switch: str) -> SwitchId:
        """Who the switch of that name is."""
        if switch not in self._identities:
            raise BadTopology(f"nobody said which identity switch {switch!r} has")
        return self._identities[switch]

    def host(self, mac: str) -> str:
        """What a host is called."""
        return self.hosts.get(mac) or f"h{mac.replace(':', '')}"
