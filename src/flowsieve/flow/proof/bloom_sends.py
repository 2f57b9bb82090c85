"""What one switch does to all labels that are Bloom filters.

Entries ask for bits that are set, never for one that is not: a packet with more bits meets no fewer entries. So what
holds of a packet that has the bits of a filter and no others can be told of all packets that are for this filter, once
it is known which entries could get between.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from flowsieve.errors import BadInput
from flowsieve.flow.entry import CONTENT_TABLE, Flow
from flowsieve.header.bloom import BloomLabels


class AskedBits(NamedTuple):
    """An entry, and the bits that it asks for."""

    bits: int
    flow: Flow


@dataclass(frozen=True, slots=True, eq=False)
class BloomTable:
    """The entries of a table, the best first; some packet `stops` there if it is not the last and has none for all."""

    entries: tuple[AskedBits, ...]
    stops: bool

    def sends(self, port: int) -> list[AskedBits]:
        """The entries that send out of a port."""
        return [each for each in self.entries if port in each.flow.ports]

    def winner(self, bits: int) -> Flow | None:
        """The entry that a packet with these bits meets."""
        return next((flow for asked, flow in self.entries if not asked & ~bits), None)

    def unsent(self, port: int, bits: int) -> int | None:
        """The bits of a packet that has at least these and is not sent out of a port; None if there is none.

        If an entry that does not send gets any such packet, it gets the one with these bits and its own alone: what
        wins over it there wins over it for packets with more bits as well.
        """
        others = (each.bits for each in self.entries if port not in each.flow.ports)
        for tried in (bits, *(bits | asked for asked in others)):
            flow = self.winner(tried)
            if flow is None or port not in flow.ports:
                return tried
        return None

    def surely_sends(self, port: int, patterns: Collection[int]) -> bool:
        """Whether an entry asks for one of these patterns alone, sends out of a port, and none that does not send wins
        over it: then all packets with its bits are sent."""
        for each in self.entries:
            if port not in each.flow.ports:
                return False
            if each.bits in patterns:
                return True
        return False


def chain_of(flows: Iterable[Flow], labels: BloomLabels) -> Iterator[BloomTable]:
    """The tables that packets come to at a switch, in their order.

    Raises BadInput where nobody can tell, since an entry asks for other than bits that are set, or since packets go on
    from one table to several.
    """
    tables: dict[int, list[AskedBits]] = {}
    for flow in flows:
        if (bits := labels.pattern_of(flow.match)) is None:
            if flow.match.family == labels.family and _meets(flow, labels):
                raise BadInput(f"the entry for {flow.match} asks for other than bits of labels")
            continue
        tables.setdefault(flow.table, []).append(AskedBits(bits, flow))
    number: int | None = CONTENT_TABLE
    while number is not None:
        entries = sorted(
            tables.get(number, ()), key=lambda each: (each.flow.priority, each.flow.match.rank), reverse=True
        )
        onwards = {each.flow.onward for each in entries}
        if len(onwards) > 1:
            raise BadInput(f"packets go on from table {number} in several ways")
        onward = next(iter(onwards), None)
        stops = onward is not None and all(each.bits for each in entries)
        yield BloomTable(tuple(entries), stops)
        number = onward


def _meets(flow: Flow, labels: BloomLabels) -> bool:
    """Whether some label may meet an entry, by its destination."""
    asked, group = flow.match.parts[1], labels.any.parts[1]
    return not (asked.value ^ group.value) & asked.mask & group.mask
