"""One switch: its table and counters, as OpenFlow 1.4 has them."""

from __future__ import annotations

from bisect import insort

import numpy as np
from numpy.typing import NDArray

from flowsieve.errors import SwitchError, TableFull
from flowsieve.flow.diff import FlowOp, OpKind
from flowsieve.flow.entry import Flow, Match
from flowsieve.flow.flat import FlatTable, FlowColumns, flatten
from flowsieve.header.address import WIDTH

Rank = tuple[int, int, int]  # priority, prefix length, family


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
        # Entries of one rank exclude each other, so a look-up asks each rank once, best first.
        self._ranks: list[Rank] = []
        self._of_rank: dict[Rank, dict[int, Flow]] = {}
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

    def look_up(self, family: int, address: int) -> Flow | None:
        """The entry that a packet meets; the twin of `flow.flat.look_up`."""
        for rank in self._ranks:
            _, length, of_family = rank
            if of_family == family:
                found = self._of_rank[rank].get(address >> (WIDTH[family] - length))
                if found is not None:
                    return found
        return None

    def count(self, flow: Flow, packets: int = 1) -> None:
        """Note that packets have matched an entry."""
        self._packets[flow.key] += packets

    def count_rows(self, packets: NDArray[np.int64]) -> None:
        """Note how many packets have matched each of `flows`."""
        self._row_packets = packets if self._row_packets is None else self._row_packets + packets

    def flat(self, family: int) -> FlatTable:
        """The table laid out flat; its rows are `flows`. Made anew only after a change."""
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
                    f"switch {self.name} has no port {port} for {flow.match.destination}; "
                    f"its ports are 1 to {self.ports}"
                )
        if what := flow.flaw:
            raise SwitchError(
                f"switch {self.name} cannot do what is asked for {flow.match.destination}: {what}"
            )
        if len(set(ports)) < len(ports):
            raise SwitchError(
                f"switch {self.name} is to send {flow.match.destination} twice out of one port: {ports}"
            )

    def _put_in(self, flow: Flow) -> None:
        self._change()
        rank = _rank(flow)
        if rank not in self._of_rank:
            self._of_rank[rank] = {}
            insort(self._ranks, rank, key=lambda known: (-known[0], -known[1]))
        self._of_rank[rank][flow.match.destination.bits] = flow
        self._flows[flow.key] = flow
        self._packets.setdefault(flow.key, 0)
        self.peak = max(self.peak, len(self._flows))

    def _take_out(self, key: tuple[Match, int]) -> None:
        self._change()
        flow = self._flows.pop(key)
        del self._packets[key]
        rank = _rank(flow)
        del self._of_rank[rank][flow.match.destination.bits]
        if not self._of_rank[rank]:
            del self._of_rank[rank]
            self._ranks.remove(rank)

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


def _rank(flow: Flow) -> Rank:
    prefix = flow.match.destination
    return flow.priority, prefix.length, prefix.family
