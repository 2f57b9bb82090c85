"""Service entries: which packets a switch hands to the controller, and how many of them.

Some are for the controller, and come from wherever they come. Those within a group are events that came too late: the
index that they were sent by is not in use any more. They are handed over at the ports of hosts and nowhere else, so
that the first switch alone decides what becomes of a packet.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from flowsieve.errors import BadInput
from flowsieve.header.address import Prefix
from flowsieve.header.frame import ETH_TYPES, UDP
from flowsieve.network.topology import Topology

SERVICE_PRIORITY = 2000  # above all content flows; one more for what comes in on a port that is named
ANY_PORT = 0
LLDP = 0x88CC
MAX_RATE = 1_000_000  # packets a second; what lies beyond is no limit
FRAMES_OF_A_PORT = 20  # a second of one type, such as LLDP, of which a link carries one


@dataclass(frozen=True, slots=True, order=True)
class Punt:
    """Packets that a switch hands over: those of a type, or those to a UDP port of one address or of a whole group.

    No more than `rate` of them in a second; those beyond are dropped by the switch, so that a flood reaches nobody.
    Those that come in on a `port` that an entry names have a limit of their own.

    >>> Punt.of_type(LLDP, rate=100).ethertype == LLDP
    True
    >>> str(Punt.to("ff02::f10e:c0:1", 7421, rate=1000))
    'UDP to ff02::f10e:c0:1/128 port 7421, at most 1000/s'
    >>> str(Punt.of_type(LLDP, rate=100).at(3))
    'packets of type 0x88cc from port 3, at most 100/s'
    >>> str(Punt.within(Prefix.parse("ff0e::/16"), 9559, rate=500).at(2))
    'UDP to ff0e::/16 port 9559 from port 2, at most 500/s'
    """

    ethertype: int
    destination: Prefix | None
    udp_port: int | None
    rate: int
    port: int = ANY_PORT

    def __post_init__(self) -> None:
        if not 0x600 <= self.ethertype <= 0xFFFF:
            raise BadInput(f"{self.ethertype:#x} is no type of Ethernet packets; right is 0x600 to 0xffff")
        if not 1 <= self.rate <= MAX_RATE:
            raise BadInput(f"{self.rate} packets a second are no limit; right is 1 to {MAX_RATE:,}")
        if self.port < 0:
            raise BadInput(
                f"no packet comes in on port {self.port}; right is 1 and up, or {ANY_PORT} for any"
            )
        where = self.destination
        if where is None:
            fits = self.udp_port is None
        else:
            fits = (
                self.ethertype == ETH_TYPES[where.family]
                and self.udp_port is not None
                and 1 <= self.udp_port <= 0xFFFF
            )
        if not fits:
            raise BadInput(
                f"packets of type {self.ethertype:#x} to {where} port {self.udp_port} cannot be told apart; "
                "right is an address with a UDP port, or a type alone"
            )

    @classmethod
    def to(cls, address: str | Prefix, udp_port: int, *, rate: int) -> Punt:
        """Datagrams to a port of an address."""
        whole = Prefix.parse(address) if isinstance(address, str) else address
        if whole.length < whole.width:
            raise BadInput(f"{whole} is many addresses; right is a whole address with a UDP port")
        return cls(ETH_TYPES[whole.family], whole, udp_port, rate)

    @classmethod
    def within(cls, group: Prefix, udp_port: int, *, rate: int) -> Punt:
        """Datagrams to a port of all addresses that begin alike."""
        return cls(ETH_TYPES[group.family], group, udp_port, rate)

    @classmethod
    def of_type(cls, ethertype: int, *, rate: int) -> Punt:
        """Packets of a type, whatever is in them."""
        return cls(ethertype, None, None, rate)

    def at(self, port: int) -> Punt:
        """The same packets, those alone that come in on a port."""
        return replace(self, port=port)

    @property
    def of_group(self) -> bool:
        """Whether it is about the addresses of a group, and not about one."""
        return self.destination is not None and self.destination.length < self.destination.width

    @property
    def key(self) -> tuple[int, Prefix | None, int | None, int]:
        """Which packets are meant; two entries of a switch cannot mean the same."""
        return self.ethertype, self.destination, self.udp_port, self.port

    @property
    def priority(self) -> int:
        """An entry that names a port is before the one for any port."""
        return SERVICE_PRIORITY + (self.port != ANY_PORT)

    def takes(self, packet: bytes, port: int) -> bool:
        """Whether a packet, from its Ethernet header on, is one of those; a switch looks at no checksum."""
        if self.port not in (ANY_PORT, port) or packet[12:14] != self.ethertype.to_bytes(2):
            return False
        if self.destination is None:
            return True
        ip = packet[14:]
        if self.destination.family == 6:
            proto, address, udp = ip[6:7], ip[24:40], ip[40:]
        else:
            whole = int.from_bytes(ip[6:8]) & 0x3FFF == 0  # a fragment has no ports to look at
            proto, address, udp = ip[9:10], ip[16:20], ip[4 * (ip[0] & 0xF) :] if ip and whole else b""
        behind = self.destination.width - self.destination.length
        meant = 8 * len(address) == self.destination.width and (
            int.from_bytes(address) >> behind == self.destination.bits
        )
        return proto == bytes([UDP]) and meant and udp[2:4] == (self.udp_port or 0).to_bytes(2)

    def __str__(self) -> str:
        where = f" from port {self.port}" if self.port != ANY_PORT else ""
        if self.destination is None:
            return f"packets of type {self.ethertype:#06x}{where}, at most {self.rate}/s"
        return f"UDP to {self.destination} port {self.udp_port}{where}, at most {self.rate}/s"


def host_ports(topology: Topology, switch: str) -> list[int]:
    """The ports of a switch at which there are hosts."""
    return [topology.port(switch, host) for host in topology.attached_at(switch)]


def link_ports(topology: Topology, switch: str) -> list[int]:
    """The ports of a switch that lead to others."""
    return [topology.port(switch, near) for near in topology.linked(switch)]


def with_ports(punts: Sequence[Punt], hosts: Iterable[int], links: Iterable[int] = ()) -> tuple[Punt, ...]:
    """Punts with a limit for each port of a host or a link beside the one for all others.

    So one host that floods is heard less, and its neighbours are not: neither their calls, nor what the links say.
    Hosts alone make calls to an address; frames of a type come from anywhere, few from each port. What is within
    a group is handed over at hosts' ports and nowhere else.
    """
    calls = [punt for punt in punts if punt.destination is not None]
    frames = [
        replace(punt, rate=min(punt.rate, FRAMES_OF_A_PORT)) for punt in punts if punt.destination is None
    ]
    return (
        *(punt for punt in punts if not punt.of_group),
        *(punt.at(port) for port in hosts for punt in (*calls, *frames)),
        *(punt.at(port) for port in links for punt in frames),
    )
