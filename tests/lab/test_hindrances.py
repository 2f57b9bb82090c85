"""What others do to real switches, and what the proof and the readiness of the controller say of it."""

from __future__ import annotations

import asyncio
import logging
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.dispatcher import Dispatcher
from flowsieve.control.request import Op, Request
from flowsieve.control.state import ControlState
from flowsieve.header.encoding import encoding_of
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.lab.lab import Lab, running
from flowsieve.network.generators import generate
from flowsieve.serving.http import views
from flowsieve.testing.lab_control import controlled

pytestmark = pytest.mark.real

SCHEMA = Schema.parse({"level": {"type": "int", "min": 0, "max": 255}})
ENCODING = encoding_of("ipv6")
REQUESTS = [
    Request(Op.ADVERTISE, "p", "h0", Filter.parse("True", SCHEMA)),
    Request(Op.SUBSCRIBE, "s", "h1", Filter.parse("32 <= level < 192", SCHEMA)),
    Request(Op.SUBSCRIBE, "t", "h2", Filter.parse("level > 100", SCHEMA)),
]
PATIENCE = 60.0


@asynccontextmanager
async def at_work(network: str = "line:3") -> AsyncIterator[tuple[Lab, Dispatcher]]:
    with running(generate(network)) as lab:
        state = ControlState(lab.topology, RegularPlan.make(SCHEMA))
        async with asyncio.timeout(4 * PATIENCE), controlled(lab, state, ENCODING) as dispatcher:
            await dispatcher.settled()
            for request in REQUESTS:
                assert not (await dispatcher.submit(request)).refused
            assert (await dispatcher.verify()).holds
            assert views.health(dispatcher)["ready"]
            yield lab, dispatcher


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.02)


def ofctl(lab: Lab, command: str, switch: str, *words: str) -> str:
    line = ["ovs-ofctl", "-O", "OpenFlow14", command, f"unix:{lab.management(switch)}", *words]
    done = subprocess.run(line, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def ready(dispatcher: Dispatcher) -> bool:
    return bool(views.health(dispatcher)["ready"])


def test_an_entry_of_others_that_drops_what_ours_forward_is_proved_told_and_left_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story() -> None:
        async with at_work() as (lab, dispatcher):
            for switch in ("s1", "s2"):
                ofctl(lab, "add-flow", switch, "priority=3000,ipv6,ipv6_dst=ff00::/8,actions=drop")
            await until(lambda: not ready(dispatcher) and len(views.health(dispatcher)["troubles"]) == 2)
            verdict = await dispatcher.verify()
            assert (verdict.false_negatives, verdict.duplicates, verdict.loops) == (2, 0, 0)
            assert verdict.witness is not None
            assert "at s1 it meets an entry of others: table=0 priority=3000" in verdict.witness.where
            assert await dispatcher.repair() == 0  # it is somebody else's
            told = views.health(dispatcher)["troubles"]["s2"]
            assert "an entry of others comes before ours" in told and "ff00::/ff00::" in told
            for switch in ("s1", "s2"):
                ofctl(lab, "del-flows", switch, "--strict", "priority=3000,ipv6,ipv6_dst=ff00::/8")
            await until(lambda: ready(dispatcher))
            assert (await dispatcher.verify()).holds

    with caplog.at_level(logging.WARNING):
        asyncio.run(story())
    said = [each for each in caplog.messages if "an entry of others comes before ours" in each]
    assert len(said) == 2


@pytest.mark.parametrize("way", ["no-forward", "no-receive"])
def test_a_port_that_others_have_closed_is_proved_and_told(way: str) -> None:
    async def story() -> None:
        async with at_work() as (lab, dispatcher):
            topology = dispatcher.state.topology
            near, far = ("s1", "s2") if way == "no-forward" else ("s2", "s1")
            port = str(topology.number(near, far))
            ofctl(lab, "mod-port", near, port, way)
            await until(lambda: not ready(dispatcher))
            verdict = await dispatcher.verify()
            assert verdict.false_negatives == 1
            assert verdict.witness is not None
            assert f"the port of {near} to {far} is set to {way}" in verdict.witness.where
            ofctl(lab, "mod-port", near, port, way.removeprefix("no-"))
            await until(lambda: ready(dispatcher))
            assert (await dispatcher.verify()).holds

    asyncio.run(story())


def test_events_readdressed_to_somebody_else_at_the_last_hop_are_lost() -> None:
    async def story() -> None:
        async with at_work() as (lab, dispatcher):
            port = dispatcher.state.topology.number("s2", "h2")
            actions = f"set_field:33:33:00:00:00:09->eth_dst,set_field:ff02::9->ipv6_dst,output:{port}"
            ofctl(lab, "add-flow", "s2", f"priority=3000,ipv6,ipv6_dst=ff00::/8,actions={actions}")
            await until(lambda: not ready(dispatcher))
            verdict = await dispatcher.verify()
            assert verdict.false_negatives == 1
            assert verdict.witness is not None
            assert "s2 sends it to h2 under an address that is not what h2 takes" in verdict.witness.where

    asyncio.run(story())


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("priority=3000,ipv6,ipv6_src=fd00::/8,actions=drop", "ipv6_src"),
        ("priority=3000,ipv6,ipv6_dst=ff00::/8,actions=group:7", "it hands them to a group"),
        ("priority=3000,actions=resubmit(,7)", "it changes them"),
    ],
)
def test_what_the_proof_cannot_judge_it_names(entry: str, why: str) -> None:
    async def story() -> None:
        async with at_work("ring:3") as (lab, dispatcher):
            if "group" in entry:
                ofctl(lab, "add-group", "s1", "group_id=7,type=all,bucket=output:1")
            ofctl(lab, "add-flow", "s1", entry)
            async with asyncio.timeout(PATIENCE):
                while (verdict := await dispatcher.verify()).holds:
                    await asyncio.sleep(0.02)
            assert (verdict.false_negatives, verdict.duplicates, verdict.loops) == (0, 0, 0)
            assert len(verdict.undecided) == 1
            assert verdict.undecided[0].startswith("s1: table=0 priority=") and why in verdict.undecided[0]

    asyncio.run(story())


def test_flooding_what_ours_do_not_want_matters_only_where_it_may_go_round() -> None:
    async def story() -> None:
        async with at_work("ring:3") as (lab, dispatcher):
            switches = dispatcher.state.topology.switches
            for number, switch in enumerate(switches, 1):
                ofctl(lab, "add-flow", switch, "table=1,priority=0,actions=NORMAL")
                await until(lambda at=switch: bool(dispatcher.foreign(at)))
                await dispatcher.settled()
                verdict = await dispatcher.verify()
                assert (verdict.false_negatives, verdict.duplicates, verdict.loops) == (0, 0, 0)
                assert len(verdict.undecided) == (3 if number == 3 else 0)
            assert verdict.witness is not None and "goes round" in verdict.witness.where
            assert ready(dispatcher)  # nothing of ours is shadowed

    asyncio.run(story())


def test_entries_of_others_that_match_no_event_are_passed_over() -> None:
    async def story() -> None:
        async with at_work("ring:3") as (lab, dispatcher):
            seen = dispatcher.operations
            for entry in (
                "priority=3000,ip,actions=drop",
                "priority=3000,arp,actions=NORMAL",
                "priority=3000,tcp6,actions=drop",
                "priority=3000,udp6,tp_dst=53,actions=drop",
                "priority=3000,dl_vlan=7,actions=drop",
                "priority=3000,ipv6,ipv6_dst=fd00::/8,actions=drop",
                "priority=3000,dl_dst=01:80:c2:00:00:00,actions=drop",
                "table=3,priority=3000,ipv6,actions=drop",
                "priority=0,actions=drop",
            ):
                ofctl(lab, "add-flow", "s1", entry)
            await dispatcher.settled()
            assert (await dispatcher.verify()).holds
            assert ready(dispatcher)
            assert dispatcher.operations == seen

    asyncio.run(story())
