"""UDP datagrams as they are on the wire, from the Ethernet header on. Bytes in, values out.

Only what hosts send when they send one datagram is understood: no VLAN tag, no fragment, no option and no extension
header. All lengths must agree and all checksums hold; padding behind a short packet is ignored.

A host may leave the checksum to its network card. Linux then writes the sum over the addresses alone (the pseudo
header, not complemented), and a card that is none, such as a veth pair or a virtual one, passes it on as it is.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from flowsieve.errors import BadChecksum, BadMessage

UDP = 17
HOPS = 64
MAC_BYTES = 6
ETH_TYPES = {4: 0x0800, 6: 0x86DD}
FAMILIES = {number: family for family, number in ETH_TYPES.items()}

_ETHERNET = struct.Struct("!6s6sH")
_IPV4 = struct.Struct("!BBHHHBBH4s4s")
_IPV6 = struct.Struct("!IHBB16s16s")
_UDP = struct.Struct("!HHHH")
_DO_NOT_FRAGMENT = 0x4000


@dataclass(frozen=True, slots=True)
class UdpFrame:
    """One datagram; addresses are bytes, as they stand on the wire.

    One that is not `finished` has the checksum that a host leaves to its card: nobody can tell whether it is damaged.
    """

    source_mac: bytes
    destination_mac: bytes
    source: bytes
    destination: bytes
    source_port: int
    destination_port: int
    payload: bytes
    hops: int = HOPS
    finished: bool = True

    def __post_init__(self) -> None:
        if len(self.source) not in (4, 16) or len(self.source) != len(self.destination):
            raise BadMessage(
                f"addresses of {len(self.source)} and {len(self.destination)} bytes; right is 4 or 16 both"
            )
        if not len(self.source_mac) == len(self.destination_mac) == MAC_BYTES:
            raise BadMessage(f"a MAC address has {MAC_BYTES} bytes")
        ports = self.source_port, self.destination_port
        if not all(0 <= port <= 0xFFFF for port in ports) or not 0 <= self.hops <= 0xFF:
            raise BadMessage(f"ports {ports} and {self.hops} hops; right is 0 to 65535, and 0 to 255")
        most = 0xFFFF - _UDP.size - (_IPV4.size if self.family == 4 else 0)
        if len(self.payload) > most:
            raise BadMessage(f"a datagram of {len(self.payload):,} bytes; there is room for {most:,}")

    @property
    def family(self) -> int:
        return 4 if len(self.source) == 4 else 6


def build(frame: UdpFrame) -> bytes:
    """The bytes of a datagram, with the checksums that belong there."""
    length = _UDP.size + len(frame.payload)
    head = _UDP.pack(frame.source_port, frame.destination_port, length, 0)
    pseudo = _pseudo_header(frame.source, frame.destination, length)
    whole = _checksum(pseudo + head + frame.payload) or 0xFFFF  # zero would mean that there is no checksum
    check = whole if frame.finished else _unfinished(pseudo)
    udp = head[:6] + check.to_bytes(2) + frame.payload
    ethernet = _ETHERNET.pack(frame.destination_mac, frame.source_mac, ETH_TYPES[frame.family])
    if frame.family == 6:
        ip = _IPV6.pack(6 << 28, length, UDP, frame.hops, frame.source, frame.destination)
    else:
        fields = (0x45, 0, _IPV4.size + length, 0, _DO_NOT_FRAGMENT, frame.hops, UDP)
        total = _checksum(_IPV4.pack(*fields, 0, frame.source, frame.destination))
        ip = _IPV4.pack(*fields, total, frame.source, frame.destination)
    return ethernet + ip + udp


def parse(data: bytes) -> UdpFrame:
    """The datagram that some bytes are; BadMessage if they are none, whatever they are."""
    destination_mac, source_mac, kind = _unpack(_ETHERNET, data, "Ethernet")
    family = FAMILIES.get(kind)
    if family is None:
        raise BadMessage(f"a packet of type {kind:#06x}; right is {', '.join(map(hex, FAMILIES))}")
    source, destination, hops, udp = (_ipv4 if family == 4 else _ipv6)(data[_ETHERNET.size :])
    source_port, destination_port, length, check = _unpack(_UDP, udp, "UDP")
    if length != len(udp):
        raise BadMessage(f"the UDP header speaks of {length} bytes, and there are {len(udp)}")
    pseudo = _pseudo_header(source, destination, length)
    unsummed = family == 4 and not check  # allowed in IPv4
    finished = unsummed or (check != 0 and not _checksum(pseudo + udp))
    if not finished and check != _unfinished(pseudo):
        raise BadChecksum(f"the UDP checksum {check:#06x} does not hold")
    ports, payload = (source_port, destination_port), udp[_UDP.size :]
    return UdpFrame(source_mac, destination_mac, source, destination, *ports, payload, hops, finished)


Parts = tuple[bytes, bytes, int, bytes]  # source, destination, hops, what comes behind


def _unpack(header: struct.Struct, data: bytes, what: str) -> tuple[Any, ...]:
    """The fields of the header that some bytes begin with."""
    if len(data) < header.size:
        raise BadMessage(f"{len(data)} bytes hold no {what} header")
    return header.unpack_from(data)


def _ipv6(data: bytes) -> Parts:
    first, length, protocol, hops, source, destination = _unpack(_IPV6, data, "IPv6")
    if first >> 28 != 6:
        raise BadMessage(f"an IPv6 packet of version {first >> 28}")
    if protocol != UDP:
        raise BadMessage(f"what follows the IPv6 header is of kind {protocol}; right is UDP itself, {UDP}")
    if _IPV6.size + length > len(data):
        raise BadMessage(f"the IPv6 header speaks of {length} bytes, and there are {len(data) - _IPV6.size}")
    return source, destination, hops, data[_IPV6.size : _IPV6.size + length]


def _ipv4(data: bytes) -> Parts:
    first, _, length, _, fragment, hops, protocol, _, source, destination = _unpack(_IPV4, data, "IPv4")
    if first != 0x45:
        raise BadMessage(f"an IPv4 header that begins with {first:#04x}; right is 0x45, without options")
    if fragment & ~_DO_NOT_FRAGMENT:
        raise BadMessage("a fragment of an IPv4 packet; right is a whole one")
    if protocol != UDP:
        raise BadMessage(f"what follows the IPv4 header is of kind {protocol}; right is UDP, {UDP}")
    if not _IPV4.size <= length <= len(data):
        raise BadMessage(f"the IPv4 header speaks of {length} bytes, and there are {len(data)}")
    if _checksum(data[: _IPV4.size]):
        raise BadChecksum("the checksum of the IPv4 header does not hold")
    return source, destination, hops, data[_IPV4.size : length]


def _pseudo_header(source: bytes, destination: bytes, length: int) -> bytes:
    """What a UDP checksum covers besides the datagram itself."""
    if len(source) == 16:
        return source + destination + struct.pack("!IxxxB", length, UDP)
    return source + destination + struct.pack("!xBH", UDP, length)


def _unfinished(pseudo: bytes) -> int:
    """The checksum that a host leaves to its card: the sum so far, not complemented."""
    return _checksum(pseudo) ^ 0xFFFF


def _checksum(data: bytes) -> int:
    """The ones' complement of the sum of all 16-bit words; 0 where the checksum is among them and holds."""
    if len(data) % 2:
        data += b"\0"
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF
