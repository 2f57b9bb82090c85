"""A flow table laid out flat: where along the line of addresses the winning entry changes.

An address is a *key* of 128 bits in two words (hi, lo); an IPv4 address fills the first 32 of them. The
families are kept apart: a flat table is of one of them.

Which entry wins: the one of highest priority, not the longest prefix; between equal priorities the one that asks
for more bits (OpenFlow leaves that open), then the one of higher masks; between equal matches the later one, since
it has replaced the first. Only tables of prefixes can be laid out flat.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flowsieve.errors import BadInput
from flowsieve.flow import flat_kernel
from flowsieve.flow.entry import CONTENT_TABLE, Flow
from flowsieve.flow.wiring import Wiring
from flowsieve.header.address import WIDTH
from flowsieve.header.match import PrefixMatch

Words = NDArray[np.uint64]


def look_up(flows: Iterable[Flow], family: int, destination: int, source: int = 0) -> Flow | None:
    """The entry that a packet between these addresses meets, or none: what a table means."""
    best = None
    for flow in flows:
        if flow.match.family != family or not flow.match.holds(source, destination):
            continue
        if best is None or (flow.priority, flow.match.rank) >= (best.priority, best.match.rank):
            best = flow
    return best


@dataclass(frozen=True, slots=True, eq=False)
class FlowColumns:
    """A switch's entries as columns, a row each.

    `ports` holds the ports of a row as bits, port 1 the lowest of the first word. `astray` are the rows that
    name a port that the switch does not have, or one twice: the bits cannot say that.
    """

    family: NDArray[np.int8]
    hi: Words
    lo: Words
    length: NDArray[np.uint8]
    priority: NDArray[np.int64]
    ports: Words
    astray: NDArray[np.int64]

    @classmethod
    def of(cls, flows: Sequence[Flow], ports: int) -> FlowColumns:
        """The columns of a table at a switch with so many ports; BadInput if an entry matches more than a prefix."""
        prefixes = [match.destination for flow in flows if isinstance(match := flow.match, PrefixMatch)]
        if len(prefixes) < len(flows):
            other = next(flow for flow in flows if not isinstance(flow.match, PrefixMatch))
            raise BadInput(
                f"the entry for {other.match} at priority {other.priority} matches more than a destination prefix, "
                "and only tables of prefixes can be followed over all addresses at once"
            )
        for flow in flows:
            if flow.table != CONTENT_TABLE or flow.onward is not None:
                raise BadInput(
                    f"the entry of table {flow.table} for {flow.match} is one of several tables, and only the "
                    "content's own can be followed over all addresses at once"
                )
        length = np.array([prefix.length for prefix in prefixes], dtype=np.uint8)
        high = [each.bits if each.length <= 64 else each.bits >> (each.length - 64) for each in prefixes]
        hi = _left_aligned(high, np.minimum(length, 64))
        lo = np.zeros_like(hi)
        long = np.flatnonzero(length > 64)
        low = [each.bits & ((1 << (each.length - 64)) - 1) for each in (prefixes[i] for i in long)]
        lo[long] = _left_aligned(low, length[long] - 64)
        words, astray = _port_words(flows, ports)
        return cls(
            family=np.array([prefix.family for prefix in prefixes], dtype=np.int8),
            hi=hi,
            lo=lo,
            length=length,
            priority=np.array([flow.priority for flow in flows], dtype=np.int64),
            ports=words,
            astray=astray,
        )


def columns_of(wiring: Wiring, tables: Mapping[str, Sequence[Flow]]) -> list[FlowColumns]:
    """The columns of all switches; those that are not named have no entries."""
    found = []
    for number, switch in enumerate(wiring.switches):
        try:
            found.append(FlowColumns.of(tables.get(switch, ()), wiring.ports(number)))
        except BadInput as error:
            raise error.at(f"switch {switch}") from None
    return found


@dataclass(frozen=True, slots=True, eq=False)
class FlatTable:
    """Interval i reaches from key (hi, lo)[i] to the next one's; the first starts at 0.

    `entry` is the row of the winning entry, -1 where none matches; `ports` are its port bits, none then.
    """

    hi: Words
    lo: Words
    entry: NDArray[np.int32]
    ports: Words

    def __len__(self) -> int:
        return len(self.entry)

    def at(self, hi: Words, lo: Words) -> NDArray[np.int64]:
        """The intervals that keys lie in."""
        intervals: NDArray[np.int64] = flat_kernel.intervals_of(self.hi, self.lo, hi, lo)
        return intervals


def flatten(columns: FlowColumns, family: int) -> FlatTable:
    """Lay the entries of one family out flat."""
    rows = np.flatnonzero(columns.family == family)
    order = rows[np.lexsort((columns.length[rows], columns.lo[rows], columns.hi[rows]))]
    hi, lo, winner = flat_kernel.sweep(
        columns.hi[order], columns.lo[order], columns.length[order], columns.priority[order]
    )
    entry = np.append(order, -1).astype(np.int32)[winner]
    blank = np.zeros((1, columns.ports.shape[1]), np.uint64)
    return FlatTable(hi, lo, entry, np.concatenate([columns.ports, blank])[entry])


def key_of(family: int, address: int) -> tuple[int, int]:
    """An address as a key."""
    key = address << (128 - WIDTH[family])
    return key >> 64, key & (2**64 - 1)


def address_of(family: int, hi: int, lo: int) -> int:
    """The address that a key stands for: the inverse of `key_of`."""
    return (int(hi) << 64 | int(lo)) >> (128 - WIDTH[family])


def _left_aligned(bits: list[int], length: NDArray[np.uint8]) -> Words:
    """Numbers of so many bits each, moved to the top of their words."""
    return np.array(bits, dtype=np.uint64) << (64 - length).astype(np.uint64)


def _port_words(flows: Sequence[Flow], ports: int) -> tuple[Words, NDArray[np.int64]]:
    """The port sets as bits, and the rows that are no sets of the switch's ports."""
    count = np.array([len(flow.actions) for flow in flows], dtype=np.int64)
    port = np.array([action.port for flow in flows for action in flow.actions], dtype=np.int64)
    row = np.repeat(np.arange(len(flows)), count)
    good = (port >= 1) & (port <= ports)
    words = np.zeros((len(flows), max(1, -(-ports // 64))), np.uint64)
    flat_kernel.port_words(row[good], port[good], words)
    astray = np.flatnonzero(np.bitwise_count(words).sum(axis=1, dtype=np.int64) != count)
    return words, astray
