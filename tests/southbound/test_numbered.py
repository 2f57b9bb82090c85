"""Switches with port numbers of their own look as those that count from 1."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from flowsieve.control.switches import Connected, PortChanged
from flowsieve.flow.diff import FlowOp, Kind
from flowsieve.flow.entry import Deliver, Flow, Match, Output
from flowsieve.header.address import Prefix
from flowsieve.network.topology import Topology
from flowsieve.southbound.numbered import NumberedSwitches

NETWORK = Topology.make(
    [("s1", "s2")], {"h1": "s1", "h2": "s1"}, numbers={"s1": {"s2": 30, "h1": 10, "h2": 20}}
)
MATCH = Match(Prefix.parse("ff0e::/16"))
OWN = Prefix.parse("ff02::1/128")


class Recorder:
    """Notes what it is asked, and answers as it was told to."""

    def __init__(self) -> None:
        self.asked: list[object] = []
        self.flows: tuple[Flow, ...] = ()

    async def apply(self, switch: str, ops: Sequence[FlowOp]) -> None:
        self.asked.append(("apply", switch, tuple(ops)))

    async def read(self, switch: str) -> tuple[Flow, ...]:
        return self.flows

    async def ports(self, switch: str) -> dict[int, bool]:
        return {10: True, 20: False, 30: True, 40: True}

    async def fence(self, switch: str, port: int, closed: bool) -> None:
        self.asked.append(("fence", switch, port, closed))

    async def fences(self, switch: str) -> frozenset[int]:
        return frozenset({30, 40})

    async def send_packet(self, switch: str, port: int, data: bytes) -> None:
        self.asked.append(("send", switch, port, data))


def flow(*actions: Output | Deliver) -> Flow:
    return Flow(MATCH, 1000, actions)


def test_all_that_is_said_and_heard_is_in_the_ports_of_the_topology() -> None:
    async def story() -> None:
        below = Recorder()
        switches = NumberedSwitches(below, lambda: NETWORK)  # type: ignore[arg-type]
        await switches.apply(
            "s1", [FlowOp(Kind.INSTALL, flow(Output(1), Deliver(2, 1, OWN), Deliver(3, 2, OWN)))]
        )
        real = flow(Output(30), Deliver(10, 1, OWN), Deliver(20, 2, OWN))
        assert below.asked.pop() == ("apply", "s1", (FlowOp(Kind.INSTALL, real),))
        below.flows = (real, flow(Deliver(20, 2, OWN), Deliver(10, 1, OWN)))
        assert await switches.read("s1") == (
            flow(Output(1), Deliver(2, 1, OWN), Deliver(3, 2, OWN)),
            flow(Deliver(2, 1, OWN), Deliver(3, 2, OWN)),
        )
        assert below.asked == []
        assert await switches.ports("s1") == {1: True, 2: True, 3: False}
        assert await switches.fences("s1") == {1}
        await switches.fence("s1", 1, True)
        await switches.send_packet("s1", 3, b"x")
        assert below.asked == [("fence", "s1", 30, True), ("send", "s1", 20, b"x")]
        assert switches.heard(PortChanged("s1", 20, False)) == PortChanged("s1", 3, False)
        assert switches.heard(PortChanged("s1", 40, False)) is None
        assert switches.heard(PortChanged("s2", 7, False)) == PortChanged("s2", 7, False)
        assert switches.heard(Connected("s1")) == Connected("s1")

    asyncio.run(story())


def test_entries_to_ports_of_no_topology_are_removed_as_they_are() -> None:
    async def story() -> None:
        below = Recorder()
        switches = NumberedSwitches(below, lambda: NETWORK)  # type: ignore[arg-type]
        below.flows = (flow(Output(30)), flow(Output(30), Output(40)))
        assert switches.told("s1", below.flows) == ((flow(Output(1)),), (flow(Output(30), Output(40)),))
        assert below.asked == []
        assert await switches.read("s1") == (flow(Output(1)),)
        assert below.asked == [("apply", "s1", (FlowOp(Kind.REMOVE, flow(Output(30), Output(40))),))]
        below.flows = (flow(Output(9)),)
        assert await switches.read("s2") == below.flows  # it counts as the topology does

    asyncio.run(story())
