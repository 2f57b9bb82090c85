"""A network in this process: switches that behave as OpenFlow's do, links with latency, hosts, a clock.

Packets go one by one on the virtual clock (`send`, `advance`, `settle`), or by the million through the tables
as they are at the moment (`deliver`).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from flowsieve.errors import BadInput, BadTopology
from flowsieve.flow.diff import FlowOp
from flowsieve.flow.entry import Flow, FlowKey
from flowsieve.flow.flat import Words
from flowsieve.flow.wiring import HOP_LIMIT, Wiring
from flowsieve.header.address import WIDTH, address_text
from flowsieve.network.topology import Topology
from flowsieve.southbound.embedded.batch import Batch, JoinedTables
from flowsieve.southbound.embedded.clock import VirtualClock
from flowsieve.southbound.embedded.masked_walk import MaskedPackets, walk_masked
from flowsieve.southbound.embedded.switch import Switch
from flowsieve.southbound.embedded.worker import Worker
from flowsieve.southbound.fabric import Ticket

Figure = TypeVar("Figure", int, float)


@dataclass(frozen=True, slots=True)
class _Packet:
    """What travels: two addresses, and something that only hosts look into."""

    family: int
    source: int
    destination: int
    payload: object


@dataclass(frozen=True, slots=True)
class Delivery:
    """A copy of a packet that a host received, and how many switches it has passed."""

    host: str
    dst: str
    payload: object
    at: float
    hops: int


class EmbeddedNetwork:
    """The switches of a topology, as a southbound.

    `capacity` bounds the entries of a table and `updates_per_second` slows a switch down; either is one
    figure for all switches, or a figure for some of them. A slow switch carries out its operations one after
    the other, and packets meet the table as it is at that moment; the others take no time.
    """

    def __init__(
        self,
        topology: Topology,
        capacity: int | Mapping[str, int] | None = None,
        updates_per_second: float | Mapping[str, float] | None = None,
        hop_limit: int = HOP_LIMIT,
    ) -> None:
        self.topology = topology
        self.hop_limit = hop_limit
        self.deliveries: list[Delivery] = []
        self.expired = 0
        self._clock = VirtualClock()
        bounds = _per_switch(topology, "capacity", capacity, least=0)
        rates = _per_switch(topology, "updates per second", updates_per_second, least=1e-6)
        self._workers = {
            name: Worker(
                Switch(name, len(topology.neighbours(name)), bounds.get(name)),
                self._clock,
                1 / rates[name] if name in rates else 0.0,
            )
            for name in topology.switches
        }
        self._switches = [worker.switch for worker in self._workers.values()]
        self._wiring = wiring = Wiring.of(topology)
        self._numbers = {host: number for number, host in enumerate(wiring.hosts)}
        self._slot_packets = np.zeros(wiring.slots, np.int64)
        self._latency = [
            topology.latency_ms(wiring.near(slot), wiring.beyond(slot)) / 1000 for slot in range(wiring.slots)
        ]
        self._joined: dict[int, JoinedTables] = {}

    # What a controller asks of it.

    def apply(self, switch: str, ops: Iterable[FlowOp]) -> Ticket:
        """Have a switch carry out operations; a slow one works them off as the clock goes on."""
        return self._worker(switch).take(ops)

    def read(self, switch: str) -> tuple[Flow, ...]:
        """The entries that a switch holds now."""
        return self._worker(switch).switch.flows

    # Time.

    @property
    def now(self) -> float:
        """Seconds since the network began."""
        return self._clock.now

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._clock.advance(seconds)

    def settle(self) -> None:
        """Let time pass until no packet and no operation is under way."""
        self._clock.settle()

    # Packets.

    def send(
        self, host: str, address: int | str, family: int = 6, payload: object = None, source: int = 0
    ) -> None:
        """Have a host send a packet to an address now; one in text brings its own family."""
        if isinstance(address, str):
            try:
                ip = ipaddress.ip_address(address)
            except ValueError:
                raise BadInput(f"{address!r} is not an address such as 'ff0e:c800::'") from None
            family, address = ip.version, int(ip)
        for number in (address, source):
            if family not in WIDTH or number >> WIDTH[family]:
                raise BadInput(f"{number:#x} is not an address of family {family}; the families are 4 and 6")
        home = int(self._wiring.home[self._host_numbers([host])[0]])
        arrive = partial(self._arrive, home, _Packet(family, source, address, payload), 0)
        self._clock.after(self._latency[home], arrive)

    def deliver(
        self,
        publishers: NDArray[np.integer] | Sequence[str],
        hi: Words,
        lo: Words,
        family: int = 6,
        sources: Sequence[int] | None = None,
    ) -> Batch:
        """Send many packets through the tables as they are, taking no time.

        Each has its publisher (the host's name, or its number in the topology's order) and its destination as a
        key (see `flow.flat`). The `sources` matter to entries that look at them.
        """
        start = self._wiring.home[self._host_numbers(publishers)]
        if not len(start) == len(hi) == len(lo):
            raise BadInput(f"{len(start)} publishers for {len(hi)} and {len(lo)} halves of addresses")
        # As the kernel is compiled for.
        hi, lo = (np.require(half, np.uint64, ["C", "W"]) for half in (hi, lo))
        joined, limit = self._joined_tables(family), self.hop_limit
        if joined is None:
            packets = MaskedPackets(start, hi, lo, sources, family)
            batch = walk_masked(self._wiring, self._switches, packets, limit, self._slot_packets)
        else:
            batch, entry_packets = joined.walk(start, hi, lo, limit, self._slot_packets)
            for switch, begin, end in zip(self._switches, joined.rows, joined.rows[1:], strict=False):
                switch.count_rows(entry_packets[begin:end])
        self.expired += batch.expired
        return batch

    # What was counted.

    def peak(self, switch: str) -> int:
        """The largest number of entries that a switch ever held."""
        return self._worker(switch).switch.peak

    def packets(self, switch: str) -> dict[FlowKey, int]:
        """How many packets each entry of a switch has matched."""
        return self._worker(switch).switch.packets

    @property
    def link_packets(self) -> dict[tuple[str, str], int]:
        """How many packets went from one switch to another."""
        wiring = self._wiring
        return {
            (wiring.near(slot), wiring.beyond(slot)): int(self._slot_packets[slot])
            for slot in np.flatnonzero(wiring.far >= 0).tolist()
        }

    def _arrive(self, slot: int, packet: _Packet, passed: int) -> None:
        """A packet comes in at a switch, having passed others."""
        number = int(self._wiring.at[slot])
        switch = self._switches[number]
        met = switch.met(packet.family, packet.destination, packet.source)
        for flow in met:
            switch.count(flow)
        if any(flow.actions for flow in met) and self.hop_limit - passed <= 1:
            self.expired += 1
            return
        for port in (port for flow in met for port in flow.ports):
            out = int(self._wiring.first[number]) + port - 1
            if out != slot:
                self._slot_packets[out] += 1
                self._clock.after(self._latency[out], partial(self._cross, out, packet, passed + 1))

    def _cross(self, slot: int, packet: _Packet, passed: int) -> None:
        """A packet has left a switch and reaches the other end of the link."""
        far = int(self._wiring.far[slot])
        if far >= 0:
            self._arrive(far, packet, passed)
        else:
            dst = address_text(packet.family, packet.destination)
            self.deliveries.append(
                Delivery(self._wiring.hosts[-1 - far], dst, packet.payload, self.now, passed)
            )

    def _joined_tables(self, family: int) -> JoinedTables | None:
        """All tables joined; None if one of them cannot be laid out flat."""
        tables = [flat for switch in self._switches if (flat := switch.flat(family)) is not None]
        if len(tables) < len(self._switches):
            return None
        known = self._joined.get(family)
        if known is None or any(new is not old for new, old in zip(tables, known.tables, strict=True)):
            entries = [len(switch.flows) for switch in self._switches]
            known = self._joined[family] = JoinedTables.of(self._wiring, tables, entries)
        return known

    def _worker(self, switch: str) -> Worker:
        if switch not in self._workers:
            self.topology.neighbours(switch)  # says which switch would be right
        return self._workers[switch]

    def _host_numbers(self, publishers: NDArray[np.integer] | Sequence[str]) -> NDArray[np.int64]:
        if isinstance(publishers, np.ndarray) and publishers.dtype.kind in "iu":
            wrong = (publishers < 0) | (publishers >= len(self._numbers))
            if wrong.any():
                raise BadInput(
                    f"there is no host number {publishers[wrong][0]}; there are {len(self._numbers)} hosts"
                )
            return publishers.astype(np.int64, copy=False)
        try:
            return np.array([self._numbers[host] for host in publishers], dtype=np.int64)
        except KeyError as error:
            self.topology.endpoint(error.args[0])  # says which host would be right
            raise


def _per_switch(
    topology: Topology, what: str, figure: Figure | Mapping[str, Figure] | None, least: float
) -> dict[str, Figure]:
    """The figure of each switch that has one."""
    if figure is None:
        return {}
    figures = figure if isinstance(figure, Mapping) else dict.fromkeys(topology.switches, figure)
    for switch, value in figures.items():
        topology.neighbours(switch)  # says which switch would be right
        if not value >= least:
            raise BadTopology(f"switch {switch} has {what} {value}; right is {least} or more")
    return dict(figures)
