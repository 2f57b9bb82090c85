"""Port numbers of real switches, translated here, and only here, to and from those of the topology.

Everything above counts the ports of a switch from 1, in the topology's order, without gaps: sets of ports are words
of bits. A switch may have other numbers for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from flowsieve.errors import SwitchError
from flowsieve.flow.detours import Arrival, Protection, Way
from flowsieve.flow.diff import FlowOp
from flowsieve.flow.entry import Action, Deliver, Flow, Output
from flowsieve.flow.entry_steps import EntrySteps, PortActions
from flowsieve.flow.guard import Guard, Refusals
from flowsieve.flow.others import Foreign, PortSetting
from flowsieve.flow.punt import ANY_PORT, Punt
from flowsieve.network.topology import Topology
from flowsieve.southbound.fabric import LiveSwitches, PortChanged, Report, SwitchEvent

NOWHERE = 0  # stands for every port that the topology does not have; no table should have it


class NumberedSwitches(LiveSwitches):
    """Live switches by the topology's ports; `topology` is asked each time, since networks grow.

    An answer that was asked for before the network grew is in the old ports: read again after growing.
    """

    def __init__(self, switches: LiveSwitches, topology: Callable[[], Topology]) -> None:
        self._switches = switches
        self._topology = topology
        self._acting: dict[str, tuple[object, PortActions, PortActions]] = {}

    def translated(self, report: Report) -> Report:
        """A listener that passes events on to `report` in the topology's ports, without those of other ports."""

        def heard(event: SwitchEvent) -> None:
            if not isinstance(event, PortChanged):
                report(event)
            elif (port := self._port_of(event.switch)(event.port)) is not None:
                report(replace(event, port=port))

        return heard

    async def apply(self, switch: str, ops: Sequence[FlowOp]) -> None:
        """Have a switch carry out a whole batch or nothing."""
        if isinstance(ops, EntrySteps):
            ops = ops.acting(self._actions_there(switch, ops.actions))
        elif (numbers := self._numbers(switch)) is not None:
            translate = _Translation(numbers.get)
            ops = [FlowOp(op.kind, translate(op.flow)) for op in ops]
        await self._switches.apply(switch, ops)

    def _actions_there(self, switch: str, actions: PortActions) -> PortActions:
        """What entries do that send out of ports, by the switch's own numbers; remembered while these stay."""
        own = self._topology().numbers.get(switch)
        if own is None:
            return actions
        known = self._acting.get(switch)
        if known is None or known[0] is not own or known[1] is not actions:
            translate = _Translation((self._numbers(switch) or {}).get)
            known = own, actions, PortActions.translated(actions, translate.actions)
            self._acting[switch] = known
        return known[2]

    async def read(self, switch: str) -> tuple[Flow, ...]:
        """The entries that a switch holds."""
        return self.told(switch, await self._switches.read(switch))

    async def look(self, switch: str) -> tuple[tuple[Flow, ...], int]:
        """The entries that `read` would give, and how many it would remove."""
        flows, strange = await self._switches.look(switch)
        return self.told(switch, flows), strange

    def told(self, switch: str, flows: Sequence[Flow]) -> tuple[Flow, ...]:
        """Entries of a switch in the topology's ports; ports that the topology does not have become `NOWHERE`.

        So whoever reads them sees that they are not as they should be, and can change them with all else at once.
        """
        if self._numbers(switch) is None:
            return tuple(flows)
        return tuple(map(_Translation(self._port_of(switch)), flows))

    def foreign(self, switch: str) -> tuple[Foreign, ...]:
        """The entries of others; what goes to ports that the topology does not have is none of its events."""
        there = self._switches.foreign(switch)
        if self._numbers(switch) is None:
            return there
        port_of = self._port_of(switch)
        return tuple(_renumbered(each, port_of) for each in there)

    async def settings(self, switch: str) -> Mapping[int, PortSetting]:
        """The ports of a switch that are not open, of those that the topology has."""
        there, port_of = await self._switches.settings(switch), self._port_of(switch)
        return {port: setting for number, setting in there.items() if (port := port_of(number)) is not None}

    async def ports(self, switch: str) -> Mapping[int, bool]:
        """The ports of a switch that the topology has, and whether each is up."""
        there, port_of = await self._switches.ports(switch), self._port_of(switch)
        return {port: up for number, up in there.items() if (port := port_of(number)) is not None}

    async def fence(self, switch: str, port: int, closed: bool) -> None:
        """Close a port, or open it again."""
        await self._switches.fence(switch, self._number(switch, port), closed)

    async def fences(self, switch: str) -> frozenset[int]:
        """The ports of a switch that are closed, of those that the topology has."""
        there, port_of = await self._switches.fences(switch), self._port_of(switch)
        return frozenset(port for number in there if (port := port_of(number)) is not None)

    async def protect(self, switch: str, protection: Protection) -> None:
        """Make what a switch does about dead links exactly this."""
        await self._switches.protect(switch, self.protection_there(switch, protection))

    def protection_there(self, switch: str, protection: Protection) -> Protection:
        """What a switch is to do about dead links, by the numbers that it has for its ports."""
        return _moved(protection, lambda port: self._number(switch, port))

    async def protection(self, switch: str, *, looking: bool = False) -> Protection:
        """What a switch does about dead links; what concerns ports that the topology does not have is left out."""
        there = await self._switches.protection(switch, looking=looking)
        return _moved(there, self._port_of(switch))

    async def punt(self, switch: str, punts: Sequence[Punt]) -> None:
        """Make the service entries of a switch exactly these."""
        await self._switches.punt(switch, self.numbered(switch, punts))

    def numbered(self, switch: str, punts: Sequence[Punt]) -> list[Punt]:
        """Punts by the switch's own port numbers."""
        return [punt if punt.port == ANY_PORT else punt.at(self._number(switch, punt.port)) for punt in punts]

    async def guard(self, switch: str, guard: Guard) -> None:
        """Make what a switch takes in exactly this."""
        await self._switches.guard(switch, self.guard_there(switch, guard))

    def guard_there(self, switch: str, guard: Guard) -> Guard:
        """A guard by the numbers that a switch has for its ports."""
        links = tuple(self._number(switch, port) for port in guard.links)
        gates = tuple(replace(gate, port=self._number(switch, gate.port)) for gate in guard.gates)
        return replace(guard, links=links, gates=gates)

    async def refusals(self, switch: str) -> Mapping[int, Refusals]:
        """What a switch has refused, at those ports that the topology has."""
        there, port_of = await self._switches.refusals(switch), self._port_of(switch)
        return {port: some for number, some in there.items() if (port := port_of(number)) is not None}

    async def send_packet(self, switch: str, port: int, data: bytes) -> None:
        """Have a switch send a packet out of a port."""
        await self._switches.send_packet(switch, self._number(switch, port), data)

    async def inject_packet(self, switch: str, port: int, data: bytes) -> None:
        """Have a switch take in a packet as if it had come in on a port."""
        await self._switches.inject_packet(switch, self._number(switch, port), data)

    def _numbers(self, switch: str) -> Mapping[int, int] | None:
        """The number of each port; None where they are the same."""
        own = self._topology().numbers.get(switch)
        return dict(enumerate(own.values(), 1)) if own is not None else None

    def _port_of(self, switch: str) -> Callable[[int], int | None]:
        """What gives the port of a number, or None where the topology has none."""
        numbers = self._numbers(switch)
        if numbers is None:
            return lambda same: same
        return {number: port for port, number in numbers.items()}.get

    def _number(self, switch: str, port: int) -> int:
        numbers = self._numbers(switch)
        if numbers is None:
            return port
        if port not in numbers:
            raise SwitchError(f"switch {switch} has {len(numbers)} ports in the topology, and none is {port}")
        return numbers[port]


def _renumbered(entry: Foreign, port_of: Callable[[int], int | None]) -> Foreign:
    """An entry of others in the topology's ports."""
    copies = [replace(copy, port=port) for copy in entry.copies if (port := port_of(copy.port)) is not None]
    in_port = entry.in_port
    if in_port is not None:
        in_port = port_of(in_port) or NOWHERE
    return replace(entry, copies=tuple(copies), in_port=in_port)


def _moved(protection: Protection, number: Callable[[int], int | None]) -> Protection:
    """The same with other port numbers; what has none is left out."""

    def passed(table: Mapping[Arrival, int]) -> dict[Arrival, int]:
        found = ((number(port), mark, number(out)) for (port, mark), out in table.items())
        return {Arrival(port, mark): out for port, mark, out in found if port is not None and out is not None}

    ways = ((number(port), mark, number(via)) for port, (mark, via) in protection.ways.items())
    return replace(
        protection,
        links=frozenset(there for port in protection.links if (there := number(port)) is not None),
        ways={port: Way(mark, via) for port, mark, via in ways if port is not None and via is not None},
        relays=passed(protection.relays),
        landings=passed(protection.landings),
    )


class _Translation:
    """Entries with other port numbers; lists of actions are translated once, since many entries share few of them."""

    def __init__(self, number: Callable[[int], int | None]) -> None:
        self._number = number
        self._known: dict[tuple[Action, ...], tuple[Action, ...]] = {}

    def __call__(self, flow: Flow) -> Flow:
        """The entry in other numbers."""
        actions = self.actions(flow.actions)
        return Flow(flow.match, flow.priority, actions, flow.owner, flow.table, flow.onward)

    def actions(self, actions: tuple[Action, ...]) -> tuple[Action, ...]:
        """What an entry does, in other numbers."""
        if actions not in self._known:
            self._known[actions] = self._translated(actions)
        return self._known[actions]

    def _translated(self, actions: tuple[Action, ...]) -> tuple[Action, ...]:
        """Those that readdress come last, each kind in the order of the ports, as `content_flow` has them.

        What goes nowhere is left out: an entry may be widened by it on the way to what it should be.
        """
        actions = tuple(each for each in actions if each.port != NOWHERE)
        new = [replace(each, port=port) for each in actions if (port := self._number(each.port)) is not None]
        lost: list[Action] = [Output(NOWHERE)] if len(new) < len(actions) else []
        return tuple(sorted([*lost, *new], key=lambda each: (isinstance(each, Deliver), each.port)))
