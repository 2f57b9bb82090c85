"""Entries of others laid over a flat table of ours: what a switch surely sends, and what it sends at most.

Whether an entry of others catches an event may depend on what a table of destinations cannot say: where it came in, its
source, which of two entries of one priority the switch prefers. So each interval gets two port sets. Both grow with
what could be caught: who gets an event by the first gets it whatever happens, who does not by the second never does.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from flowsieve.flow.flat import FlatTable, FlowColumns, Words
from flowsieve.flow.others import Foreign, SentCopy
from flowsieve.flow.proof.atoms import Atoms
from flowsieve.flow.proof.passage import Passage
from flowsieve.header.address import Prefix

SPACE = 1 << 128  # where the keys end


@dataclass(frozen=True, slots=True, eq=False)
class Overlay:
    """The two tables; `open` are the entries of others in which they differ, `riddles` those that may do anything."""

    surely: FlatTable
    at_most: FlatTable
    open: tuple[Foreign, ...]
    riddles: tuple[Foreign, ...]


def overlay(passage: Passage, switch: str, columns: FlowColumns, flat: FlatTable) -> Overlay:
    """Lay what others have put there over the flat table of a switch."""
    entries = passage.entries(switch)
    if not entries:
        return Overlay(flat, flat, (), ())
    spans = [_span(reach) for each in entries if (reach := each.within(passage.group))]
    atoms = Atoms.between([(flat.hi, flat.lo), _keys([edge for span in spans for edge in span])])
    keys = [hi << 64 | lo for hi, lo in zip(atoms.hi.tolist(), atoms.lo.tolist(), strict=True)]
    at = flat.at(atoms.hi, atoms.lo)
    bounds = _Bounds(flat.ports[at], flat.ports[at], np.append(columns.priority, -1)[flat.entry[at]])
    ranges = [slice(bisect_left(keys, begin), bisect_left(keys, end)) for begin, end in spans]
    rows = [
        _Row(each, here, *_sent(passage, switch, each, columns.ports.shape[1]))
        for each, here in zip(entries, ranges, strict=True)
    ]
    for _, stage in groupby(rows, key=lambda row: row.entry.ahead):
        bounds.pass_table(list(stage))
    differ = (bounds.least != bounds.most).any(axis=1)
    return Overlay(
        FlatTable(atoms.hi, atoms.lo, flat.entry[at], bounds.least),
        FlatTable(atoms.hi, atoms.lo, flat.entry[at], bounds.most),
        tuple(row.entry for row in rows if (row.met & differ[row.here]).any()),
        tuple(row.entry for row in rows if row.met.any() and puzzling(passage, switch, row.entry)),
    )


@dataclass(slots=True, eq=False)
class _Row:
    """An entry of others: the intervals that it reaches, the ports that it surely and at most sends out of.

    `met` are those of its intervals in which an event may meet it: none surely comes before it.
    """

    entry: Foreign
    here: slice
    few: Words
    many: Words
    met: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))

    @property
    def sure(self) -> bool:
        """Whether it matches all that it reaches, wherever that came in."""
        return self.entry.certain and self.entry.in_port is None


@dataclass(slots=True, eq=False)
class _Bounds:
    """By interval, what is surely and at most sent, and the rank of the highest entry that surely matches."""

    least: Words
    most: Words
    rank: NDArray[np.int64]
    passed: list[_Row] = field(default_factory=list)

    def pass_table(self, rows: list[_Row]) -> None:
        """Lay the entries of one table over what stands behind it."""
        least, most = (
            self.least.copy(),
            self.most.copy(),
        )  # behind this table, for those that let events go on
        final = np.zeros(len(least), np.bool_)  # where what surely matches lets nothing go on
        # Of one rank those that surely match come first: what they hide is then known.
        for row in sorted(rows, key=lambda row: (row.entry.rank, not row.sure)):
            here, rank = row.here, row.entry.rank
            few = (least[here] if row.entry.goes_on else np.zeros_like(least[here])) | row.few
            many = (most[here] if row.entry.goes_on else np.zeros_like(most[here])) | row.many
            wins = row.sure & (self.rank[here] < rank)
            may = ~wins & (self.rank[here] <= rank)
            old, full = self.least[here], self.most[here]
            self.least[here] = np.where(wins[:, None], few, np.where(may[:, None], old & few, old))
            self.most[here] = np.where(wins[:, None], many, np.where(may[:, None], full | many, full))
            self.rank[here] = np.where(wins, rank, self.rank[here])
            final[here] = np.where(wins, not row.entry.goes_on, final[here])
        for row in self.passed:
            row.met &= ~final[row.here]
        for row in rows:
            row.met = self.rank[row.here] <= row.entry.rank
        self.passed += rows


def puzzling(passage: Passage, switch: str, entry: Foreign) -> str | None:
    """Why nobody can tell what an entry of others does to events, if that is so."""
    if entry.riddle is not None:
        return entry.riddle
    ports = [copy.port for copy in entry.copies]
    if len(set(ports)) < len(ports) or (ports and entry.floods):
        return "it may send several copies out of one port"
    if entry.goes_on and (ports or entry.floods or entry.perhaps):
        return "it sends copies of its own and lets events go on"
    for copy in entry.copies:
        if copy.address is not None and passage.arrives(switch, copy) is None:
            return "it makes one event another"
    return None


def _sent(passage: Passage, switch: str, entry: Foreign, words: int) -> tuple[Words, Words]:
    """The ports that an entry of others surely sends events out of, and those that it may."""
    ports = range(1, len(passage.topology.neighbours(switch)) + 1)
    if puzzling(passage, switch, entry) is not None:
        return _bits((), words), _bits(ports, words)
    arrives = {copy.port: passage.arrives(switch, copy) for copy in entry.copies}
    least = [port for port, does in arrives.items() if does and not entry.perhaps]
    most = [port for port, does in arrives.items() if does is not False]
    if entry.floods:
        most = [port for port in ports if passage.arrives(switch, SentCopy(port)) is not False]
    return _bits(least, words), _bits(most, words)


def _bits(ports: Sequence[int], words: int) -> Words:
    number = sum(1 << port - 1 for port in ports)
    return np.array([number >> 64 * word & (1 << 64) - 1 for word in range(words)], np.uint64)


def _span(prefix: Prefix) -> tuple[int, int]:
    """The first key of a prefix and the one just behind it."""
    first, room = prefix.first << 128 - prefix.width, 128 - prefix.length
    return first, first + (1 << room)


def _keys(numbers: Sequence[int]) -> tuple[Words, Words]:
    inside = [number for number in numbers if number < SPACE]
    hi, lo = ([number >> 64 for number in inside], [number & (1 << 64) - 1 for number in inside])
    return np.array(hi, np.uint64), np.array(lo, np.uint64)
