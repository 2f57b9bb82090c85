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
        return int.from_bytes(group_mac(address.first.to_bytes(address.width // 8))), address


def group_mac(address: bytes) -> bytes:
    """The MAC address that packets to a group have.

    >>> group_mac(bytes([225, 128, 0, 9])).hex(":")
    '01:00:5e:00:00:09'
    """
    if len(address) == 16:
        return b"\x33\x33" + address[-4:]
    return b"\x01\x00\x5e" + bytes([address[-3] & 0x7F]) + address[-2:]


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
