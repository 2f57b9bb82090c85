"""Tables for labels that are Bloom filters made to fit: entries whose bits are alike are merged, by traffic.

An entry that asks for the bits that two have in common sends what either did, and more. Merged first are those where
least is sent besides, judged by a sample of packets; what a sample is too small to tell is guessed from how many bits
the packets have.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from flowsieve.flow.tables.bloom_tables import PortTable

PARTNERS = 6  # of each entry are tried: those with which it has most bits in common
PRIOR = 4.0  # packets that what is guessed weighs as much as
TIE = 1e-9  # of two that cost the same, that which asks for more bits is merged
_AT_ONCE = 512  # entries compared with all others
_WORD = 64
Words = NDArray[np.uint64]


@dataclass(frozen=True, slots=True, eq=False)
class PacketSample:
    """Packets to be expected: the bits of each, in words, and which publishers may send it.

    A row of `senders` for each packet, in it a place for each of the `publishers`; `m` is how many bits there are.
    """

    m: int
    words: Words
    publishers: tuple[str, ...]
    senders: NDArray[np.bool_]

    @classmethod
    def of(
        cls, m: int, bits: Collection[int], publishers: tuple[str, ...], senders: NDArray[np.bool_]
    ) -> PacketSample:
        return cls(m, words_of(bits, m), publishers, senders)

    def weights(self, behind: Collection[str]) -> NDArray[np.float64]:
        """How many of each packet come to a port: it is sent by each publisher alike, and by nobody behind the port."""
        away = np.array([publisher not in behind for publisher in self.publishers], np.float64)
        return np.asarray(self.senders @ away / np.maximum(1, self.senders.sum(axis=1)))

    def having(self, entries: Words) -> NDArray[np.bool_]:
        """Which packets have all bits of each entry: a row for each entry."""
        found = np.ones((len(entries), len(self.words)), np.bool_)
        for word in range(self.words.shape[1]):
            asked = entries[:, word, None]
            found &= self.words[None, :, word] & asked == asked
        return found


def merged(
    tables: Mapping[PortTable, Collection[int]], most: int, sample: PacketSample
) -> dict[PortTable, set[int]]:
    """The entries of a switch, by their bits, merged until there are so many at most; one a port is left at least."""
    ports = [_Port(where, list(entries), sample) for where, entries in tables.items()]
    number = sum(int(port.alive.sum()) for port in ports)
    waiting: list[tuple[float, int, int, int]] = []  # what a merger costs, the port, and the two entries
    while number > most:
        if not waiting:
            for at, port in enumerate(ports):
                for cost, one, two in port.mergers(np.flatnonzero(port.alive)):
                    heappush(waiting, (cost, at, one, two))
            if not waiting:
                break  # one entry is left at each port
        _, at, one, two = heappop(waiting)
        port = ports[at]
        if port.alive[one] and port.alive[two]:
            number -= int(port.alive.sum())
            new = port.merge(one, two)
            number += int(port.alive.sum())
            for cost, one, two in port.mergers(new):
                heappush(waiting, (cost, at, one, two))
    return {port.where: port.left for port in ports}


class _Port:
    """The entries of a port while they are merged, by their places; `alive` says which of them are left.

    There are places for all that may come: each merger leaves one entry less.
    """

    def __init__(self, where: PortTable, entries: list[int], sample: PacketSample) -> None:
        self.where = where
        self._used = len(entries)
        self.alive = np.zeros(2 * self._used, np.bool_)
        self.alive[: self._used] = True
        self._words = np.zeros((2 * self._used, sample.words.shape[1]), np.uint64)
        self._words[: self._used] = words_of(sorted(entries), sample.m)
        self._bits = _bit_rows(self._words)
        self._sample = sample
        self._weights = sample.weights(where.port.hosts)
        self._fill = np.bitwise_count(sample.words).sum(axis=1) / sample.m
        for begin in range(0, self._used, _AT_ONCE):
            self._send(self._words[begin : min(begin + _AT_ONCE, self._used)])

    @property
    def left(self) -> set[int]:
        """The bits of the entries that are left."""
        return {int.from_bytes(row.astype("<u8").tobytes(), "little") for row in self._words[self.alive]}

    def mergers(self, places: NDArray[np.int64]) -> Iterator[tuple[float, int, int]]:
        """What it costs to merge each of some entries with those that are most alike, and which two these are."""
        few = min(PARTNERS, int(self.alive.sum()) - 1)
        if few < 1:
            return
        for begin in range(0, len(places), _AT_ONCE):
            some = places[begin : begin + _AT_ONCE]
            common = self._bits[some] @ self._bits[: self._used].T
            common[:, ~self.alive[: self._used]] = -1
            common[np.arange(len(some)), some] = -1  # not with itself
            one, two = np.repeat(some, few), np.argpartition(-common, few - 1, axis=1)[:, :few].ravel()
            costs = self._costs(self._words[one] & self._words[two])
            yield from zip(costs.tolist(), one.tolist(), two.tolist(), strict=True)

    def merge(self, one: int, two: int) -> NDArray[np.int64]:
        """Put an entry in the place of two, and of all others that it stands for; its place."""
        words = self._words[one] & self._words[two]
        self.alive &= (words & ~self._words).any(axis=1)
        self._words[self._used], self._bits[self._used] = words, _bit_rows(words[None])[0]
        self.alive[self._used] = True
        self._used += 1
        self._send(words[None])
        return np.array([self._used - 1])

    def _send(self, entries: Words) -> None:
        """What entries send costs nothing any more."""
        self._weights = np.where(self._sample.having(entries).any(axis=0), 0.0, self._weights)

    def _costs(self, entries: Words) -> NDArray[np.float64]:
        """How many packets more are sent, of those in the sample and as far as one can guess."""
        asked = np.bitwise_count(entries).sum(axis=1)
        besides = self._sample.having(entries) @ self._weights
        guessed = self._fill[None, :] ** asked[:, None] @ self._weights / max(1, len(self._fill))
        return np.asarray(besides + PRIOR * guessed - TIE * asked)


def words_of(bits: Collection[int], m: int) -> Words:
    """Numbers of m bits as rows of words, the lowest first."""
    count = -(-m // _WORD)
    raw = b"".join(each.to_bytes(count * 8, "little") for each in bits)
    return np.frombuffer(raw, "<u8").astype(np.uint64).reshape(len(bits), count)


def _bit_rows(words: Words) -> NDArray[np.float32]:
    """Words as rows of noughts and ones."""
    return np.unpackbits(words.view(np.uint8), axis=1).astype(np.float32)
