"""Many packets at once through tables of any matches: all that are at one switch meet each of its entries together.

The plain twin is `plain_walk.walk_plainly`, which takes over where packets multiply on a loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from flowsieve.flow.entry import CONTENT_TABLE, Flow
from flowsieve.flow.flat import Words, address_of, key_of
from flowsieve.flow.wiring import Wiring
from flowsieve.southbound.embedded.batch import Batch
from flowsieve.southbound.embedded.plain_walk import walk_plainly
from flowsieve.southbound.embedded.switch import Switch

AT_ONCE = 1 << 16  # packets
MOST_COPIES_AT_ONCE = 1 << 22  # of them all, under way; with more it is a loop, or nearly one
GONE = -1  # the table of a packet that goes no further at a switch
Half = tuple[np.uint64, np.uint64]  # a mask and the value under it
Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class MaskedPackets:
    """Packets of one family: the slot that each comes in on, and its addresses as keys."""

    start: NDArray[np.int32]
    hi: Words
    lo: Words
    sources: Sequence[int] | None
    family: int

    def __len__(self) -> int:
        return len(self.start)

    def part(self, begin: int, end: int) -> MaskedPackets:
        """Some of the packets."""
        sources = None if self.sources is None else self.sources[begin:end]
        return MaskedPackets(
            self.start[begin:end], self.hi[begin:end], self.lo[begin:end], sources, self.family
        )

    @property
    def words(self) -> tuple[Words, Words, Words, Words]:
        """The halves of the destinations and of the sources."""
        by = np.zeros((len(self), 2), np.uint64)
        if self.sources is not None:
            by[:] = [key_of(self.family, source) for source in self.sources]
        return self.hi, self.lo, by[:, 0], by[:, 1]

    def plain(self) -> Iterator[tuple[int, int, int]]:
        """Each packet as `walk_plainly` takes it."""
        to = [address_of(self.family, *key) for key in zip(self.hi.tolist(), self.lo.tolist(), strict=True)]
        return zip(self.start.tolist(), self.sources or [0] * len(to), to, strict=True)


class _Entry(NamedTuple):
    """An entry as what it asks of each half of the addresses, as far as it asks for something there."""

    flow: Flow
    asked: tuple[tuple[int, Half], ...]

    @classmethod
    def of(cls, flow: Flow) -> _Entry:
        source, destination = flow.match.parts
        halves: list[tuple[int, Half]] = []
        for first, part in ((0, destination), (2, source)):
            if part is not None:
                mask, value = (key_of(part.family, number) for number in (part.mask, part.value))
                halves += [
                    (first + i, (np.uint64(mask[i]), np.uint64(value[i]))) for i in range(2) if mask[i]
                ]
        return cls(flow, tuple(halves))


Tables = dict[int, list[_Entry]]  # the entries of each table, the best first


def walk_masked(
    wiring: Wiring,
    switches: Sequence[Switch],
    packets: MaskedPackets,
    hop_limit: int,
    slot_packets: NDArray[np.int64],
) -> Batch:
    """Send packets to their ends, all of them a hop at a time.

    The switches count what their entries match; what goes from switch to switch is added to `slot_packets`.
    """
    tables = [_tables(switch, packets.family) for switch in switches]
    batches = []
    for begin in range(0, len(packets), AT_ONCE):
        part = packets.part(begin, begin + AT_ONCE)
        walk = _Walk(wiring, tables, part, hop_limit)
        if walk.done():
            walk.settle(switches, slot_packets)
            batches.append(walk.batch())
        else:
            batches.append(walk_plainly(wiring, switches, part.family, part.plain(), hop_limit, slot_packets))
    rows = np.concatenate([np.zeros(1, np.int64), *(np.diff(batch.rows) for batch in batches)])
    hosts = np.concatenate([np.zeros(0, np.int32), *(batch.host for batch in batches)])
    return Batch(np.cumsum(rows), hosts, sum(batch.expired for batch in batches))


def _tables(switch: Switch, family: int) -> Tables:
    found: Tables = {}
    ours = (flow for flow in switch.flows if flow.match.family == family)
    for flow in sorted(ours, key=lambda flow: (flow.priority, flow.match.rank), reverse=True):
        found.setdefault(flow.table, []).append(_Entry.of(flow))
    return dict(sorted(found.items()))


class _Walk:
    """Some packets on their way; what they met and passed is counted, and settled only if all got to their ends."""

    def __init__(
        self, wiring: Wiring, tables: Sequence[Tables], packets: MaskedPackets, hop_limit: int
    ) -> None:
        self._wiring, self._tables = wiring, tables
        self._words = packets.words
        self._hops = hop_limit
        self._packet: Rows = np.arange(len(packets))  # of the copies under way …
        self._slot = packets.start.astype(np.int64)  # … and where each comes in
        self._packets = len(packets)
        self._met: list[tuple[int, Flow, int]] = []
        self._slots = np.zeros(wiring.slots, np.int64)
        self._got: list[tuple[Rows, int]] = []  # packets, and the host that they got to
        self.expired = 0

    def done(self) -> bool:
        """Go on to the end; False if too many copies are under way."""
        while len(self._packet):
            if len(self._packet) > MOST_COPIES_AT_ONCE:
                return False
            self._hop()
        return True

    def _hop(self) -> None:
        at = self._wiring.at[self._slot]
        onwards: list[tuple[Rows, int]] = []  # packets, and the slot that they come in on next
        for number in np.unique(at).tolist():
            here = np.flatnonzero(at == number)
            onwards += self._pass(number, self._packet[here], self._slot[here])
        self._packet = np.concatenate([np.zeros(0, np.int64), *(rows for rows, _ in onwards)])
        self._slot = np.repeat([slot for _, slot in onwards], [len(rows) for rows, _ in onwards])
        self._slot = self._slot.astype(np.int64)
        self._hops -= 1

    def _pass(self, number: int, packet: Rows, came: Rows) -> Iterator[tuple[Rows, int]]:
        """What copies do at a switch; those that go on to others, each with the slot that it comes in on there."""
        first, far = int(self._wiring.first[number]), self._wiring.far
        sent: list[tuple[Flow, Rows]] = []
        table = np.full(len(packet), CONTENT_TABLE)
        for each, entries in self._tables[number].items():
            left = np.flatnonzero(table == each)
            table[left] = GONE
            for entry in entries:
                if not len(left):
                    break
                holds = self._holds(entry, packet[left])
                hit, left = left[holds], left[~holds]
                if len(hit):
                    self._met.append((number, entry.flow, len(hit)))
                    table[hit] = GONE if entry.flow.onward is None else entry.flow.onward
                    if entry.flow.actions:
                        sent.append((entry.flow, hit))
        if self._hops <= 1:
            self.expired += len(np.unique(np.concatenate([np.zeros(0, np.int64), *(hit for _, hit in sent)])))
            return
        for flow, hit in sent:
            for port in flow.ports:
                slot = first + port - 1
                out = packet[hit[came[hit] != slot]]
                if far[slot] < 0:
                    self._got.append((out, -1 - int(far[slot])))
                else:
                    self._slots[slot] += len(out)
                    yield out, int(far[slot])

    def _holds(self, entry: _Entry, packet: Rows) -> NDArray[np.bool_]:
        holds = np.ones(len(packet), np.bool_)
        for half, (mask, value) in entry.asked:
            holds &= self._words[half][packet] & mask == value
        return holds

    def settle(self, switches: Sequence[Switch], slot_packets: NDArray[np.int64]) -> None:
        """Have the switches and links count what passed them."""
        for number, flow, packets in self._met:
            switches[number].count(flow, packets)
        slot_packets += self._slots

    def batch(self) -> Batch:
        """Who got what, in the order of the packets, then of the hosts."""
        packet = np.concatenate([np.zeros(0, np.int64), *(rows for rows, _ in self._got)])
        host = np.repeat([host for _, host in self._got], [len(rows) for rows, _ in self._got])
        order = np.lexsort((host, packet))
        rows = np.concatenate([[0], np.cumsum(np.bincount(packet, minlength=self._packets))])
        return Batch(rows.astype(np.int64), host[order].astype(np.int32), self.expired)
