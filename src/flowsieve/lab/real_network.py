"""A lab as a network to play scenarios on: real switches under a controller, real packets between hosts."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from flowsieve.errors import SwitchError
from flowsieve.flow.diff import FlowOp
from flowsieve.flow.entry import Flow
from flowsieve.flow.flat import Words
from flowsieve.header.address import WIDTH
from flowsieve.lab.blueprint import FLOW_TABLE
from flowsieve.lab.counters import Counters, PortCount
from flowsieve.lab.hosts import Hosts
from flowsieve.lab.lab import Lab, running
from flowsieve.lab.machine import carry_out
from flowsieve.network.topology import Topology
from flowsieve.southbound.embedded.batch import Batch
from flowsieve.southbound.fabric import Ticket
from flowsieve.southbound.openflow.fabric import OpenFlowFabric
from flowsieve.southbound.openflow.threaded_switches import OpenFlowSwitches

UNDER_WAY = 128  # packets at once; the queue of a switch's port has room for some more
CONNECT_SECONDS = 30.0
_PAYLOAD = struct.Struct("!8sIQ")  # whose it is, number of the batch, number of the packet in it


class RealNetwork:
    """The switches of a lab, as a southbound, and its hosts; what `EmbeddedNetwork` is in this process."""

    def __init__(self, lab: Lab, switches: OpenFlowSwitches, hosts: Hosts) -> None:
        self.topology = topology = lab.topology
        self._switches = switches
        self._hosts = hosts
        self._counters = Counters(lab)
        self._links = {
            pair: lab.interface(*pair)
            for link in topology.links
            for pair in ((link.a, link.b), (link.b, link.a))
        }
        self._host_ports = [lab.interface(switch, host) for host, switch in topology.hosts.items()]
        self._start = self._last = self._counters.settled()
        self._heard = [0] * len(self._host_ports)
        self._link_packets = dict.fromkeys(self._links, 0)
        self._mark = os.urandom(8)
        self._batches = 0

    # What a controller asks of it.

    def apply(self, switch: str, ops: Iterable[FlowOp]) -> Ticket:
        """Have a switch carry out operations."""
        return self._switches.apply(switch, ops)

    def read(self, switch: str) -> tuple[Flow, ...]:
        """The entries that a switch holds now."""
        return self._switches.read(switch)

    def settle(self) -> None:
        """Wait until every operation is answered. No packet is under way between two calls of `deliver`."""
        self._switches.settle()

    # Packets.

    def deliver(
        self,
        publishers: NDArray[np.integer],
        hi: Words,
        lo: Words,
        family: int = 6,
        sources: Sequence[int] | None = None,
    ) -> Batch:
        """Have hosts (by their number) send packets, each with its address as a key; waits for all copies.

        They are sent from the `sources`, or from their hosts' own addresses. Raises an error if a packet was lost on
        the way. Copies that run out of hops are not counted.
        """
        self._batches += 1
        packets, got_by = [np.zeros(0, np.int64)], [np.zeros(0, np.int32)]
        shift = 128 - WIDTH[family]
        for begin in range(0, len(publishers), UNDER_WAY):
            window = slice(begin, begin + UNDER_WAY)
            rows = zip(publishers[window].tolist(), hi[window].tolist(), lo[window].tolist(), strict=True)
            for packet, (host, high, low) in enumerate(rows, begin):
                payload = _PAYLOAD.pack(self._mark, self._batches, packet)
                source = None if sources is None else sources[packet]
                self._hosts.send(host, family, (high << 64 | low) >> shift, payload, source)
            counts = self._counters.settled()
            self._check_sent(publishers[window], counts)
            self._count_links(counts)
            for host in range(len(self._host_ports)):
                numbers = self._collect(host, counts)
                packets.append(np.array(numbers, np.int64))
                got_by.append(np.full(len(numbers), host, np.int32))
            self._last = counts
        return _batch(len(publishers), np.concatenate(packets), np.concatenate(got_by))

    @property
    def link_packets(self) -> dict[tuple[str, str], int]:
        """How many packets went from one switch to another."""
        return dict(self._link_packets)

    def _check_sent(self, publishers: NDArray[np.integer], counts: dict[str, PortCount]) -> None:
        """Hosts also speak by themselves, now and then: their switch gets all that they were to send, or more."""
        for host, wanted in zip(*np.unique(publishers, return_counts=True), strict=True):
            port = self._host_ports[host]
            reached = counts[port].received - self._last[port].received
            if reached < wanted:
                name = list(self.topology.hosts)[host]
                raise SwitchError(
                    f"of {wanted} packets that host {name!r} sent, {reached} reached its switch"
                )

    def _count_links(self, counts: dict[str, PortCount]) -> None:
        for pair, interface in self._links.items():
            self._link_packets[pair] += counts[interface].sent - self._last[interface].sent

    def _collect(self, host: int, counts: dict[str, PortCount]) -> list[int]:
        """The numbers of the packets of this batch that have reached a host since we last looked."""
        port = self._host_ports[host]
        heard = counts[port].sent - self._start[port].sent
        payloads = list(self._hosts.receive(host, heard - self._heard[host]))
        self._heard[host] = heard
        whole = (_PAYLOAD.unpack(payload) for payload in payloads if len(payload) == _PAYLOAD.size)
        return [packet for mark, batch, packet in whole if (mark, batch) == (self._mark, self._batches)]


@contextmanager
def real_network(topology: Topology, capacity: int | None = None) -> Iterator[RealNetwork]:
    """A lab for the time of a `with` block, connected; `capacity` bounds the entries of each table."""
    with running(topology) as lab:
        if capacity is not None:
            bound_tables(lab, capacity)
        with (
            Hosts(lab) as hosts,
            OpenFlowSwitches(OpenFlowFabric(lab.switch_addresses, control=f"unix:{lab.control}")) as switches,
        ):
            switches.wait_connected(CONNECT_SECONDS)
            yield RealNetwork(lab, switches, hosts)


def bound_tables(lab: Lab, capacity: int) -> None:
    """Have the switches of a lab take so many entries and no more."""
    words = ["ovs-vsctl", f"--db=unix:{lab.database}", "--id=@table"]
    words += ["create", "flow_table", FLOW_TABLE, f"flow_limit={capacity}", "overflow_policy=refuse"]
    for switch in lab.topology.switches:
        words += ["--", "set", "bridge", lab.bridge(switch), "flow_tables:1=@table"]
    carry_out(words, f"the switches take no bound of {capacity} entries")


def _batch(packets: int, packet: NDArray[np.int64], host: NDArray[np.int32]) -> Batch:
    """Copies in the order of the packets, then of the hosts."""
    order = np.lexsort((host, packet))
    rows = np.concatenate([[0], np.cumsum(np.bincount(packet, minlength=packets))])
    return Batch(rows.astype(np.int64), host[order], expired=0)
