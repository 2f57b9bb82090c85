"""The embedded switches as a live southbound: they fail, restart and lose answers when told to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from itertools import permutations

from flowsieve.errors import GuardRefused, Refused, SwitchError, TableFull, Unacknowledged
from flowsieve.flow.detours import NO_PROTECTION, Protection, emulated
from flowsieve.flow.diff import FlowOp, OpKind
from flowsieve.flow.entry import Flow
from flowsieve.flow.guard import Guard, Refusals
from flowsieve.flow.others import Foreign, PortSetting
from flowsieve.flow.punt import Punt
from flowsieve.header.frame import parse
from flowsieve.network.mend import Edge
from flowsieve.southbound.embedded.network import EmbeddedNetwork
from flowsieve.southbound.fabric import Connected, Disconnected, PortChanged, PuntedPacket, SwitchEvent
from flowsieve.testing.punt_limits import HandOver


class EmbeddedFabric:
    """A LiveSwitches over an embedded network; `report` hears of switches, ports and packets.

    `deliver` gets the packets that a controller has sent to hosts.
    """

    def __init__(
        self,
        network: EmbeddedNetwork,
        report: Callable[[SwitchEvent], None],
        deliver: Callable[[str, bytes], None] = lambda host, data: None,
    ) -> None:
        self.network = network
        self.report = report
        self.deliver = deliver
        self.strangers: dict[str, tuple[Foreign, ...]] = {}  # entries of others, to be told as found
        self.hand_overs = {switch: HandOver() for switch in network.topology.switches}
        self.guards: dict[tuple[str, int], Guard] = {}  # by switch and owner
        self.guard_room = 1 << 30  # entries of a guard
        self._topology = network.topology
        self._connected: set[str] = set()
        self._stopped: set[str] = set()
        self._unread: set[str] = set()
        self._mute: set[str] = set()
        self._fences: dict[str, set[int]] = {switch: set() for switch in self._topology.switches}
        self._down: set[Edge] = set()
        self._protections: dict[str, Protection] = {}

    # What a controller asks of it.

    async def apply(self, switch: str, ops: Sequence[FlowOp]) -> None:
        """Carry out a whole batch or nothing."""
        await self._reach(switch)
        if switch in self._unread:
            raise Unacknowledged(switch=switch, reason="it was not read since it connected")
        before = self.network.read(switch)
        ticket = self.network.apply(switch, ops)
        self.network.settle()
        if ticket.error is not None:
            self._put_back(switch, before)
            if isinstance(ticket.error, TableFull):
                ticket.error.at = ticket.done
            raise ticket.error
        self._answer(switch)

    async def read(self, switch: str) -> tuple[Flow, ...]:
        """The entries that a switch holds."""
        await self._reach(switch)
        self._unread.discard(switch)
        return self.network.read(switch)

    async def look(self, switch: str) -> tuple[tuple[Flow, ...], int]:
        """The entries that a switch holds; it is not known by that."""
        await self._reach(switch)
        return self.network.read(switch), 0

    def foreign(self, switch: str) -> tuple[Foreign, ...]:
        """Nobody else is here, unless a test says so."""
        return self.strangers.get(switch, ())

    async def settings(self, switch: str) -> Mapping[int, PortSetting]:
        """The ports of a switch that are not open: its fences."""
        await self._reach(switch)
        return dict.fromkeys(self._fences[switch], PortSetting.NO_RECEIVE | PortSetting.NO_FORWARD)

    async def ports(self, switch: str) -> Mapping[int, bool]:
        """The ports of a switch, and whether each is up."""
        await self._reach(switch)
        linked = self._topology.linked(switch)
        there = {port: frozenset((switch, near)) not in self._down for port, near in enumerate(linked, 1)}
        return there | dict.fromkeys(range(len(linked) + 1, len(self._topology.neighbours(switch)) + 1), True)

    async def fence(self, switch: str, port: int, closed: bool) -> None:
        """Close a port, or open it again."""
        await self._reach(switch)
        if closed:
            self._fences[switch].add(port)
            self._protections[switch] = self._protections.get(switch, NO_PROTECTION).closed_at({port})
        else:
            self._fences[switch].discard(port)
        self._answer(switch)

    async def fences(self, switch: str) -> frozenset[int]:
        await self._reach(switch)
        return frozenset(self._fences[switch])

    async def protect(self, switch: str, protection: Protection) -> None:
        """Make what a switch does about dead links exactly this, but for ports that are closed."""
        await self._reach(switch)
        wanted = protection.closed_at(self._fences[switch])
        if wanted != self._protections.get(switch, NO_PROTECTION):
            self._protections[switch] = wanted
            self._answer(switch)

    async def protection(self, switch: str, *, looking: bool = False) -> Protection:
        await self._reach(switch)
        return self._protections.get(switch, NO_PROTECTION)

    async def punt(self, switch: str, punts: Sequence[Punt]) -> None:
        """Make the service entries of a switch exactly these."""
        await self._reach(switch)
        self.hand_overs[switch].set(punts, self.network.now)

    async def guard(self, switch: str, guard: Guard) -> None:
        """Note what a switch should take in; what hosts send here is not looked at: none of them lies."""
        await self._reach(switch)
        if guard.entries > self.guard_room:
            raise GuardRefused(switch=switch, reason=f"it has room for {self.guard_room} entries")
        self.guards[switch, guard.owner] = guard

    async def refusals(self, switch: str) -> Mapping[int, Refusals]:
        await self._reach(switch)
        guards = [guard for (where, _), guard in self.guards.items() if where == switch]
        return {gate.port: Refusals() for guard in guards for gate in guard.gates}

    async def send_packet(self, switch: str, port: int, data: bytes) -> None:
        """Have a switch send a packet out of a port."""
        await self._reach(switch)
        self._leave(switch, port, data)

    async def inject_packet(self, switch: str, port: int, data: bytes) -> None:
        """Have a switch take in a packet as if it had come in on a port: hand it over, or look it up in the tables."""
        await self._reach(switch)
        if switch not in self._stopped and port not in self._fences[switch]:
            self._take_in(switch, port, data)

    # Packets of hosts; those for the controller alone, as events go by the network itself.

    def receive(self, host: str, data: bytes) -> None:
        """A host sends a packet, whole, from its Ethernet header on."""
        switch = self._topology.attached[host]
        self._arrive(switch, self._topology.port(switch, host), data)

    def _arrive(self, switch: str, port: int, data: bytes) -> None:
        if switch in self._stopped or port in self._fences[switch]:
            return
        if self.hand_overs[switch].lets(data, port, self.network.now) and switch in self._connected:
            self.report(PuntedPacket(switch, port, data))

    def _take_in(self, switch: str, port: int, data: bytes) -> None:
        if any(punt.takes(data, port) for punt in self.hand_overs[switch].punts):
            self._arrive(switch, port, data)
            return
        frame, host = parse(data), self._topology.neighbour(switch, port)
        seen = len(self.network.deliveries)
        destination, source = (int.from_bytes(each) for each in (frame.destination, frame.source))
        self.network.send(host, destination, frame.family, data, source)
        self.network.settle()
        for delivery in self.network.deliveries[seen:]:
            self.deliver(delivery.host, data)

    def _leave(self, switch: str, port: int, data: bytes) -> None:
        if port in self._fences[switch] or not 1 <= port <= len(self._topology.neighbours(switch)):
            return
        far = self._topology.neighbour(switch, port)
        if far in self._topology.attached:
            self.deliver(far, data)
        elif frozenset((switch, far)) not in self._down:
            self._arrive(far, self._topology.port(far, switch), data)

    # Faults.

    def connect(self, switch: str) -> None:
        """Have a switch connect, if it runs and has not."""
        if switch not in self._connected | self._stopped:
            self._connected.add(switch)
            self._unread.add(switch)
            self.report(Connected(switch))

    def disconnect(self, switch: str, reason: str = "the connection was cut") -> None:
        """Cut a connection; the switch goes on forwarding."""
        if switch in self._connected:
            self._connected.discard(switch)
            self.report(Disconnected(switch, reason))

    def lose_answer(self, switch: str) -> None:
        """Have the answer to the next batch or fence lost, and the connection with it; it is carried out."""
        self._mute.add(switch)

    def lose_no_more(self) -> None:
        """Have all answers arrive from now on."""
        self._mute.clear()

    def restart(self, switch: str) -> None:
        """A switch begins anew, with an empty table, no service entries and no fences."""
        self.disconnect(switch, "it restarted")
        self._stopped.discard(switch)
        self._put_back(switch, ())
        self._fences[switch].clear()
        self._protections.pop(switch, None)
        self.hand_overs[switch] = HandOver()
        self.guards = {key: guard for key, guard in self.guards.items() if key[0] != switch}
        self.connect(switch)

    def stop(self, switch: str) -> None:
        """A switch dies, and its links with it."""
        self.disconnect(switch, "it died")
        self._stopped.add(switch)
        self._put_back(switch, ())
        for near in self._topology.linked(switch):
            self.set_link(switch, near, up=False)

    def set_link(self, a: str, b: str, up: bool) -> None:
        """Pull or plug a cable; both ends tell."""
        edge = frozenset((a, b))
        if up:
            self._down.discard(edge)
        else:
            self._down.add(edge)
        for near, far in ((a, b), (b, a)):
            if near in self._connected:
                self.report(PortChanged(near, self._topology.port(near, far), up))

    @property
    def closed(self) -> frozenset[Edge]:
        """The links that carry nothing now: the fenced ones, and those that are down and that nothing leads around.

        One counts as carrying if packets get around it in one direction.
        """
        fenced = {
            frozenset((switch, self._topology.neighbour(switch, port)))
            for switch, ports in self._fences.items()
            for port in ports
        }
        unusable = self._down | fenced
        around = {
            frozenset((near, far))
            for edge in self._down
            for near, far in permutations(edge)
            if emulated(self._topology, self._protections, near, far, unusable)
        }
        return frozenset(unusable - around)

    async def _reach(self, switch: str) -> None:
        await asyncio.sleep(0)
        if switch not in self._connected:
            raise SwitchError(f"switch {switch} is not connected")

    def _answer(self, switch: str) -> None:
        """A switch says that it has done what it was asked for."""
        if switch in self._mute:
            self._mute.discard(switch)
            self.disconnect(switch, "the answer got lost")
            raise Unacknowledged(switch=switch, reason="the answer got lost")

    def _put_back(self, switch: str, flows: Sequence[Flow]) -> None:
        """Give a switch a table, whatever it holds."""
        there = self.network.read(switch)
        ops = [FlowOp(OpKind.REMOVE, flow) for flow in there]
        ops += [FlowOp(OpKind.INSTALL, flow) for flow in flows]
        ticket = self.network.apply(switch, ops)
        self.network.settle()
        if isinstance(ticket.error, Refused):
            raise ticket.error
