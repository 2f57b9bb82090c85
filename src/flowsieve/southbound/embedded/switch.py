"""One switch: its table and counters, as OpenFlow 1.4 has them."""

from __future__ import annotations

from bisect import insort

import numpy as np
from numpy.typing import NDArray

from flowsieve.errors import SwitchError, TableFull
from flowsieve.flow.diff import FlowOp, OpKind
from flowsieve.flow.entry import Flow
from flowsieve.flow.flat import FlatTable, FlowColumns, flatten
from flowsieve.header.match import MaskedMatch, Match, Rank, masked

Place = tuple[int, Rank, int]  # priority, rank of the match, family


class Switch:
    """A table of entries, told apart by match and priority.

    A second install of an entry replaces the first; a modify or remove of an entry that is not there does
    nothing; replaced and modified entries keep their counters. A packet that no entry matches is dropped.
    """

    def __init__(self, name: str, ports: int, capacity: int | None = None) -> None:
        self.name = name
        self.ports = ports
        self.capacity = capacity
        self.peak = 0
        self._flows: dict[tuple[Match, int], Flow] = {}
        self._packets: dict[tuple[Match, int], int] = {}
        # Entries of one place exclude each other, so a look-up asks each place once, best first.
        self._places: list[Place] = []
        self._at: dict[Place, dict[int, Flow]] = {}  # by the value of the match
        self._masked = 0  # how many entries match more than a destination prefix
        self._columns: FlowColumns | None = None
        self._flat: dict[int, FlatTable] = {}
        self._row_packets: NDArray[np.int64] | None = (
            None  # matched since the last change, by row of the table
        )

    @property
    def flows(self) -> tuple[Flow, ...]:
        """The entries, oldest first."""
        return tuple(self._flows.values())

    @property
    def packets(self) -> dict[tuple[Match, int], int]:
        """How many packets each entry has matched."""
        self._settle_rows()
        return dict(self._packets)

    def carry_out(self, op: FlowOp) -> None:
        """Do one operation, or refuse it and change nothing."""
        flow, known = op.flow, op.flow.key in self._flows
        if op.kind is OpKind.REMOVE:
            if known:
                self._take_out(flow.key)
        elif known or op.kind is OpKind.INSTALL:
            self._check_ports(flow)
            if not known and self.capacity is not None and len(self._flows) >= self.capacity:
                raise TableFull(switch=self.name, needed=len(self._flows) + 1, capacity=self.capacity)
            self._put_in(flow)

    def look_up(self, family: int, destination: int, source: int = 0) -> Flow | None:
        """The entry that a packet meets; the twin of `flow.flat.look_up`."""
        for place in self._places:
            _, rank, of_family = place
            if of_family == family:
                found = self._at[place].get(masked(rank, source, destination))
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
        if self._masked:
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

    def _put_in(self, flow: Flow) -> None:
        self._change()
        place = flow.priority, flow.match.rank, flow.match.family
        if place not in self._at:
            self._at[place] = {}
            insort(self._places, place, key=_last_first)
        self._at[place][flow.match.value] = flow
        self._masked += flow.key not in self._flows and isinstance(flow.match, MaskedMatch)
        self._flows[flow.key] = flow
        self._packets.setdefault(flow.key, 0)
        self.peak = max(self.peak, len(self._flows))

    def _take_out(self, key: tuple[Match, int]) -> None:
        self._change()
        flow = self._flows.pop(key)
        del self._packets[key]
        self._masked -= isinstance(flow.match, MaskedMatch)
        place = flow.priority, flow.match.rank, flow.match.family
        del self._at[place][flow.match.value]
        if not self._at[place]:
            del self._at[place]
            self._places.remove(place)

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


def _last_first(place: Place) -> tuple[int, int, int, int]:
    priority, rank, _ = place
    return -priority, -rank.bits, -rank.source_mask, -rank.destination_mask
