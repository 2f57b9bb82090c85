"""The addresses of hosts, among them the group that is each host's own: the last switch sends events there."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from flowsieve.header.address import Prefix
from flowsieve.network.topology import Topology

IPV4_NETWORK = ipaddress.IPv4Network("10.0.0.0/8")
EVENTS_IPV6 = ipaddress.IPv6Address("ff02::f10e:0:0")  # + a host's number; none of the groups that tags have
EVENTS_IPV4 = ipaddress.IPv4Address("224.128.0.0")


@dataclass(frozen=True, slots=True)
class HostAddresses:
    """What a host's interface answers to.

    A datagram to a host's own address reaches one of its applications, so events come to a group that is the
    host's alone and that all its applications can join: `events_ipv6` or `events_ipv4`.
    """

    ipv6: str
    ipv4: str
    mac: str
    events_ipv6: str
    events_ipv4: str

    def events(self, family: int) -> tuple[int, Prefix]:
        """Where events for this host are sent on the last hop: the MAC address and the address."""
        address = Prefix.parse(self.events_ipv6 if family == 6 else self.events_ipv4)
        if family == 6:
            return 0x3333 << 32 | address.first & 0xFFFFFFFF, address
        return 0x01005E << 24 | address.first & 0x7FFFFF, address


def host_addresses(topology: Topology) -> dict[str, HostAddresses]:
    """The addresses of all hosts of a network, by their numbers among the endpoints: a later one changes nobody's."""
    return {
        host: HostAddresses(
            ipv6=topology.endpoint(host).address,
            ipv4=str(IPV4_NETWORK[number]),
            mac=_mac(number),
            events_ipv6=str(EVENTS_IPV6 + number),
            events_ipv4=str(EVENTS_IPV4 + number),
        )
        for number, host in enumerate(topology.attached, 1)
        if host in topology.hosts
    }


def _mac(number: int) -> str:
    """A locally administered address."""
    return ":".join(f"{byte:02x}" for byte in (0x02, 0x00, *number.to_bytes(4, "big")))
