"""One real switch between a host that sends and others that receive: tables put in and out, frames sent and timed."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from benchmarks.frames import Frames, frames_to
from benchmarks.wire import Sender, Tap, cores_parted, forget_decisions, received
from flowsieve.flow.diff import FlowOp, OpKind
from flowsieve.flow.entry import Flow
from flowsieve.flow.guard import Guard
from flowsieve.header.address import Prefix
from flowsieve.header.encoding import encoding_of
from flowsieve.lab.blueprint import HOST_INTERFACE
from flowsieve.lab.lab import Lab, running
from flowsieve.network.topology import Topology
from flowsieve.southbound.openflow.fabric import OpenFlowFabric
from flowsieve.southbound.openflow.threaded_switches import OpenFlowSwitches

ENCODING = encoding_of("ipv6")
SWITCH, FROM, TO = "s1", "h0", "h1"
TOPOLOGY = Topology.make([], {FROM: SWITCH, TO: SWITCH}, switches=[SWITCH])
OUT = TOPOLOGY.port(SWITCH, TO)
SETTLE_SECONDS, PATIENCE_SECONDS = 0.15, 5.0


class Bridge:
    """A lab of one switch, and those of its hosts that receive."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self._receivers = [host for host in lab.topology.hosts if host != FROM]

    def frames(self, addresses: Sequence[int], size: int, sources: Sequence[int] = ()) -> Frames:
        """A frame to each address, from the sender's own or from other ones."""
        own = self.lab.addresses(FROM)
        return frames_to(addresses, sources or [Prefix.parse(own.ipv6).first], own.mac, size)

    @contextmanager
    def sending(self, frames: Frames) -> Iterator[Sender]:
        sender = Sender(self.lab.namespace(FROM), HOST_INTERFACE, frames)
        try:
            yield sender
        finally:
            sender.close()

    @contextmanager
    def table(
        self, flows: Sequence[Flow], decrement: bool = True, guard: Guard | None = None
    ) -> Iterator[None]:
        """For the time of a `with` block, the switch has these entries, and nothing cached from before.

        With `decrement` they take one off a packet's hop limit, as content flows do; else they just output. The `guard`
        says what the switch takes in; by default everything.
        """
        where = {SWITCH: f"unix:{self.lab.management(SWITCH)}"}
        with OpenFlowSwitches(OpenFlowFabric(where, decrement=decrement)) as switches:
            switches.wait_connected()
            switches.call(switches.fabric.guard(SWITCH, guard or Guard(ENCODING.tag.group)))
            _change(switches, flows, OpKind.INSTALL)
            try:
                forget_decisions(self.lab)
                yield
            finally:
                _change(switches, flows, OpKind.REMOVE)

    def arrived(self) -> int:
        """Packets that the interfaces of the hosts that receive have received."""
        return sum(received(self.lab.namespace(host), HOST_INTERFACE)[1] for host in self._receivers)

    def settle(self) -> None:
        """Wait until no packet has come for a while."""
        last, deadline = -1, time.monotonic() + PATIENCE_SECONDS
        while (now := self.arrived()) != last and time.monotonic() < deadline:
            last = now
            time.sleep(SETTLE_SECONDS)

    def host_delays(self, sender: Sender, count: int, per_second: float) -> tuple[float, list[float]]:
        """The rate at which so many frames were sent, and microseconds from host to host of those that came."""
        hosts = [(self.lab.namespace(host), HOST_INTERFACE) for host in (FROM, TO)]
        with ExitStack() as stack:
            near, far = (stack.enter_context(Tap(*end, 2 * count)) for end in hosts)
            return self._timed(sender, count, per_second, near, far)

    def switch_delays(self, sender: Sender, count: int, per_second: float) -> tuple[float, list[float]]:
        """The same from the switch's port in to its port out: what the switch itself takes."""
        inside = self.lab.switch_namespace
        with ExitStack() as stack:
            near, far = (
                stack.enter_context(Tap(inside, self.lab.interface(SWITCH, host), 2 * count))
                for host in (FROM, TO)
            )
            return self._timed(sender, count, per_second, near, far)

    def _timed(
        self, sender: Sender, count: int, per_second: float, near: Tap, far: Tap
    ) -> tuple[float, list[float]]:
        sender.rewind()
        rate = sender.send_paced(count, per_second)
        self.settle()
        left, came = near.times(sender.size), far.times(sender.size)
        return rate, [(came[number] - left[number]) / 1e3 for number in came if number in left]


def _change(switches: OpenFlowSwitches, flows: Sequence[Flow], kind: OpKind) -> None:
    ticket = switches.apply(SWITCH, [FlowOp(kind, flow) for flow in flows])
    switches.settle()
    if ticket.done != len(flows):
        raise RuntimeError(f"the switch did {ticket.done} of {len(flows)} operations: {ticket.error}")


@contextmanager
def bridge(topology: Topology = TOPOLOGY) -> Iterator[Bridge]:
    """A bridge for the time of a `with` block."""
    with running(topology) as lab, cores_parted(lab):
        yield Bridge(lab)
