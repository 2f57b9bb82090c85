"""Filters by which events are packed, where labels are Bloom filters: packets have the bits of those that match."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from flowsieve.client.matcher_socket import LabelMatch, LabelPacket
from flowsieve.content.canonical import canonical
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.flow.asked_filters import AskedFilters
from flowsieve.flow.held_filters import HeldFilters
from flowsieve.flow.shares import Shares
from flowsieve.header.bloom import BloomLabels
from flowsieve.matcher.filter_index import MOST_RECEIVERS, FilterIndex
from flowsieve.protocol.filter_page import FilterPacking, Row

MOST_PACKETS = 1000  # of an event


class PackedFilters:
    """The filters of others that a host holds, and in which packets its events are sent to them."""

    def __init__(self, schema: Schema, packing: FilterPacking) -> None:
        self._schema = schema
        self._labels = BloomLabels(packing.bits)
        self._shares = Shares(packing.filters, packing.packets)
        self._asked = AskedFilters()
        self._matching = _Matching(schema)
        self._patterns: dict[str, int] = {}

    def __len__(self) -> int:
        """How many pairs of a filter and a receiver there are."""
        return sum(map(len, self._asked.hosts.values()))

    def change(self, row: Row, by: int) -> None:
        """Receivers have a filter once more, or once less; KeyError if one of them has none."""
        text, receivers = row
        filter = Filter.parse(text, self._schema)
        name = canonical(filter)
        for receiver in receivers:
            if by > 0:
                if name not in self._patterns:
                    self._patterns[name] = self._labels.pattern(name)
                    self._matching.add(name, filter)
                self._asked.ask(name, filter, str(receiver))
            else:
                self._asked.end(name, str(receiver))
        if name in self._patterns and not self._asked.hosts[name]:
            self._asked.forget(name)
            self._matching.remove(name, filter)
            del self._patterns[name]

    def match(self, values: Mapping[str, object]) -> LabelMatch:
        """In which packets an event is sent, and to whom.

        A filter comes with those that cover it, and a receiver that has one of these is not asked for another time.
        """
        held = self._asked.held()
        there = [text for text in self._matching.match(values) if text in held]
        there.sort(key=lambda text: (min(map(int, held[text].hosts)), text))
        whole, shares = HeldFilters(held, {}), self._shares
        packed = shares.shared_out(there, whole)
        if len(packed) > MOST_PACKETS:
            packed = replace(shares, number=MOST_PACKETS).shared_out(there, whole)
        packets = tuple(
            LabelPacket(
                self._labels.bits_of(self._patterns[text] for text in share),
                _mask(host for text in share for host in held[text].hosts),
            )
            for share in packed
        )
        return LabelMatch(_union(packet.receivers for packet in packets), packets)


class _Matching:
    """Which filters match an event: an index of their numbers, or several where there are many."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._indexes: list[FilterIndex] = []
        self._numbers: dict[str, int] = {}
        self._texts: list[str] = []
        self._free: list[int] = []

    def add(self, text: str, filter: Filter) -> None:
        if self._free:
            number = self._free.pop()
            self._texts[number] = text
        else:
            number = len(self._texts)
            self._texts.append(text)
        self._numbers[text] = number
        at, place = divmod(number, MOST_RECEIVERS)
        if at == len(self._indexes):
            self._indexes.append(FilterIndex(self._schema, MOST_RECEIVERS))
        self._indexes[at].add(filter, place)

    def remove(self, text: str, filter: Filter) -> None:
        number = self._numbers.pop(text)
        at, place = divmod(number, MOST_RECEIVERS)
        self._indexes[at].remove(filter, place)
        self._free.append(number)

    def match(self, values: Mapping[str, object]) -> Iterator[str]:
        for at, index in enumerate(self._indexes):
            found = index.match(values)
            while found:
                lowest = found & -found
                yield self._texts[at * MOST_RECEIVERS + lowest.bit_length() - 1]
                found ^= lowest


def _mask(receivers: Iterator[str]) -> int:
    return _union(1 << int(receiver) for receiver in receivers)


def _union(masks: Iterator[int]) -> int:
    found = 0
    for mask in masks:
        found |= mask
    return found
