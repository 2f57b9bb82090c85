"""One switch: its tables and counters, as OpenFlow 1.4 has them."""

from __future__ import annotations

from bisect import insort
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from flowsieve.errors import SwitchError, TableFull
from flowsieve.flow.diff import FlowOp, OpKind
from flowsieve.flow.entry import CONTENT_TABLE, Flow, FlowKey
from flowsieve.flow.flat import FlatTable, FlowColumns, flatten
from flowsieve.header.match import MaskedMatch, Rank


class _Place(NamedTuple):
    """The entries of one table, priority and rank, by the values of their matches."""

    table: int
    priority: int
    family: int
    rank: Rank
    flows: dict[int, Flow]


class Switch:
    """Tables of entries, told apart by table, match and priority.

    A second install of an entry replaces the first; a modify or remove of an entry that is not there does
    nothing; replaced and modified entries keep their counters. A packet comes to the content's table first, and from an
    entry to the table that this lets it go on in; where no entry of a table matches, it goes no further.
    """

    def __init__(self, name: str, ports: int, capacity: int | None = None) -> None:
        self.name = name
        self.ports = ports
        self.capacity = capacity
        self.peak = 0
        self._flows: dict[FlowKey, Flow] = {}
        self._packets: dict[FlowKey, int] = {}
        # Entries of one place exclude each other, so a look-up asks each place once, best first.
        self._places: dict[int, list[_Place]] = {}  # by the table
        self._at: dict[tuple[int, int, int, Rank], _Place] = {}
        self._unflat = (
            0  # how many entries match more than a destination prefix, or lie in or lead to other tables
        )
        self._columns: FlowColumns | None = None
        self._flat: dict[int, FlatTable] = {}
        # LabelMatch since the last change, by row of the table.
        self._row_packets: NDArray[np.int64] | None = None

    @property
    def flows(self) -> tuple[Flow, ...]:
        """The entries, oldest first."""
        return tuple(self._flows.values())

    @property
    def packets(self) -> dict[FlowKey, int]:
        """How many packets each entry has matched."""
        self._settle_rows()
        return dict(self._packets)

    def carry_out(self, op: FlowOp) -> None:
        """Do one operation, or refuse it and change nothing."""
        flow, key = op.flow, op.flow.key
        known = key in self._flows
        if op.kind is OpKind.REMOVE:
            if known:
                self._take_out(key)
        elif known or op.kind is OpKind.INSTALL:
            self._check_ports(flow)
            if not known and self.capacity is not None and len(self._flows) >= self.capacity:
                own = sum(each.owner == flow.owner for each in self._flows.values())
                room = self.capacity - (len(self._flows) - own)
                raise TableFull(switch=self.name, needed=own + 1, capacity=room)
            self._put_in(key, flow)

    def met(self, family: int, destination: int, source: int = 0) -> list[Flow]:
        """The entries that a packet meets, one in each table that it comes to; the twin of `flow.table_chain.met`."""
        found: list[Flow] = []
        table: int | None = CONTENT_TABLE
        while table is not None and (flow := self.look_up(family, destination, source, table)) is not None:
            found.append(flow)
            table = flow.onward
        return found

    def look_up(
        self, family: int, destination: int, source: int = 0, table: int = CONTENT_TABLE
    ) -> Flow | None:
        """The entry of a table that a packet meets; the twin of `flow.flat.look_up`."""
        for _, _, of_family, (_, source_mask, destination_mask), flows in self._places.get(table, ()):
            if of_family == family:
                value = destination & destination_mask
                if source_mask:
                    value |= (source & source_mask) << 128
                found = flows.get(value)
                if found is not None:
                    return found
        return None

    def count(self, flow: Flow, packets: int = 1) -> None:
        """Note that packets have matched an entry."""
        self._packets[flow.key] += packets

    def count_rows(self, packets: NDArray[np.int64]) -> None:
        """Note how many packets have matched each of `flows`."""
        self._row_packets = packets if self._row_packets is None else self._row_packets + packets

    def flat(self, family: int) -> FlatTable | None:
        """The table laid out flat, if its entries can be; its rows are `flows`. Made anew only after a change."""
        if self._unflat:
            return None
        if self._columns is None:
            self._columns = FlowColumns.of(self.flows, self.ports)
        if family not in self._flat:
            self._flat[family] = flatten(self._columns, family)
        return self._flat[family]

    def _check_ports(self, flow: Flow) -> None:
        ports = flow.ports
        for port in ports:
            if not 1 <= port <= self.ports:
                raise SwitchError(
                    f"switch {self.name} has no port {port} for {flow.match}; its ports are 1 to {self.ports}"
                )
        if what := flow.flaw:
            raise SwitchError(f"switch {self.name} cannot do what is asked for {flow.match}: {what}")
        if len(set(ports)) < len(ports):
            raise SwitchError(f"switch {self.name} is to send {flow.match} twice out of one port: {ports}")

    def _put_in(self, key: FlowKey, flow: Flow) -> None:
        self._change()
        match = flow.match
        where = flow.table, flow.priority, match.family, match.rank
        place = self._at.get(where)
        if place is None:
            place = self._at[where] = _Place(*where, {})
            insort(self._places.setdefault(flow.table, []), place, key=_last_first)
        place.flows[match.value] = flow
        self._packets.setdefault(key, 0)
        self._unflat += _unflat(flow) - (key in self._flows and _unflat(self._flows[key]))
        self._flows[key] = flow
        self.peak = max(self.peak, len(self._flows))

    def _take_out(self, key: FlowKey) -> None:
        self._change()
        flow = self._flows.pop(key)
        del self._packets[key]
        self._unflat -= _unflat(flow)
        where = flow.table, flow.priority, flow.match.family, flow.match.rank
        place = self._at[where]
        del place.flows[flow.match.value]
        if not place.flows:
            del self._at[where]
            self._places[flow.table].remove(place)

    def _change(self) -> None:
        """Forget what is true of the table as it is; it is about to change."""
        self._settle_rows()
        self._columns = None
        self._flat.clear()

    def _settle_rows(self) -> None:
        if self._row_packets is not None:
            for flow, packets in zip(self._flows.values(), self._row_packets.tolist(), strict=True):
                self._packets[flow.key] += packets
            self._row_packets = None


def _unflat(flow: Flow) -> bool:
    return isinstance(flow.match, MaskedMatch) or flow.table != CONTENT_TABLE or flow.onward is not None


def _last_first(place: _Place) -> tuple[int, ...]:
    return -place.priority, *(-figure for figure in place.rank)
