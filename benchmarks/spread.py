"""Events from one host over a fat-tree of real switches: the subscriptions grow, and every copy is timed."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise

from benchmarks.frames import frames_to
from benchmarks.loads import Load
from benchmarks.wire import Sender, Tap, cores_parted, forget_decisions, received
from flowsieve.client.batch_packets import packets_of
from flowsieve.content.filter import Filter
from flowsieve.control.controller import Controller
from flowsieve.control.request import Op, Request
from flowsieve.control.state import ControlState, Settings
from flowsieve.header.address import Prefix
from flowsieve.header.encoding import encoding_of
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.lab.blueprint import HOST_INTERFACE
from flowsieve.lab.lab import Lab, running
from flowsieve.network.generators import fat_tree
from flowsieve.southbound.openflow.fabric import OpenFlowFabric
from flowsieve.southbound.openflow.switch_session import Timing
from flowsieve.southbound.openflow.threaded_switches import OpenFlowSwitches

ENCODING = encoding_of("ipv6")
SIZE = 126
DEFAULTS = Settings()
SUBSCRIBERS = 15  # hosts; their subscriptions come in turn
SETTLE_SECONDS, PATIENCE_SECONDS = 0.15, 5.0
PATIENT = Timing(answer=60, silence=60)  # compiling for seconds holds up the thread that hears the switches


class Spread:
    """One host publishes anything; the others subscribe."""

    def __init__(
        self, lab: Lab, load: Load, switches: OpenFlowSwitches, settings: Settings, size: int
    ) -> None:
        self._lab = lab
        self._size = size
        self._hosts = list(lab.topology.hosts)
        plan = RegularPlan.make(load.schema, room=ENCODING.room)
        self._controller = Controller(ControlState(lab.topology, plan, settings=settings), switches, ENCODING)
        everything = Filter.parse("True", load.schema)
        self._controller.submit([Request(Op.ADVERTISE, "all", self._hosts[0], everything)])
        self._requests = [
            Request(Op.SUBSCRIBE, f"s{i}", self._hosts[1 + i % SUBSCRIBERS], filter)
            for i, filter in enumerate(load.filters())
        ]
        self._served = 0
        packets = packets_of(load.events(), plan, ENCODING)
        addresses = [hi << 64 | lo for hi, lo in zip(packets.hi.tolist(), packets.lo.tolist(), strict=True)]
        own = lab.addresses(self._hosts[0])
        frames = frames_to(addresses, [Prefix.parse(own.ipv6).first], own.mac, size)
        self._sender = Sender(lab.namespace(self._hosts[0]), HOST_INTERFACE, frames)

    @classmethod
    @contextmanager
    def running(cls, load: Load, settings: Settings = DEFAULTS, size: int = SIZE) -> Iterator[Spread]:
        """On a lab of its own for the time of a `with` block."""
        with ExitStack() as stack:
            lab = stack.enter_context(running(fat_tree(4)))
            switches = stack.enter_context(
                OpenFlowSwitches(OpenFlowFabric(lab.switch_addresses, timing=PATIENT))
            )
            switches.wait_connected(30)
            stack.enter_context(cores_parted(lab))
            spread = cls(lab, load, switches, settings, size)
            stack.callback(spread._sender.close)
            yield spread

    def subscribe(self, count: int) -> None:
        """Have more hosts' subscriptions served, as one difference, until there are so many."""
        self._controller.submit(self._requests[self._served : count])
        self._served = count
        forget_decisions(self._lab)

    def entries(self) -> int:
        """Of the fullest table."""
        return max(len(self._controller.believed(switch)) for switch in self._lab.topology.switches)

    def delays(self, count: int, per_second: float) -> list[float]:
        """Microseconds from the publisher to each host that an event reaches, for every copy."""
        left, *came = self.times(count, per_second)
        return [(at - left[number]) / 1e3 for each in came for number, at in each.items() if number in left]

    def times(self, count: int, per_second: float) -> list[dict[int, int]]:
        """Send events; which of them left the publisher or came to a host, and when in nanoseconds, by host."""
        with ExitStack() as stack:
            taps = [
                stack.enter_context(Tap(self._lab.namespace(host), HOST_INTERFACE, 2 * count))
                for host in self._hosts
            ]
            self._sender.rewind()
            self._sender.send_paced(count, per_second)
            self._settle()
            return [tap.times(self._size) for tap in taps]

    def host_bytes(self) -> list[int]:
        """Bytes that each host's interface has received."""
        return [received(self._lab.namespace(host), HOST_INTERFACE)[0] for host in self._hosts]

    def link_bytes(self) -> int:
        """Bytes over all links between switches, in both directions."""
        inside = self._lab.switch_namespace
        return sum(
            received(inside, self._lab.interface(*end))[0]
            for link in self._lab.topology.links
            for end in ((link.a, link.b), (link.b, link.a))
        )

    def links_to(self, hosts: Iterable[int]) -> int:
        """How many links between switches the tree has from the publisher to some hosts, each counted once."""
        at = self._lab.topology.hosts
        tree = self._controller.state.trees.parts[0][1]
        ways = (tree.path(at[self._hosts[0]], at[self._hosts[host]]) for host in hosts)
        return len({pair for way in ways for pair in pairwise(way)})

    def _settle(self) -> None:
        """Wait until no host has received anything for a while."""
        last, deadline = -1, time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            now = sum(received(self._lab.namespace(host), HOST_INTERFACE)[1] for host in self._hosts)
            if now == last:
                return
            last = now
            time.sleep(SETTLE_SECONDS)
