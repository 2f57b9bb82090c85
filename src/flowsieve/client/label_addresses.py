"""The addresses of labelled packets: those of events, as a host's matcher says, and of digests about them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from flowsieve.client.matcher_socket import LabelMatch
from flowsieve.header.bloom import HEADER as BLOOM
from flowsieve.header.bloom import SOURCES
from flowsieve.header.tag import POOLS, Tag


class PacketAddress(NamedTuple):
    """Where a packet goes; and its source, where that says something."""

    destination: bytes
    source: bytes = b""


Addressed = tuple[PacketAddress, tuple[int, ...]]  # with what the datagram says besides
NOWHERE: Addressed = PacketAddress(b""), ()  # for other applications of this host alone


class LabelAddresser(Protocol):
    """What is remembered of events says how to get at their receivers later."""

    def of_event(self, matched: LabelMatch, set_bits: int) -> list[Addressed]:
        """The packets in which an event is sent; they are numbered where a host may get several of them."""
        ...

    def of_digest(self, receivers: int) -> Iterator[Addressed]:
        """The packets in which something is told to receivers, and whom it names where others may get it as well."""
        ...


def addresser_of(tag: Tag) -> LabelAddresser:
    """How packets under a tag are addressed."""
    return BloomAddresser(tag) if tag in POOLS[BLOOM] else ReceiverAddresser(tag)


class ReceiverAddresser:
    """Destinations have a bit for each receiver, behind the number of its set."""

    def __init__(self, tag: Tag) -> None:
        self._group = tag.group
        self._set_bits = 0

    def of_event(self, matched: LabelMatch, set_bits: int) -> list[Addressed]:
        self._set_bits = set_bits
        return list(self.of_digest(matched.receivers))

    def of_digest(self, receivers: int) -> Iterator[Addressed]:
        return ((address, ()) for address in self._addresses(receivers))

    def _addresses(self, receivers: int) -> Iterator[PacketAddress]:
        """An address for each set of hosts in which there are some."""
        group = self._group
        room = group.width - group.length - self._set_bits
        number = 0
        while receivers:
            if some := receivers & ((1 << room) - 1):
                yield PacketAddress((group.first | number << room | some).to_bytes(16))
            receivers >>= room
            number += 1


class BloomAddresser:
    """Sources and destinations have the bits of filters; a digest goes the way of the last event for its receiver.

    Others may get it too, so that it names whom it is for.
    """

    def __init__(self, tag: Tag) -> None:
        self._group = tag.group
        self._last: dict[int, PacketAddress] = {}  # by receiver

    def of_event(self, matched: LabelMatch, set_bits: int) -> list[Addressed]:
        found: list[Addressed] = []
        for packet in matched.packets or ():
            to = self._address(packet.bits)
            found.append((to, (len(found),)))
            for receiver in _numbers(packet.receivers):
                self._last[receiver] = to
        return found

    def of_digest(self, receivers: int) -> Iterator[Addressed]:
        for receiver in _numbers(receivers):
            if receiver in self._last:
                yield self._last[receiver], (receiver,)

    def _address(self, bits: int) -> PacketAddress:
        room = self._group.width - self._group.length
        destination = self._group.first | bits & (1 << room) - 1
        return PacketAddress(destination.to_bytes(16), (SOURCES.first | bits >> room).to_bytes(16))


def _numbers(mask: int) -> Iterator[int]:
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest
