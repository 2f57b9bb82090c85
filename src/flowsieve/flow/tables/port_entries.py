"""The entries of all ports for labels that are Bloom filters, and how they follow what has to be asked for.

While a switch has room there is an entry for each pattern. Beyond it patterns are merged: an entry asks for the bits
that several of them have in common, so it sends what has the bits of any of them, and more. One entry of a switch is
kept free, so that a merged one is there before those are gone that it stands for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from operator import and_

from flowsieve.errors import TableFull
from flowsieve.flow.capacity.pattern_merging import PacketSample, merged
from flowsieve.flow.diff import FlowOp
from flowsieve.flow.entry import Flow
from flowsieve.flow.tables.bloom_tables import BloomLabelling, Patterns, PortTable
from flowsieve.flow.tables.pattern_order import Exchange, any_within, in_order, stands_for

SPARE = 1  # entries that are kept free
SLACK = 64  # where some are merged, one in so many is freed besides, so that the next requests find room
SPLIT_FROM = 3  # merged entries are taken apart when one in so many is unused

AtPorts = Mapping[PortTable, Iterable[int]]  # the bits of patterns


Exchanges = dict[PortTable, Exchange]


class PortEntries:
    """What is asked for at each port, `needed`, and the `entries` that switches have acknowledged.

    Each pattern that is needed has all bits of some entry at its port. `traffic` is asked for the packets to be
    expected when entries have to be merged. How tables are to follow is told first, as exchanges; nothing is changed
    here before it is told that switches have carried them out. A switch that `capacity` does not name has any room.
    """

    def __init__(
        self, labelling: BloomLabelling, capacity: Mapping[str, int], traffic: Callable[[], PacketSample]
    ) -> None:
        self._labelling = labelling
        self.capacity = capacity
        self._traffic = traffic
        self.needed: dict[PortTable, set[int]] = {each: set() for each in labelling.ports}
        self.entries: dict[PortTable, set[int]] = {each: set() for each in labelling.ports}
        self._merged: dict[PortTable, set[int]] = {each: set() for each in labelling.ports}
        self._fixed = {switch: len(table) for switch, table in labelling.tables({}).items()}
        self._held = Counter[str]()

    @property
    def merged(self) -> int:
        """How many entries ask for less than the bits of a pattern that is needed."""
        return sum(map(len, self._merged.values()))

    @property
    def loose(self) -> frozenset[int]:
        """What those entries ask for, at any port, that stand for other than one pattern which is needed."""
        return frozenset[int]().union(*self._merged.values())

    def taking_in(self, more: AtPorts) -> Exchanges:
        """How tables come to send some patterns more; TableFull where not even merged entries fit."""
        found: Exchanges = {}
        for where, patterns in more.items():
            there, loose = self.entries[where], self._merged[where]
            new = {bits for bits in patterns if bits not in there and not any_within(loose, bits)}
            if new:
                found[where] = Exchange(new)
        for switch in dict.fromkeys(where.switch for where in found):
            found |= self._fitted(switch, found)
        return found

    def letting_go(self, less: AtPorts) -> Exchanges:
        """How tables come to send some patterns no longer: entries go, and merged ones ask for more bits again."""
        found: Exchanges = {}
        for where, patterns in less.items():
            found[where] = self._tightened(where, set(patterns))
        for switch in dict.fromkeys(where.switch for where in found):
            found |= self._taken_apart(switch, found, less)
        return found

    def took_in(self, more: AtPorts, done: Exchanges) -> None:
        """Switches have carried out what makes them send some patterns more."""
        for where, patterns in more.items():
            self.needed[where].update(patterns)
            self._merged[where].difference_update(patterns)
        self._acknowledge(done)

    def let_go(self, less: AtPorts, done: Exchanges) -> None:
        """Switches have carried out what makes them send some patterns no longer."""
        for where, patterns in less.items():
            self.needed[where].difference_update(patterns)
            self._merged[where].update(self.entries[where].intersection(patterns))
        self._acknowledge(done)

    def adopt(self, tables: Mapping[str, Iterable[Flow]]) -> None:
        """Some switches hold these tables."""
        for switch, flows in tables.items():
            found: dict[int, set[int]] = {}
            for flow in flows:
                bits = self._labelling.labels.pattern_of(flow.match)
                if bits is not None:
                    for port in flow.ports:
                        found.setdefault(port, set()).add(bits)
            for where in self._labelling.ports_of.get(switch, ()):
                some = found.get(where.port.port, set())
                self._held[switch] += len(some) - len(self.entries[where])
                self.entries[where], self._merged[where] = some, some - self.needed[where]

    def missing(self, switch: str) -> AtPorts:
        """The patterns that no entry of a switch stands for, though they are needed."""
        found = {
            where: [
                bits
                for bits in self.needed[where] - self.entries[where]
                if not any_within(self._merged[where], bits)
            ]
            for where in self._labelling.ports_of.get(switch, ())
        }
        return {where: some for where, some in found.items() if some}

    def fits_unmerged(self, switch: str) -> bool:
        """Whether a switch has room for an entry for each pattern."""
        room, ports = self._room(switch), self._labelling.ports_of.get(switch, ())
        return room is None or sum(len(self.needed[each]) for each in ports) <= room

    def refitted(self, switch: str) -> Exchanges:
        """How a table becomes one that is merged for the room that there is now, and no more than that."""
        room, ports = self._room(switch), self._labelling.ports_of.get(switch, ())
        tables = {each: set(self.needed[each]) for each in ports}
        if room is not None and not self.fits_unmerged(switch):
            tables = self._merged_to(switch, tables, room)
        return {each: Exchange.between(self.entries[each], some) for each, some in tables.items()}

    def copied(self) -> PortEntries:
        """All of it as it is now."""
        made = PortEntries(self._labelling, self.capacity, self._traffic)
        for mine, others in (
            (made.needed, self.needed),
            (made.entries, self.entries),
            (made._merged, self._merged),
        ):
            mine.update({where: set(some) for where, some in others.items()})
        made._held = Counter(self._held)
        return made

    def tidied(self) -> Exchanges:
        """How tables lose entries that stand for nothing that is needed."""
        found: Exchanges = {}
        for where, loose in self._merged.items():
            gone = {bits for bits in loose if not stands_for(bits, self.needed[where])}
            if gone:
                found[where] = Exchange(gone=gone)
        return found

    def ops(self, exchanges: Exchanges) -> dict[str, list[FlowOp]]:
        """The operations of each switch, in an order in which nothing is lost: what stands for others comes before they
        go. There is never more than one entry more than before or after."""
        found: dict[str, list[FlowOp]] = {}
        for where, kind, bits in in_order(exchanges):
            found.setdefault(where.switch, []).append(FlowOp(kind, self._labelling.entry(where, bits)))
        return found

    def _acknowledge(self, done: Exchanges) -> None:
        for where, exchange in done.items():
            self.entries[where] -= exchange.gone
            self.entries[where] |= exchange.new
            self._merged[where] -= exchange.gone
            self._merged[where] |= exchange.new - self.needed[where]
            self._held[where.switch] += exchange.growth

    # Room.

    def _room(self, switch: str) -> int | None:
        """How many entries the ports of a switch may have."""
        whole = self.capacity.get(switch)
        return None if whole is None else whole - self._fixed[switch] - SPARE

    def _fitted(self, switch: str, exchanges: Exchanges) -> Exchanges:
        """The exchanges of a switch, with entries merged if they would not fit."""
        room, ports = self._room(switch), self._labelling.ports_of.get(switch, ())
        growth = sum(exchanges[each].growth for each in ports if each in exchanges)
        if room is None or self._held[switch] + growth <= room:
            return {}
        fitting = self._merged_to(switch, {each: self._after(each, exchanges) for each in ports}, room)
        return {each: Exchange.between(self.entries[each], some) for each, some in fitting.items()}

    def _merged_to(self, switch: str, tables: Patterns, room: int) -> dict[PortTable, set[int]]:
        """The entries of a switch, some of them merged so that they fit; TableFull where not even one a port does."""
        if (least := sum(map(bool, tables.values()))) > room:
            taken = self._fixed[switch] + SPARE
            raise TableFull(switch=switch, needed=taken + least, capacity=taken + room)
        return merged(tables, max(least, room - room // SLACK), self._traffic())

    def _tightened(self, where: PortTable, gone: set[int]) -> Exchange:
        """What becomes of a port's entries when some patterns go: what stood for them stands for the others alone."""
        there, loose = self.entries[where], self._merged[where]
        without = self.needed[where] - gone - there  # an entry of their own
        if not loose and not without:
            return Exchange(gone=gone & there)
        found = Exchange()
        for bits in [each for each in loose | gone & there if stands_for(each, gone)]:
            found.gone.add(bits)
            if members := [each for each in without if not bits & ~each]:
                found.new.add(reduce(and_, members))
        both = found.new & there
        return Exchange(found.new - there, found.gone - both)

    def _taken_apart(self, switch: str, exchanges: Exchanges, less: AtPorts) -> Exchanges:
        """Merged entries taken apart, if much of a table is unused: into as many as leave half of that unused."""
        room, ports = self._room(switch), self._labelling.ports_of.get(switch, ())
        if room is None or not any(self._merged[each] for each in ports):
            return {}
        tables = {each: self._after(each, exchanges) for each in ports}
        unused = room - sum(map(len, tables.values()))
        if unused * SPLIT_FROM < room:
            return {}
        free, found = unused // 2, Exchanges()
        for where, there in tables.items():
            needed = self.needed[where].difference(less.get(where, ()))
            for bits in sorted(there - needed):
                members = {each for each in needed if not bits & ~each}
                if free > 0 and len(members) > 1:
                    parts = merged({where: members}, free + 1, self._traffic())[where]
                    there = there - {bits} | parts
                    free -= len(parts) - 1
                    found[where] = Exchange.between(self.entries[where], there)
        return found

    def _after(self, where: PortTable, exchanges: Exchanges) -> set[int]:
        if where not in exchanges:
            return self.entries[where]
        return self.entries[where] - exchanges[where].gone | exchanges[where].new
