"""How many hosts are to be expected to get events for nothing, where labels are Bloom filters.

The bits of filters are taken for random. A packet with B of m bits set then has all b bits that an entry asks for with
the likelihood C(B, b) / C(m, b), if it is not for a filter that the entry stands for; else it has them surely. To get
to a host it has to find such an entry at each port on its way. Which entries there are is known: many are in the tables
of several ports, so that what gets through one gets through the next, and where a table asks for a cover instead of
the filters that it covers, a packet that has the bits of one of these by chance may well be stopped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from flowsieve.flow.capacity.pattern_merging import words_of
from flowsieve.flow.held_filters import HeldFilters
from flowsieve.flow.tables.bloom_tables import BloomLabelling, Patterns

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
SURELY = 1 - 1e-12  # how likely something is at most, so that there is a logarithm of the rest


@dataclass(frozen=True, slots=True, eq=False)
class SentPackets:
    """Packets: the host that each is from, the event that it is a part of, the filters that it is for, its bits."""

    hosts: NDArray[np.object_]
    events: NDArray[np.int64]
    filters: Sequence[frozenset[str]]
    bits: Sequence[int]


def deceived(
    sent: SentPackets, events: int, labelling: BloomLabelling, held: HeldFilters, entries: Patterns
) -> Floats:
    """For each event, how many hosts are expected to get a packet of it though they do not want it."""
    found = np.zeros(events)
    if not sent.bits:
        return found
    expected = _Expected(labelling, entries)
    wanted, sure = _known(sent, labelling, held, entries)
    some = np.zeros((events, wanted.shape[1]), np.bool_)  # which hosts want an event, in whatever packet
    np.logical_or.at(some, sent.events, wanted)
    set_bits = np.array([bits.bit_count() for bits in sent.bits])
    new = _new_shares(sent, labelling.labels.k)
    for publisher in dict.fromkeys(sent.hosts.tolist()):
        own = np.flatnonzero(sent.hosts == publisher)
        for at, host in enumerate(labelling.topology.hosts):
            rows = own[~some[sent.events[own], at]]
            way = [] if host == publisher else expected.way(publisher, host)
            if not way or not len(rows):
                continue
            through = expected.through(way, sure[rows][:, way], set_bits[rows]) * new[rows]
            clear = np.zeros(events)
            np.add.at(clear, sent.events[rows], np.log1p(-np.minimum(through, SURELY)))
            found -= np.expm1(clear)
    return found


def _known(
    sent: SentPackets, labelling: BloomLabelling, held: HeldFilters, entries: Patterns
) -> tuple[Flags, Flags]:
    """For each packet the hosts that want it, and the ports that it leaves by surely: an entry there asks for no bits
    but those of one of its filters."""
    texts, hosts = held.texts, list(labelling.topology.hosts)
    number = {host: at for at, host in enumerate(hosts)}
    wants = np.zeros((len(texts), len(hosts)), np.bool_)
    for at, text in enumerate(texts):
        wants[at, [number[host] for host in held[text].hosts]] = True
    patterns = [labelling.labels.pattern(text) for text in texts]
    words, place = words_of(patterns, labelling.labels.m), {bits: at for at, bits in enumerate(patterns)}
    leaves = np.zeros((len(texts), len(labelling.ports)), np.bool_)
    for port, where in enumerate(labelling.ports):
        for bits in entries[where]:
            if bits.bit_count() == labelling.labels.k and bits in place:
                leaves[place[bits], port] = True
            else:
                asked = words_of([bits], labelling.labels.m)
                leaves[:, port] |= (words & asked == asked).all(axis=1)
    row = {text: at for at, text in enumerate(texts)}
    both = np.concatenate([wants, leaves], axis=1)
    known: dict[frozenset[str], Flags] = {}
    for filters in sent.filters:
        if filters not in known:
            known[filters] = np.logical_or.reduce(both[[row[text] for text in filters]])
    whole = np.stack([known[filters] for filters in sent.filters])
    return whole[:, : len(hosts)], whole[:, len(hosts) :]


def _new_shares(sent: SentPackets, k: int) -> Floats:
    """Of the entries whose bits each packet has by chance, the share that no packet of the event before it has.

    Packets of an event may be for the same covers: what has the bits of entries in one then has them in the other.
    """
    found = np.ones(len(sent.bits))
    known: dict[tuple[int, ...], list[float]] = {}
    starts = np.flatnonzero(np.diff(sent.events, prepend=-1))
    for begin, end in zip(starts.tolist(), [*starts[1:].tolist(), len(sent.bits)], strict=True):
        if end - begin > 1:
            packets = tuple(sent.bits[begin:end])
            if packets not in known:
                known[packets] = [_new_share(bits, packets[:at], k) for at, bits in enumerate(packets)]
            found[begin:end] = known[packets]
    return found


def _new_share(bits: int, before: Sequence[int], k: int) -> float:
    """The share of all k of some bits that are not all among those of one before; up to pairs of these."""
    every = comb(bits.bit_count(), k)
    common = {bits & other for other in before}
    common -= {one for one in common if any(one != other and not one & ~other for other in common)}
    twice = sum(comb(one.bit_count(), k) for one in common)
    twice -= sum(comb((one & other).bit_count(), k) for one, other in combinations(common, 2))
    return min(1.0, max(0.0, 1 - twice / every)) if every else 1.0


class _Expected:
    """What is to be expected of packets on the way from a publisher to a host: a list of ports, by their places."""

    def __init__(self, labelling: BloomLabelling, entries: Patterns) -> None:
        self._labelling = labelling
        self._entries = [frozenset(entries[where]) for where in labelling.ports]
        self._place = {(where.switch, where.port.port): at for at, where in enumerate(labelling.ports)}
        m = labelling.labels.m
        # By how many bits an entry asks for and a packet has: the logarithm of how likely it lacks some of them.
        self._lacking = cache(
            lambda asked: np.log1p(
                [-min(SURELY, comb(there, asked) / comb(m, asked)) for there in range(m + 1)]
            )
        )
        self._nothing = cache(self._find_nothing)

    def way(self, publisher: str, host: str) -> list[int]:
        """The ports from one host to another; none if one of them has no table."""
        topology, tree = self._labelling.topology, self._labelling.tree
        path = tree.path(topology.hosts[publisher], topology.hosts[host])
        steps = [
            (switch, topology.port(switch, to)) for switch, to in zip(path, (*path[1:], host), strict=True)
        ]
        return [self._place[step] for step in steps]

    def through(self, way: list[int], sure: Flags, set_bits: NDArray[np.int64]) -> Floats:
        """How likely each packet gets to the end of a way; a place of `sure` for each port of it.

        By inclusion and exclusion over the ports where it is not sure, in the order of the way. An entry is in the
        tables of ports that follow each other: first it is covered by another, then it is there, then nobody behind
        wants it. So of ports before the last one it matters only which was the last.
        """
        keys, where = np.unique(np.column_stack((sure, set_bits)), axis=0, return_inverse=True)
        unsure, there = keys[:, :-1] == 0, keys[:, -1].astype(np.int64)
        total = np.ones(len(keys))
        terms: list[Floats] = []
        for j, port in enumerate(way):
            term = np.exp(self._nothing(port, port)[there])
            for i, before in enumerate(way[:j]):
                term += terms[i] * np.exp(
                    (self._nothing(before, port) - self._nothing(before, before))[there]
                )
            terms.append(np.where(unsure[:, j], -term, 0.0))
            total += terms[j]
        return np.asarray(np.clip(total, 0.0, 1.0)[where.ravel()])

    def _find_nothing(self, one: int, two: int) -> Floats:
        """The logarithm of how likely a packet has the bits of no entry of two ports, by how many it has.

        Of an entry and one that asks for some of its bits, as one does into which it was merged, the second matters.
        """
        both = self._entries[one] | self._entries[two]
        k = self._labelling.labels.k
        loose = [bits for bits in both if bits.bit_count() < k]
        if loose:
            both = frozenset(
                bits for bits in both if not any(not each & ~bits and each != bits for each in loose)
            )
        found = np.zeros(self._labelling.labels.m + 1)
        for asked, number in Counter(bits.bit_count() for bits in both).items():
            found += number * self._lacking(asked)
        return found
