"""Who wants an event: filters of receivers, matched against one event at a time, while filters come and go.

A box has a slot, and slots follow each other without a gap: where one is given up, the last one moves there. So a new
filter costs the same however many there are, and memory follows what is held. Slots are in parts of a fixed size. The
buckets of a part's columns (see the kernel) are cut anew whenever it has taken in as many boxes again: one column with
each new box, so that nothing waits for long.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flowsieve.content.canonical import canonical
from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.errors import BadInput
from flowsieve.matcher import filter_index_kernel as kernel
from flowsieve.matcher.number_lines import Bounds, NumberLines, Rest

RECEIVERS = 2048
MOST_RECEIVERS = 1 << 14  # blocks of them are counted in a byte
BLOCK = 64  # receivers that share a slot
SLOTS = 1 << 14  # of a part
BUCKETS = 128  # of a column
FIRST_CUT = 64  # boxes after which a part's columns are first cut
SAMPLE = 4096  # boxes whose ends say where to cut
EVENTS = 256  # that are matched at once: what they leave in doubt is listed, and may be all slots of a part for each


class FilterIndex:
    """Filters of receivers, matched against one event at a time; filters come and go.

    Receivers have numbers below so many. Equal filters of receivers of one block of 64 are kept once.

    >>> schema = Schema.parse({"price": {"type": "int", "min": 0, "max": 9}})
    >>> index = FilterIndex(schema)
    >>> index.add(Filter.parse("price < 5", schema), 0)
    >>> index.add(Filter.parse("price == 3", schema), 2)
    >>> bin(index.match({"price": 3}))
    '0b101'
    """

    def __init__(self, schema: Schema, receivers: int = RECEIVERS) -> None:
        assert receivers <= MOST_RECEIVERS and receivers % BLOCK == 0, "receivers come in blocks"
        self._schema = schema
        self._lines = NumberLines(schema)
        self._parts: list[_TendedPart] = []
        self._slots: dict[bytes, list[int]] = {}  # of each filter and block of receivers
        self._keys: list[bytes] = []  # of each slot
        self._rests: dict[int, Rest] = {}  # by slot
        self._held = np.zeros(receivers, np.int64)  # filters of each receiver
        self._everyone = np.zeros(receivers // BLOCK, np.uint64)  # a bit per receiver that has some

    def __len__(self) -> int:
        """Pairs of a filter and a receiver."""
        return int(self._held.sum())

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays: what is held for each filter in addition is a few hundred bytes."""
        return sum(array.nbytes for part in self._parts for array in part.arrays)

    def add(self, filter: Filter, receiver: int) -> None:
        """Let a receiver have what a filter matches; where it has that already, nothing changes."""
        key, bit = self._key(filter, receiver)
        slots = self._slots.get(key)
        if slots is None:
            self._slots[key] = slots = []
            for box in filter.boxes:
                slots.append(len(self._keys))
                self._append(key, self._lines.hold(box), receiver // BLOCK)
        elif self._receivers(slots[0]) & bit:
            return
        for slot in slots:
            part, at = self._place(slot)
            part.arrays.receivers[at] |= bit
        self._held[receiver] += 1
        self._everyone[receiver // BLOCK] |= bit

    def remove(self, filter: Filter, receiver: int) -> None:
        """Take a receiver's filter away; KeyError if it has no such filter."""
        key, bit = self._key(filter, receiver)
        slots = self._slots.get(key, [])
        if not slots or not self._receivers(slots[0]) & bit:
            raise KeyError(f"receiver {receiver} has no filter {filter.text}")
        for slot in slots:
            part, at = self._place(slot)
            part.arrays.receivers[at] &= ~bit
        if not self._receivers(slots[0]):
            del self._slots[key]
            for box in filter.boxes:
                self._lines.release(box)
            for slot in sorted(slots, reverse=True):  # so that none of them is moved
                self._give_up(slot)
        self._held[receiver] -= 1
        if not self._held[receiver]:
            self._everyone[receiver // BLOCK] &= ~bit

    def match(self, values: Mapping[str, object]) -> int:
        """The receivers that want an event, bit r for receiver r; its values are such as the schema allows."""
        strings = {name: (values[name],) for name in self._lines.strings}
        (found,) = self._match(self._lines.point(values)[None, :], strings)
        return found

    def match_batch(self, events: EventBatch) -> list[int]:
        """`match` for many events, which have no faults."""
        found = list[int]()
        for begin in range(0, len(events), EVENTS):
            some = events.take(np.arange(begin, min(begin + EVENTS, len(events))))
            found += self._match(self._lines.points(some), some.columns)
        return found

    def _match(self, points: NDArray[np.float64], strings: Mapping[str, Any]) -> list[int]:
        """The receivers that want each event, a row of points; `strings` are columns of its strings."""
        found = np.zeros((len(points), len(self._everyone)), np.uint64)
        for number, part in enumerate(self._parts):
            doubts = kernel.match(part.arrays, part.used, points, self._everyone, found)
            for event, at in doubts.tolist():
                block, receivers = part.arrays.block[at], part.arrays.receivers[at]
                if receivers & ~found[event, block] and all(
                    text.admits(strings[name][event]) for name, text in self._rests[number * SLOTS + at]
                ):
                    found[event, block] |= receivers
        return [int.from_bytes(row.tobytes(), "little") for row in found]

    def _key(self, filter: Filter, receiver: int) -> tuple[bytes, np.uint64]:
        """A name for a filter and a block of receivers, and the receiver's bit in it."""
        if filter.schema is not self._schema and filter.schema != self._schema:
            raise BadInput("the filter is of another schema than the index")
        if not 0 <= receiver < len(self._held):
            raise ValueError(f"a receiver's number is from 0 to {len(self._held) - 1}, not {receiver}")
        digest = blake2b(canonical(filter).encode(), digest_size=16).digest()
        return digest + bytes([receiver // BLOCK]), np.uint64(1 << receiver % BLOCK)

    def _place(self, slot: int) -> tuple[_TendedPart, int]:
        return self._parts[slot // SLOTS], slot % SLOTS

    def _receivers(self, slot: int) -> np.uint64:
        part, at = self._place(slot)
        receivers: np.uint64 = part.arrays.receivers[at]
        return receivers

    def _append(self, key: bytes, bounds: Bounds, block: int) -> None:
        """Take a box into the next slot."""
        slot = len(self._keys)
        if slot % SLOTS == 0:
            self._parts.append(_TendedPart(self._lines.columns))
        self._keys.append(key)
        if bounds.rest:
            self._rests[slot] = bounds.rest
        self._parts[-1].append(np.array(bounds.ends), block, bool(bounds.rest))

    def _give_up(self, slot: int) -> None:
        """Empty a slot; the last one moves there."""
        last = len(self._keys) - 1
        key, rest = self._keys.pop(), self._rests.pop(last, None)
        if slot != last:
            self._rests.pop(slot, None)
            if rest:
                self._rests[slot] = rest
            self._keys[slot] = key
            slots = self._slots[key]
            slots[slots.index(last)] = slot
            part, at = self._place(slot)
            part.replace(at, self._parts[-1])
        self._parts[-1].drop_last()
        if not self._parts[-1].used:
            self._parts.pop()


class _TendedPart:
    """A part, and when to cut its columns anew."""

    def __init__(self, columns: int) -> None:
        self.arrays = kernel.BoxPart.of(SLOTS, columns, BUCKETS)
        self.used = 0
        self._taken, self._next_cut = 0, FIRST_CUT
        self._due: list[int] = []  # columns to cut

    def append(self, ends: NDArray[np.float64], block: int, doubtful: bool) -> None:
        """Take a box into the next slot, for no receiver yet."""
        slot, self.used = self.used, self.used + 1
        self.arrays.bounds[slot], self.arrays.block[slot], self.arrays.doubtful[slot] = ends, block, doubtful
        self.arrays.receivers[slot] = 0
        kernel.flip(self.arrays, slot, 1)
        self._tend()

    def replace(self, slot: int, other: _TendedPart) -> None:
        """Have in a slot what the last slot of a part has."""
        kernel.flip(self.arrays, slot, -1)
        mine, its, last = self.arrays, other.arrays, other.used - 1
        mine.bounds[slot], mine.block[slot] = its.bounds[last], its.block[last]
        mine.receivers[slot], mine.doubtful[slot] = its.receivers[last], its.doubtful[last]
        kernel.flip(self.arrays, slot, 1)
        if other is not self:
            self._tend()

    def drop_last(self) -> None:
        self.used -= 1
        kernel.flip(self.arrays, self.used, -1)

    def _tend(self) -> None:
        """After each box that came: cut a column if one is due, and all soon when as many came again as had before."""
        self._taken += 1
        if self._taken == self._next_cut:
            self._next_cut = self._taken + max(self.used, FIRST_CUT)
            self._due = list(range(len(self.arrays.edges)))
        if self._due:
            column = self._due.pop()
            kernel.cut_anew(self.arrays, self.used, column, self._edges(column))

    def _edges(self, column: int) -> NDArray[np.float64]:
        """Where boxes begin and end: all such places, or, where these are too many, some at equal distances in rank."""
        step = -(-self.used // SAMPLE)
        low, high = self.arrays.bounds[: self.used : step, column].T
        ends = np.sort(np.concatenate((low, np.nextafter(high, np.inf))))
        # Nothing is cut off at the outermost ends, which most boxes share.
        ends = ends[(ends > low.min()) & (ends <= high.max()) & np.isfinite(ends)]
        distinct = np.unique(ends)
        if len(distinct) >= BUCKETS:
            distinct = np.unique(ends[np.arange(1, BUCKETS) * len(ends) // BUCKETS])
        edges = np.full(BUCKETS - 1, np.inf)
        edges[: len(distinct)] = distinct
        return edges
