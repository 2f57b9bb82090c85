"""What one switch does to all labels that are Bloom filters.

Entries ask for bits that are set, never for one that is not: a packet with more bits meets no fewer entries. So what
holds of a packet that has the bits of a filter and no others can be told of all packets that are for this filter, once
it is known which entries could get between.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from flowsieve.errors import BadInput
from flowsieve.flow.entry import CONTENT_TABLE, Flow
from flowsieve.header.bloom import BloomLabels

MOST_TRIED = 100_000  # packets, to find one that is not sent


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

    def first_senders(self, port: int) -> frozenset[int]:
        """What those entries ask for that send out of a port, and over which none wins that does not: all packets with
        the bits of one are sent."""
        found: set[int] = set()
        for each in self.entries:
            if port not in each.flow.ports:
                break
            found.add(each.bits)
        return frozenset(found)


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


def unsent(chain: Sequence[BloomTable], port: int, bits: int) -> int | None:
    """The bits of a packet that has at least these and that no table sends out of a port; None if there is none.

    If an entry that does not send gets any such packet, it gets the one with these bits and its own alone: what wins
    over it there wins over it for packets with more bits as well. So it is with one entry of each table that sends.
    Raises BadInput where these are too many.
    """
    tried = {bits}
    for table in chain:
        if table.sends(port):
            others = {each.bits for each in table.entries if port not in each.flow.ports}
            if len(tried) * len(others) > MOST_TRIED:
                raise BadInput(f"entries of several tables send out of port {port}, and too many do not")
            tried |= {each | asked for each in tried for asked in others}
    return next((each for each in sorted(tried) if not _leaves(chain, port, each)), None)


def _leaves(chain: Sequence[BloomTable], port: int, bits: int) -> bool:
    """Whether a packet with these bits is sent out of a port."""
    for table in chain:
        flow = table.winner(bits)
        if flow is None:
            return False
        if port in flow.ports:
            return True
    return False


def _meets(flow: Flow, labels: BloomLabels) -> bool:
    """Whether some label may meet an entry, by its destination."""
    asked, group = flow.match.parts[1], labels.any.parts[1]
    return not (asked.value ^ group.value) & asked.mask & group.mask
