"""Requests over switches that fail and come back, on the embedded network."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace

import pytest
from livenet import ENCODING, SCHEMA, Net, running

from flowsieve.content.filter import Filter
from flowsieve.control.request import Op, Request
from flowsieve.errors import SwitchError
from flowsieve.flow.diff import FlowOp, OpKind
from flowsieve.flow.entry import Flow, content_flow
from flowsieve.flow.proof.verify import verify
from flowsieve.index.dz import Dz


def test_a_request_is_acknowledged_when_all_its_switches_are() -> None:
    async def story() -> None:
        async with running(Net("ring:6")) as net:
            await net.ask(Op.ADVERTISE, "h0", "True")
            await net.ask(Op.SUBSCRIBE, "h3", "a < 16")
            assert (await net.dispatcher.verify()).holds
            await net.holds()

    asyncio.run(story())


def test_a_switch_that_is_away_holds_up_only_what_depends_on_it() -> None:
    async def story() -> None:
        async with running(Net("line:4", patience=20)) as net:
            await net.ask(Op.ADVERTISE, "h0", "True")
            net.fabric.disconnect("s3")
            waiting = asyncio.create_task(net.ask(Op.SUBSCRIBE, "h3", "a < 16"))
            await net.ask(Op.SUBSCRIBE, "h1", "a < 16")
            assert not waiting.done()
            net.fabric.connect("s3")
            await waiting
            await net.holds()

    asyncio.run(story())


def test_a_request_waits_for_what_an_earlier_one_with_the_same_interest_waits_for() -> None:
    async def story() -> None:
        async with running(Net("line:3", patience=20)) as net:
            await net.ask(Op.ADVERTISE, "h0", "True")
            net.fabric.disconnect("s2")
            both = [asyncio.create_task(net.ask(Op.SUBSCRIBE, "h2", "a < 16")) for _ in range(2)]
            await asyncio.sleep(0.05)
            assert not any(task.done() for task in both)
            net.fabric.connect("s2")
            await asyncio.gather(*both)
            await net.holds()

    asyncio.run(story())


def test_a_request_that_is_not_acknowledged_in_time_is_taken_back() -> None:
    async def story() -> None:
        async with running(Net("line:3", patience=0.05)) as net:
            await net.ask(Op.ADVERTISE, "h0", "True")
            net.fabric.disconnect("s2", "somebody pulled the plug")
            with pytest.raises(SwitchError, match="s2: it is not connected: somebody pulled the plug"):
                await net.ask(Op.SUBSCRIBE, "h2", "a < 16")
            assert not net.dispatcher.state.subscriptions
            net.fabric.connect("s2")
            await net.holds()

    asyncio.run(story())


def test_a_lost_answer_leads_to_a_look_at_the_table_and_nothing_is_done_twice() -> None:
    async def story() -> None:
        async with running(Net("line:3")) as net:
            await net.ask(Op.ADVERTISE, "h0", "True")
            net.fabric.lose_answer("s1")
            waiting = asyncio.create_task(net.ask(Op.SUBSCRIBE, "h2", "a < 16"))
            while not net.network.read("s1"):
                await asyncio.sleep(0.001)
            assert not waiting.done()
            held = net.network.read("s1")
            net.fabric.connect("s1")
            await waiting
            assert held == net.network.read("s1") != ()
            await net.holds()

    asyncio.run(story())


def test_a_restarted_switch_gets_its_table_back_and_strays_go() -> None:
    async def story() -> None:
        async with running(Net("ring:5")) as net:
            await net.ask(Op.ADVERTISE, "h0", "True")
            await net.ask(Op.SUBSCRIBE, "h2", "a < 16 or b > 200")
            net.fabric.restart("s1")
            await net.holds()
            net.network.apply(
                "s1", [FlowOp(OpKind.INSTALL, content_flow(ENCODING, Dz.parse("1111"), (1, 2)))]
            )
            assert await net.dispatcher.repair() == 1
            await net.holds()

    asyncio.run(story())


def test_a_dead_link_is_fenced_and_the_tree_mended_and_the_fence_opened_when_it_returns() -> None:
    async def story() -> None:
        async with running(Net("ring:5")) as net:
            await net.ask(Op.ADVERTISE, "h0", "True")
            await net.ask(Op.SUBSCRIBE, "h2", "a < 16")
            a, b = net.dispatcher.state.trees.trees[0].edges[0]
            net.fabric.set_link(a, b, up=False)
            await net.holds()
            assert net.dispatcher.fences.closed == {frozenset((a, b))}
            assert all(frozenset((a, b)) != frozenset(e) for e in net.dispatcher.state.trees.trees[0].edges)
            net.fabric.set_link(a, b, up=True)
            async with asyncio.timeout(5):
                while net.fabric.closed:
                    await asyncio.sleep(0.001)
            await net.holds()

    asyncio.run(story())


def test_a_link_stays_fenced_while_a_switch_that_lost_its_controller_would_still_send_over_it() -> None:
    async def story() -> None:
        async with running(Net("ring:5")) as net:
            for host in net.topology.hosts:
                await net.ask(Op.ADVERTISE, host, "True")
                await net.ask(Op.SUBSCRIBE, host, "True")
            a, b = net.dispatcher.state.trees.trees[0].edges[0]
            net.fabric.disconnect(a)
            net.fabric.set_link(a, b, up=False)
            async with asyncio.timeout(5):
                while net.dispatcher.troubles.keys() != {a} or not net.dispatcher.mended:
                    await asyncio.sleep(0.001)
            net.fabric.set_link(a, b, up=True)
            await asyncio.sleep(0.05)
            state = net.dispatcher.state
            tables = {switch: net.network.read(switch) for switch in net.topology.switches}
            assert net.topology.port(a, b) in {port for flow in tables[a] for port in flow.ports}
            for closed, loops in ((net.fabric.closed, False), ((), True)):
                proof = verify(replace(state.view(ENCODING, tables), subscriptions=(), down=closed))
                assert bool(proof.loops) == loops
            net.fabric.connect(a)
            await net.holds()

    asyncio.run(story())


def test_hosts_that_a_failure_leaves_together_are_served_on_either_side_of_it() -> None:
    async def story() -> None:
        async with running(Net("line:4")) as net:
            for host in ("h0", "h3"):
                await net.ask(Op.ADVERTISE, host, "True")
            net.fabric.set_link("s1", "s2", up=False)
            await net.holds()
            for host in ("h1", "h2"):
                await net.ask(Op.SUBSCRIBE, host, "a < 16")
            await net.holds()
            net.fabric.set_link("s1", "s2", up=True)
            await net.holds()
            assert not net.fabric.closed

    asyncio.run(story())


def test_a_switch_gone_for_good_is_gone_around() -> None:
    async def story() -> None:
        async with running(Net("ring:5")) as net:
            await net.ask(Op.ADVERTISE, "h0", "True")
            await net.ask(Op.SUBSCRIBE, "h2", "a < 16")
            net.fabric.stop("s1")
            async with asyncio.timeout(5):
                while net.dispatcher.troubles.keys() != {"s1"} or not net.dispatcher.mended:
                    await asyncio.sleep(0.001)
            assert (await net.dispatcher.verify()).holds
            await net.ask(Op.SUBSCRIBE, "h3", "b < 16")
            assert (await net.dispatcher.verify()).holds

    asyncio.run(story())


def test_a_switch_that_cannot_tell_its_ports_at_first_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        net, failures = Net("line:3"), 3
        ports = net.fabric.ports

        async def busy(switch: str) -> Mapping[int, bool]:
            nonlocal failures
            if switch == "s1" and failures:
                failures -= 1
                raise SwitchError("it has no time")
            return await ports(switch)

        monkeypatch.setattr(net.fabric, "ports", busy)
        async with running(net):
            await net.ask(Op.ADVERTISE, "h0", "True")
            await net.ask(Op.SUBSCRIBE, "h2", "a < 16")
            await net.holds()
        assert failures == 0

    asyncio.run(story())


def test_requests_that_come_while_tables_are_read_do_not_spoil_a_proof(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        async with running(Net("ring:5")) as net:
            await net.ask(Op.ADVERTISE, "h0", "True")
            old = await net.ask(Op.SUBSCRIBE, "h2", "a < 16")
            look = net.fabric.look

            async def slowly(switch: str) -> tuple[tuple[Flow, ...], int]:
                flows = await look(switch)
                if switch == "s0":
                    await net.ask(Op.SUBSCRIBE, "h3", "b < 16")
                    await net.dispatcher.submit(Request(Op.UNSUBSCRIBE, old, "h2"))
                return flows

            monkeypatch.setattr(net.fabric, "look", slowly)
            assert (await net.dispatcher.verify()).holds
            monkeypatch.setattr(net.fabric, "look", look)
            await net.holds()

    asyncio.run(story())


def test_a_table_with_less_room_than_thought_is_made_to_fit() -> None:
    async def story() -> None:
        async with running(Net("line:2", capacity=6)) as net:
            await net.ask(Op.ADVERTISE, "h0", "True")
            for n in range(6):
                await net.ask(Op.SUBSCRIBE, "h1", f"{40 * n} <= a < {40 * n + 7} and b < 100")
            await net.holds()
            assert max(net.network.peak(switch) for switch in net.topology.switches) <= 6

    asyncio.run(story())


def test_where_the_links_that_are_left_lead_through_a_switch_without_room_the_controller_goes_on() -> None:
    async def story() -> None:
        net = Net("ring:4")
        net.dispatcher.state.bound("s3", 0)
        async with running(net):
            await net.ask(Op.ADVERTISE, "h0", "True")
            wanted = await net.ask(Op.SUBSCRIBE, "h2", "a < 16")
            net.fabric.set_link("s0", "s1", up=False)
            async with asyncio.timeout(5):
                while not net.dispatcher.state.down:
                    await asyncio.sleep(0.005)
            refused = await net.dispatcher.submit(
                Request(Op.SUBSCRIBE, "more", "h3", Filter.parse("a < 9", SCHEMA))
            )
            assert "switch s3" in str(refused.refused[0][1])
            await net.dispatcher.submit(Request(Op.UNSUBSCRIBE, wanted, "h2"))
            assert not net.dispatcher.state.subscriptions
            await net.holds()

    asyncio.run(story())
