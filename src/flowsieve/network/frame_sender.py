"""Who sent a packet, as far as its headers tell: a host is known by what it sends."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from flowsieve.errors import BadMessage

_HEADER = 14  # bytes of Ethernet
_ARP, _IPV4, _IPV6 = 0x0806, 0x0800, 0x86DD
# Where the sender's address stands, after the Ethernet header, and how long all of its header is at least.
_SOURCES = {_ARP: (14, 18, 28), _IPV4: (12, 16, 20), _IPV6: (8, 24, 40)}


@dataclass(frozen=True, slots=True)
class FrameSender:
    """The source of a packet: a MAC address as people write it, and an IP address if the packet has one."""

    mac: str
    address: str | None


def sender(data: bytes) -> FrameSender:
    """The source that an Ethernet frame names.

    >>> sender(bytes.fromhex("333300000001" "020000000001" "88b5"))
    FrameSender(mac='02:00:00:00:00:01', address=None)
    """
    if len(data) < _HEADER:
        raise BadMessage(f"a packet of {len(data)} bytes; an Ethernet header alone has {_HEADER}")
    source = data[6:12]
    if source[0] & 1 or not any(source):
        raise BadMessage(f"{mac_text(source)} is the source of a packet; a host has an address of its own")
    return FrameSender(mac_text(source), _address(int.from_bytes(data[12:14], "big"), data[_HEADER:]))


def mac_text(mac: bytes) -> str:
    return mac.hex(":")


def _address(ethertype: int, rest: bytes) -> str | None:
    """The sender's IP address, where there is one that can be a host's."""
    if ethertype not in _SOURCES:
        return None
    start, end, least = _SOURCES[ethertype]
    if len(rest) < least or (ethertype != _ARP and rest[0] >> 4 != (4 if ethertype == _IPV4 else 6)):
        return None
    address = ipaddress.ip_address(rest[start:end])
    usable = not (address.is_multicast or address.is_unspecified or address.is_loopback)
    return str(address) if usable else None
