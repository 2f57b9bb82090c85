"""What discovery has found, as values: switches, links, hosts, and the places where they are."""

from __future__ import annotations

from dataclasses import dataclass

from flowsieve.network.mend import Edge


@dataclass(frozen=True, slots=True, order=True)
class SwitchPort:
    """A port of a switch."""

    switch: str
    port: int

    def __str__(self) -> str:
        return f"port {self.port} of switch {self.switch}"


@dataclass(frozen=True, slots=True)
class FoundLink:
    """A cable between two switches, heard of in both directions."""

    a: SwitchPort
    b: SwitchPort

    @property
    def edge(self) -> Edge:
        return frozenset((self.a.switch, self.b.switch))

    @property
    def ends(self) -> frozenset[SwitchPort]:
        return frozenset((self.a, self.b))

    def __str__(self) -> str:
        return f"{self.a.switch} (port {self.a.port}) - {self.b.switch} (port {self.b.port})"


@dataclass(frozen=True, slots=True)
class FoundHost:
    """A host, by what it sends: where, from which MAC address, and its IP addresses as far as they were seen."""

    name: str
    mac: str
    addresses: tuple[str, ...]
    place: SwitchPort


@dataclass(frozen=True)
class Findings:
    """The switches that are connected, the links and hosts found at them, and what was heard in one direction only.

    All of it is in a fixed order: switches by identity, links by their ends, hosts by their places.
    """

    switches: tuple[str, ...]
    links: tuple[FoundLink, ...] = ()
    one_sided: tuple[tuple[SwitchPort, SwitchPort], ...] = ()  # who was heard, and where
    hosts: tuple[FoundHost, ...] = ()
