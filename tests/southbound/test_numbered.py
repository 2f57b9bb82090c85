"""Switches with port numbers of their own look as those that count from 1."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.dispatcher import Dispatcher
from flowsieve.control.request import Op, Request
from flowsieve.control.state import ControlState
from flowsieve.flow.diff import FlowOp, OpKind
from flowsieve.flow.entry import Deliver, Flow, Output
from flowsieve.flow.last_hop import deliveries_of
from flowsieve.flow.others import Foreign, PortSetting, SentCopy
from flowsieve.header.address import Prefix
from flowsieve.header.encoding import encoding_of
from flowsieve.header.match import PrefixMatch
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.network.topology import Topology
from flowsieve.southbound.embedded.network import EmbeddedNetwork
from flowsieve.southbound.fabric import Connected, PortChanged, SwitchEvent
from flowsieve.southbound.numbered import NOWHERE, NumberedSwitches
from flowsieve.testing.embedded_fabric import EmbeddedFabric

NETWORK = Topology.make(
    [("s1", "s2")], {"h1": "s1", "h2": "s1"}, numbers={"s1": {"s2": 30, "h1": 10, "h2": 20}}
)
MATCH = PrefixMatch(Prefix.parse("ff0e::/16"))
OWN = Prefix.parse("ff02::1/128")
SCHEMA = Schema.parse({"a": {"type": "int", "min": 0, "max": 15}})
ENCODING = encoding_of("ipv6")


class Recorder:
    """Notes what it is asked, and answers as it was told to."""

    def __init__(self) -> None:
        self.asked: list[object] = []
        self.flows: tuple[Flow, ...] = ()

    async def apply(self, switch: str, ops: Sequence[FlowOp]) -> None:
        self.asked.append(("apply", switch, tuple(ops)))

    async def read(self, switch: str) -> tuple[Flow, ...]:
        return self.flows

    def foreign(self, switch: str) -> tuple[Foreign, ...]:
        return (
            Foreign(3000, "one", in_port=20, copies=(SentCopy(30), SentCopy(40, 7))),
            Foreign(9, "other", in_port=40, copies=(SentCopy(10),)),
        )

    async def settings(self, switch: str) -> dict[int, PortSetting]:
        return {20: PortSetting.NO_FORWARD, 40: PortSetting.DOWN}

    async def ports(self, switch: str) -> dict[int, bool]:
        return {10: True, 20: False, 30: True, 40: True}

    async def fence(self, switch: str, port: int, closed: bool) -> None:
        self.asked.append(("fence", switch, port, closed))

    async def fences(self, switch: str) -> frozenset[int]:
        return frozenset({30, 40})

    async def inject_packet(self, switch: str, port: int, data: bytes) -> None:
        self.asked.append(("inject", switch, port, data))

    async def send_packet(self, switch: str, port: int, data: bytes) -> None:
        self.asked.append(("send", switch, port, data))


def flow(*actions: Output | Deliver) -> Flow:
    return Flow(MATCH, 1000, actions)


def test_all_that_is_said_and_heard_is_in_the_ports_of_the_topology() -> None:
    async def story() -> None:
        below = Recorder()
        switches = NumberedSwitches(below, lambda: NETWORK)  # type: ignore[arg-type]
        await switches.apply(
            "s1", [FlowOp(OpKind.INSTALL, flow(Output(1), Deliver(2, 1, OWN), Deliver(3, 2, OWN)))]
        )
        real = flow(Output(30), Deliver(10, 1, OWN), Deliver(20, 2, OWN))
        assert below.asked.pop() == ("apply", "s1", (FlowOp(OpKind.INSTALL, real),))
        below.flows = (real, flow(Deliver(20, 2, OWN), Deliver(10, 1, OWN)))
        assert await switches.read("s1") == (
            flow(Output(1), Deliver(2, 1, OWN), Deliver(3, 2, OWN)),
            flow(Deliver(2, 1, OWN), Deliver(3, 2, OWN)),
        )
        assert below.asked == []
        assert await switches.ports("s1") == {1: True, 2: True, 3: False}
        assert await switches.fences("s1") == {1}
        assert await switches.settings("s1") == {3: PortSetting.NO_FORWARD}
        assert switches.foreign("s1") == (
            Foreign(3000, "one", in_port=3, copies=(SentCopy(1),)),
            Foreign(9, "other", in_port=NOWHERE, copies=(SentCopy(2),)),
        )
        assert switches.foreign("s2") == below.foreign("s2")  # it counts as the topology does
        await switches.fence("s1", 1, True)
        await switches.send_packet("s1", 3, b"x")
        await switches.inject_packet("s1", 3, b"y")
        assert below.asked == [
            ("fence", "s1", 30, True),
            ("send", "s1", 20, b"x"),
            ("inject", "s1", 20, b"y"),
        ]
        heard: list[SwitchEvent] = []
        for event in (
            PortChanged("s1", 20, False),
            PortChanged("s1", 40, False),
            PortChanged("s2", 7, False),
        ):
            switches.translated(heard.append)(event)
        switches.translated(heard.append)(Connected("s1"))
        assert heard == [PortChanged("s1", 3, False), PortChanged("s2", 7, False), Connected("s1")]

    asyncio.run(story())


def test_entries_to_ports_of_no_topology_are_told_as_ones_to_nowhere_and_stay() -> None:
    async def story() -> None:
        below = Recorder()
        switches = NumberedSwitches(below, lambda: NETWORK)  # type: ignore[arg-type]
        below.flows = (flow(Output(30)), flow(Output(30), Output(40), Deliver(50, 1, OWN)), flow(Output(40)))
        told = (flow(Output(1)), flow(Output(NOWHERE), Output(1)), flow(Output(NOWHERE)))
        assert await switches.read("s1") == switches.told("s1", below.flows) == told
        assert below.asked == []
        await switches.apply("s1", [FlowOp(OpKind.MODIFY, told[1])])
        assert below.asked.pop() == ("apply", "s1", (FlowOp(OpKind.MODIFY, flow(Output(30))),))
        below.flows = (flow(Output(9)),)
        assert await switches.read("s2") == below.flows  # it counts as the topology does

    asyncio.run(story())


def test_entries_keep_their_tables() -> None:
    async def story() -> None:
        below = Recorder()
        switches = NumberedSwitches(below, lambda: NETWORK)  # type: ignore[arg-type]
        below.flows = (replace(flow(Output(30)), table=16, onward=17),)
        assert await switches.read("s1") == (replace(flow(Output(1)), table=16, onward=17),)

    asyncio.run(story())


def test_a_corrected_port_number_changes_entries_in_one_batch_and_removes_none() -> None:
    """What goes to another host by the same entry loses nothing meanwhile."""
    ports = Topology.make((), {f"p{n}": "s" for n in range(1, 6)}, ["s"])
    state = ControlState(hosts_at(3, 4), RegularPlan.make(SCHEMA))
    state.step(
        [
            Request(op, host, host, Filter.parse(text, SCHEMA))
            for op, host, text in (
                (Op.ADVERTISE, "h1", "True"),
                (Op.SUBSCRIBE, "h2", "a < 8"),
                (Op.SUBSCRIBE, "h3", "a < 4"),
            )
        ]
    )

    made: list[list[FlowOp]] = []

    class Batches(EmbeddedFabric):
        async def apply(self, switch: str, ops: Sequence[FlowOp]) -> None:
            made.append(list(ops))
            await super().apply(switch, ops)

    async def story() -> None:
        fabric = Batches(EmbeddedNetwork(ports), lambda event: dispatcher.heard(event))
        for there in (hosts_at(3, 4), hosts_at(3, 5)):
            fabric.disconnect("s")
            made.clear()
            state.grow(there)
            switches = NumberedSwitches(fabric, lambda: state.topology)
            dispatcher = Dispatcher(state, switches, ENCODING, deliveries_of(state.topology, 6), drain=0)
            async with asyncio.timeout(5), dispatcher:
                fabric.connect("s")
                await dispatcher.settled()
                assert (await dispatcher.verify()).holds
        (batch,) = made
        assert {op.kind for op in batch} == {OpKind.MODIFY}
        assert {port for each in fabric.network.read("s") for port in each.ports} == {3, 5}

    asyncio.run(story())


def hosts_at(second: int, third: int) -> Topology:
    numbers = {"s": {"h1": 1, "h2": second, "h3": third}}
    return Topology.make((), {"h1": "s", "h2": "s", "h3": "s"}, ["s"], numbers)
