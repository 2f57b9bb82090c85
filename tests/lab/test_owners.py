"""Two owners of disjoint parts of the space on the same real switches, each over connections of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.core import Guarding, not_guarded
from flowsieve.control.dispatcher import Dispatcher
from flowsieve.control.request import Op, Request
from flowsieve.control.state import ControlState
from flowsieve.flow.guard import GuardSettings, Refusals
from flowsieve.flow.owner import Owner
from flowsieve.flow.proof.verify import verify
from flowsieve.header.encoding import encoding_of
from flowsieve.index.dzset import DzSet
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.lab.hosts import Hosts
from flowsieve.lab.lab import Lab, running
from flowsieve.network.generators import line
from flowsieve.southbound.fabric import SwitchEvent, TableChanged
from flowsieve.southbound.openflow.fabric import OpenFlowFabric
from flowsieve.testing.lab_control import controlled

pytestmark = pytest.mark.real

SCHEMA = Schema.parse({"level": {"type": "int", "min": 0, "max": 255}})
PLAN = RegularPlan.make(SCHEMA)
ENCODING = encoding_of("ipv6")
LOW, HIGH = Owner(1, DzSet.of("0")), Owner(2, DzSet.of("1"))
REQUESTS = [
    Request(Op.ADVERTISE, "p", "h0", Filter.parse("True", SCHEMA)),
    Request(Op.SUBSCRIBE, "s", "h2", Filter.parse("32 <= level < 192", SCHEMA)),
    Request(Op.SUBSCRIBE, "t", "h1", Filter.parse("level > 100", SCHEMA)),
]


class Pair:
    """Two dispatchers, one for each owner, and what the switches reported to either."""

    def __init__(self, lab: Lab, low: Dispatcher, high: Dispatcher, heard: list[SwitchEvent]) -> None:
        self.lab, self.low, self.high, self.heard = lab, low, high, heard


@asynccontextmanager
async def shared(
    requests: Sequence[Request] = REQUESTS, guarding: Guarding = not_guarded
) -> AsyncIterator[Pair]:
    topology, heard = line(3), list[SwitchEvent]()
    states = [ControlState(topology, PLAN, owner=owner) for owner in (LOW, HIGH)]
    with running(topology) as lab:
        async with (
            asyncio.timeout(300),
            controlled(lab, states[0], ENCODING, heard=heard.append, guarding=guarding) as low,
            controlled(lab, states[1], ENCODING, heard=heard.append, guarding=guarding) as high,
        ):
            for request in requests:
                for dispatcher in (low, high):
                    assert not (await dispatcher.submit(request)).refused
            yield Pair(lab, low, high, heard)


def test_both_serve_their_parts_and_neither_touches_the_others_entries() -> None:
    async def story() -> None:
        async with shared() as pair:
            before = pair.low.operations, pair.high.operations
            assert await pair.low.repair() == await pair.high.repair() == 0
            assert (pair.low.operations, pair.high.operations) == before
            low, high = await pair.low.tables(), await pair.high.tables()
            assert {flow.owner for flows in low.values() for flow in flows} == {LOW.number}
            assert {flow.owner for flows in high.values() for flow in flows} == {HIGH.number}
            both = {switch: low[switch] + high[switch] for switch in pair.lab.topology.switches}
            async with OpenFlowFabric(pair.lab.switch_addresses) as fabric:
                await fabric.wait_connected(60)
                read = {switch: await fabric.read(switch) for switch in both}
            assert {switch: set(flows) for switch, flows in read.items()} == {
                switch: set(flows) for switch, flows in both.items()
            }
            everything = ControlState(pair.lab.topology, PLAN)
            everything.step(REQUESTS)
            assert verify(everything.view(ENCODING, read)).holds

    asyncio.run(story())


def test_what_one_changes_makes_the_other_read_no_table() -> None:
    async def story() -> None:
        async with shared() as pair:
            pair.heard.clear()
            operations = pair.high.operations
            await pair.low.submit(Request(Op.UNSUBSCRIBE, "s", "h2"))
            while not any(isinstance(event, TableChanged) for event in pair.heard):
                await asyncio.sleep(0.01)
            changed = [event.owners for event in pair.heard if isinstance(event, TableChanged)]
            assert set().union(*changed) == {LOW.number}
            assert not pair.high.troubles
            assert pair.high.operations == operations
            assert (await pair.low.verify()).holds and (await pair.high.verify()).holds

    asyncio.run(story())


def test_what_is_advertised_in_either_part_is_taken_in_and_all_else_is_refused() -> None:
    advertised = [
        Request(Op.ADVERTISE, "p", "h0", Filter.parse("32 <= level < 192", SCHEMA)),
        Request(Op.SUBSCRIBE, "s", "h2", Filter.parse("True", SCHEMA)),
    ]

    async def story() -> None:
        async with shared(advertised, lambda topology: GuardSettings(rate=1000)) as pair:
            with Hosts(pair.lab) as hosts:

                def publish(*levels: int) -> None:
                    for level in levels:
                        (dz,) = PLAN.encode({"level": level})
                        hosts.send(0, 6, ENCODING.address_of(dz), f"event {level}".encode())

                async def arrive(count: int) -> list[bytes]:
                    """The next events at h2, whatever else comes there."""
                    found: list[bytes] = []
                    while len(found) < count:
                        (packet,) = await asyncio.to_thread(lambda: list(hosts.receive(2, 1)))
                        found += [packet] if packet.startswith(b"event") else []
                    return found

                publish(40, 10, 250, 150)
                assert await arrive(2) == [b"event 40", b"event 150"]
                assert (await pair.low.refusals())["h0"] == Refusals(outside=2)
                await pair.low.submit(Request(Op.UNADVERTISE, "p", "h0"))
                await pair.low.settled()
                publish(40, 150)
                assert await arrive(1) == [b"event 150"]
                assert await pair.low.repair() == await pair.high.repair() == 0
                publish(150)
                assert await arrive(1) == [b"event 150"]

    asyncio.run(story())
