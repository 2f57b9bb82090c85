"""A live network goes over to another index, over embedded switches that fail when told to."""

from __future__ import annotations

import asyncio

import pytest
from livenet import SCHEMA, Net, running

from flowsieve.control.memory.journal import Past
from flowsieve.control.memory.recovery import recover, snapshot
from flowsieve.control.request import Op
from flowsieve.control.state import ControlState, Settings
from flowsieve.control.transition.crossing import CrossingPhase
from flowsieve.errors import BadInput, SwitchError, TableFull
from flowsieve.header.tag import POOLS
from flowsieve.index.plans.regular import RegularPlan

OTHER = RegularPlan.make(SCHEMA, bits=6, dimensions=["b"])


async def populated(net: Net) -> None:
    hosts = list(net.topology.hosts)
    await net.ask(Op.ADVERTISE, hosts[0], "True")
    await net.ask(Op.ADVERTISE, hosts[1], "a < 100")
    for n in range(12):
        await net.ask(Op.SUBSCRIBE, hosts[n % len(hosts)], f"{10 * n} <= a < {10 * n + 30} and b > {5 * n}")


async def holds(net: Net) -> None:
    async with asyncio.timeout(10):
        await net.dispatcher.settled()
    verdict = await net.dispatcher.verify()
    assert verdict.holds, verdict


def entries(net: Net) -> int:
    return sum(len(net.network.read(switch)) for switch in net.topology.switches)


def test_a_network_goes_over_to_another_plan_and_its_tables_are_those_of_the_plan() -> None:
    async def story() -> None:
        async with running(Net("ring:5")) as net:
            await populated(net)
            record = await net.dispatcher.transition.go_over(OTHER)
            assert [each.phase for each in record.phases] == list(CrossingPhase)
            assert net.dispatcher.transition.index.version == 1
            assert net.dispatcher.encoding.tag == POOLS["ipv6"][1]
            await holds(net)
            fresh = ControlState(net.topology, OTHER)
            fresh.step(net.requests())
            for switch in net.topology.switches:
                assert net.dispatcher.state.table(switch) == fresh.table(switch)
            assert not net.dispatcher.state.retired

    asyncio.run(story())


def test_on_the_way_one_entry_carries_what_many_did() -> None:
    async def story() -> None:
        async with running(Net("ring:5")) as net:
            await populated(net)
            before = entries(net)
            record = await net.dispatcher.transition.go_over(OTHER)
            carried = record.phases[0].entries
            assert carried <= len(net.topology.switches) < before

    asyncio.run(story())


def test_each_transition_takes_a_tag_that_nobody_uses() -> None:
    async def story() -> None:
        async with running(Net("line:3")) as net:
            await populated(net)
            for version in range(1, 5):
                await net.dispatcher.transition.go_over(OTHER)
                assert net.dispatcher.transition.index.version == version
                await holds(net)

    asyncio.run(story())


def test_requests_on_the_way_are_served() -> None:
    async def story() -> None:
        async with running(Net("ring:4")) as net:
            await populated(net)
            way = asyncio.create_task(net.dispatcher.transition.go_over(OTHER))
            hosts = list(net.topology.hosts)
            for n in range(20):
                name = await net.ask(Op.SUBSCRIBE, hosts[n % 4], f"a == {n}")
                verdict = await net.dispatcher.verify()
                assert verdict.holds, verdict
                if n % 2:
                    await net.end(Op.UNSUBSCRIBE, name)
            await way
            await holds(net)

    asyncio.run(story())


def test_it_is_given_up_where_a_switch_does_not_follow() -> None:
    async def story() -> None:
        async with running(Net("ring:4", patience=0.3)) as net:
            await populated(net)
            tables = {switch: set(net.network.read(switch)) for switch in net.topology.switches}
            net.fabric.disconnect(net.topology.switches[1])
            with pytest.raises(SwitchError, match="at the index that it was at before: not acknowledged"):
                await net.dispatcher.transition.go_over(OTHER)
            assert net.dispatcher.state.crossing is None and net.dispatcher.transition.index.version == 0
            net.fabric.connect(net.topology.switches[1])
            await holds(net)
            assert {switch: set(net.network.read(switch)) for switch in net.topology.switches} == tables

    asyncio.run(story())


def test_what_cannot_be_is_told_before_anything_changes() -> None:
    async def story() -> None:
        async with running(Net("line:3", settings=Settings(capacity=40))) as net:
            await populated(net)
            before = entries(net)
            with pytest.raises(BadInput, match="another schema"):
                schema = SCHEMA.parse({"a": {"type": "bool"}})
                await net.dispatcher.transition.go_over(RegularPlan.make(schema))
            assert entries(net) == before
            told = await net.dispatcher.transition.plan_room(OTHER)
            assert told["entries"]["now"] == before and entries(net) == before

    asyncio.run(story())


def test_a_table_that_cannot_hold_what_it_takes_is_told_before_anything_changes() -> None:
    async def story() -> None:
        async with running(Net("line:3", settings=Settings(capacity=1))) as net:
            await populated(net)
            before = {switch: net.network.read(switch) for switch in net.topology.switches}
            with pytest.raises(TableFull):
                await net.dispatcher.transition.go_over(OTHER)
            assert {switch: net.network.read(switch) for switch in net.topology.switches} == before

    asyncio.run(story())


@pytest.mark.parametrize("phase", list(CrossingPhase))
def test_whoever_recovers_in_any_phase_goes_on_from_there(phase: CrossingPhase) -> None:
    async def story() -> None:
        net = Net("ring:4")
        async with running(net):
            await populated(net)
            transition = net.dispatcher.transition
            way = asyncio.create_task(transition.go_over(OTHER))
            while transition.crossing is None or transition.crossing.phase is not phase:
                await asyncio.sleep(0)
            kept = snapshot(net.dispatcher.state, net.dispatcher.ledger)
            way.cancel()
        state, _ = recover(
            Past(kept), lambda trees: ControlState(net.topology, RegularPlan.make(SCHEMA), trees)
        )
        assert state.crossing is not None and state.crossing.phase is phase
        again = net.restarted(state)
        async with running(again):
            async with asyncio.timeout(10):
                while again.dispatcher.transition.crossing is not None:
                    await asyncio.sleep(0.01)
            assert again.dispatcher.transition.index.version == 1
            await holds(again)

    asyncio.run(story())


def test_it_goes_on_though_whoever_asked_for_it_has_left() -> None:
    async def story() -> None:
        async with running(Net("ring:4")) as net:
            await populated(net)
            transition = net.dispatcher.transition
            way = asyncio.create_task(transition.go_over(OTHER))
            while transition.crossing is None:
                await asyncio.sleep(0)
            way.cancel()
            async with asyncio.timeout(10):
                while transition.crossing is not None:
                    await asyncio.sleep(0.01)
            assert transition.index.version in (0, 1)
            await holds(net)

    asyncio.run(story())


def test_an_operator_may_give_it_up_and_go_back_later() -> None:
    async def story() -> None:
        async with running(Net("ring:4", patience=10)) as net:
            await populated(net)
            transition = net.dispatcher.transition
            assert await transition.go_back() is None
            net.fabric.disconnect(net.topology.switches[2])
            way = asyncio.create_task(transition.go_over(OTHER))
            while transition.crossing is None:
                await asyncio.sleep(0)
            await transition.go_back()
            with pytest.raises(SwitchError, match="an operator asked for it"):
                await way
            net.fabric.connect(net.topology.switches[2])
            await holds(net)
            await transition.go_over(OTHER)
            record = await transition.go_back()
            assert record is not None and record.ended == "arrived"
            assert transition.index.version == 2 and transition.index.plan == RegularPlan.make(SCHEMA)
            await holds(net)

    asyncio.run(story())
