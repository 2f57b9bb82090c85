"""The publisher's side where labels are Bloom filters: it matches events itself, and sends the bits of what matches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flowsieve.client.batch_packets import Packets
from flowsieve.content.event import EventBatch
from flowsieve.flow.held_filters import HeldFilters
from flowsieve.flow.shares import Shares
from flowsieve.header.bloom import BloomLabels

AT_ONCE = 8192  # events; what each of them matches is a bit for each filter
SURELY = (
    1 - 1e-12
)  # how likely the bits of a filter are found, at most, so that there is a logarithm of the rest
_LOW = (1 << 64) - 1


@dataclass(frozen=True, slots=True, eq=False)
class BloomPackets:
    """Packets of many events: the event's row, the bits set, and the filters it is for.

    `deceived` is how many hosts are expected to get each event, in whatever packet, though they do not want it.
    """

    labels: BloomLabels
    rows: NDArray[np.int64]
    bits: tuple[int, ...]
    filters: NDArray[np.int64]
    deceived: NDArray[np.float64]

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


def bloom_packets(events: EventBatch, held: HeldFilters, labels: BloomLabels, copies: Shares) -> BloomPackets:
    """What is sent for events that their publishers may send: as many packets each as `copies` says.

    A publisher holds the filters that overlap what it has advertised; what such an event matches is among them.
    """
    texts = list(held.filters)
    patterns = {text: labels.pattern(text) for text in texts}
    known: dict[bytes, list[tuple[int, int]]] = {}  # by what an event matches: bits, and for how many filters
    rows: list[int] = []
    sent: list[tuple[int, int]] = []
    deceived = np.zeros(len(events))
    for begin in range(0, len(events), AT_ONCE):
        some = events.take(np.arange(begin, min(begin + AT_ONCE, len(events))))
        matched = _matched(some, held)
        first = len(sent)
        for row, match in enumerate(np.packbits(matched, axis=1), begin):
            key = match.tobytes()
            if key not in known:
                shares = copies.shared_out([texts[at] for at in _places(match, len(texts))], held)
                known[key] = [
                    (labels.bits_of(patterns[text] for text in share), len(share)) for share in shares
                ]
            sent += known[key]
            rows += [row] * len(known[key])
        rates = np.array([labels.false_positive_rate(count) for _, count in sent[first:]])
        clear = np.zeros(
            len(some)
        )  # the logarithm of how likely no packet of an event has the bits of a filter
        np.add.at(clear, np.array(rows[first:], np.int64) - begin, np.log1p(-np.minimum(rates, SURELY)))
        deceived[begin : begin + len(some)] = _deceived(some, matched, clear, held)
    return BloomPackets(
        labels,
        np.array(rows, np.int64),
        tuple(bits for bits, _ in sent),
        np.array([count for _, count in sent], np.int64),
        deceived,
    )


def _places(match: NDArray[np.uint8], count: int) -> list[int]:
    found: list[int] = np.flatnonzero(np.unpackbits(match, count=count)).tolist()
    return found


def _matched(events: EventBatch, held: HeldFilters) -> NDArray[np.bool_]:
    """For each event, the filters of others that it matches."""
    own = {publisher: events.hosts == publisher for publisher in dict.fromkeys(events.hosts.tolist())}
    found = np.zeros((len(events), len(held.filters)), np.bool_)
    for at, (text, filter) in enumerate(held.filters.items()):
        found[:, at] = filter.matches_batch(events)
        if len(held.hosts[text]) == 1:
            (host,) = held.hosts[text]
            if host in own:
                found[own[host], at] = False
    return found


def _deceived(
    events: EventBatch, matched: NDArray[np.bool_], clear: NDArray[np.float64], held: HeldFilters
) -> NDArray[np.float64]:
    """How many hosts are expected to get each event for nothing: those for which a packet has the bits of a filter.

    A switch on the way may ask for a filter that covers that one instead, and so stop some of these.
    """
    place = {text: at for at, text in enumerate(held.filters)}
    found = np.zeros(len(events))
    for host, texts in held.wanted.items():
        away = ~matched[:, [place[text] for text in texts]].any(axis=1) & (events.hosts != host)
        found[away] -= np.expm1(len(texts) * clear[away])
    return found
