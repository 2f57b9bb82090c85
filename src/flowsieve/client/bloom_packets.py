"""The publisher's side where labels are Bloom filters: it matches events itself, and sends the bits of what matches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flowsieve.client.batch_packets import Packets
from flowsieve.content.event import EventBatch
from flowsieve.flow.deceived import SentPackets
from flowsieve.flow.held_filters import HeldFilters
from flowsieve.flow.shares import Shares
from flowsieve.header.bloom import BloomLabels

AT_ONCE = 8192  # events; what each of them matches is a bit for each filter
_LOW = (1 << 64) - 1


@dataclass(frozen=True, slots=True, eq=False)
class BloomPackets:
    """Packets of many events: the event's row, the bits set, and the filters it is for."""

    labels: BloomLabels
    rows: NDArray[np.int64]
    bits: tuple[int, ...]
    filters: tuple[frozenset[str], ...]

    def packets(self) -> Packets:
        """What stands in them."""
        both = [self.labels.addresses(bits) for bits in self.bits]
        return Packets(
            self.labels.family,
            self.rows,
            np.array([destination >> 64 for _, destination in both], np.uint64),
            np.array([destination & _LOW for _, destination in both], np.uint64),
            tuple(source for source, _ in both),
        )

    def sent(self, events: EventBatch) -> SentPackets:
        """The packets with those who send them, to be expected somewhere."""
        return SentPackets(events.hosts[self.rows], self.rows, self.filters, self.bits)


def bloom_packets(events: EventBatch, held: HeldFilters, labels: BloomLabels, copies: Shares) -> BloomPackets:
    """What is sent for events that their publishers may send: as many packets each as `copies` says.

    A publisher holds the filters that overlap what it has advertised; what such an event matches is among them.
    """
    texts = held.texts
    patterns = {text: labels.pattern(text) for text in texts}
    known: dict[bytes, list[tuple[int, frozenset[str]]]] = {}  # packets, by what an event matches
    rows: list[int] = []
    sent: list[tuple[int, frozenset[str]]] = []
    for begin in range(0, len(events), AT_ONCE):
        some = events.take(np.arange(begin, min(begin + AT_ONCE, len(events))))
        for row, match in enumerate(np.packbits(held.matched_batch(some), axis=1), begin):
            key = match.tobytes()
            if key not in known:
                shares = copies.shared_out([texts[at] for at in _places(match, len(texts))], held)
                known[key] = [(labels.bits_of(patterns[text] for text in share), share) for share in shares]
            sent += known[key]
            rows += [row] * len(known[key])
    bits, filters = (tuple(column) for column in zip(*sent, strict=True)) if sent else ((), ())
    return BloomPackets(labels, np.array(rows, np.int64), bits, filters)


def _places(match: NDArray[np.uint8], count: int) -> list[int]:
    found: list[int] = np.flatnonzero(np.unpackbits(match, count=count)).tolist()
    return found
