"""Controllers that share an etcd, and its servers, killed, stopped and cut off at random: `make soak FAULTS=200`.

A round is a lab of its own, under traffic and a burst of requests, with two controllers and three servers of etcd; in
two rounds of three each controller has configurators that decide for it, and these are hit as well. Ten faults hit
them, some before the last one is over; then one more kill while nobody asks anything, when not one flow may change: so
the tables are those that a controller makes from what etcd holds. A line of JSON per round tells what happened to it.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress

from burst import bursting
from campaign import campaign
from hatchery import Hatchery
from nodes import CONFIGURATORS, Nodes, frozen, shared

TOPOLOGIES = ("ring:6", "line:4", "grid:3,3")
FAULTS_A_ROUND = 10
ROUND_SECONDS = 480.0
Fault = Callable[[Nodes, random.Random], Awaitable[None]]


async def kill_the_leader(there: Nodes, dice: random.Random) -> None:
    hit = await there.leader()
    await hit.stop_it(signal.SIGKILL)
    await there.taken_over(hit)
    hit.begin()


async def kill_who_stands_by(there: Nodes, dice: random.Random) -> None:
    hit = there.other(await there.leader())
    await hit.stop_it(signal.SIGKILL)
    await asyncio.sleep(dice.uniform(0.0, 1.0))
    hit.begin()


async def kill_both(there: Nodes, dice: random.Random) -> None:
    for node in there.nodes:
        await node.stop_it(signal.SIGKILL)
    await asyncio.sleep(dice.uniform(0.0, 1.0))
    for node in there.nodes:
        node.begin()


async def stop_the_leader(there: Nodes, dice: random.Random) -> None:
    await frozen(await there.leader(), dice.uniform(0.2, 5.0))


async def cut_the_leader_off(there: Nodes, dice: random.Random) -> None:
    hit = await there.leader()
    hit.isolate(True)
    await asyncio.sleep(dice.uniform(0.2, 5.0))
    hit.isolate(False)


async def kill_a_server(there: Nodes, dice: random.Random) -> None:
    hit = there.etcd.leader if dice.random() < 0.5 else dice.randrange(3)
    there.etcd.signal(hit, signal.SIGKILL)
    await asyncio.sleep(dice.uniform(0.0, 2.0))
    there.etcd.start(hit)
    await asyncio.to_thread(there.etcd.wait)


async def stop_a_server(there: Nodes, dice: random.Random) -> None:
    hit = there.etcd.leader if dice.random() < 0.5 else dice.randrange(3)
    there.etcd.signal(hit, signal.SIGSTOP)
    await asyncio.sleep(dice.uniform(0.2, 3.0))
    there.etcd.signal(hit, signal.SIGCONT)


async def kill_a_machine(there: Nodes, dice: random.Random) -> None:
    """The controller that leads and the server that leads."""
    hit, server = await there.leader(), there.etcd.leader
    there.etcd.signal(server, signal.SIGKILL)
    await hit.stop_it(signal.SIGKILL)
    await there.taken_over(hit)
    there.etcd.start(server)
    await asyncio.to_thread(there.etcd.wait)
    hit.begin()


async def kill_configurators(there: Nodes, dice: random.Random) -> None:
    for pid in await _some_configurators(there, dice):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


async def stop_configurators(there: Nodes, dice: random.Random) -> None:
    hit = await _some_configurators(there, dice)
    for what in (signal.SIGSTOP, signal.SIGCONT):
        for pid in hit:
            with suppress(ProcessLookupError):
                os.kill(pid, what)
        if what is signal.SIGSTOP:
            await asyncio.sleep(dice.uniform(0.2, 4.0))


async def _some_configurators(there: Nodes, dice: random.Random) -> list[int]:
    """One of them, or all."""
    found = sorted((await (await there.leader()).configurators()).values())
    return found if dice.random() < 0.2 else dice.sample(found, min(1, len(found)))


OF_CONFIGURATORS: tuple[Fault, ...] = (kill_configurators, stop_configurators)
FAULTS: tuple[Fault, ...] = (
    kill_the_leader,
    kill_who_stands_by,
    kill_both,
    stop_the_leader,
    cut_the_leader_off,
    kill_a_server,
    stop_a_server,
    kill_a_machine,
)


async def one_round(seed: int, count: int, hatchery: Hatchery) -> dict[str, object]:
    """A lab, some faults, the judgement."""
    dice = random.Random(seed)
    topology, sharing = dice.choice(TOPOLOGIES), dice.random() < 2 / 3
    choice = FAULTS + OF_CONFIGURATORS * 3 if sharing else FAULTS
    faults = [dice.choice(choice) for _ in range(count)]
    more = CONFIGURATORS if sharing else ""
    async with shared(topology, hatchery, seconds=ROUND_SECONDS, more=more) as there:
        first = await there.leader()
        await first.populate()
        async with bursting(first, dice) as burst:
            for fault in faults:
                await asyncio.sleep(dice.uniform(0.0, 1.0))
                await fault(there, dice)
        leader = await there.leader()
        await leader.became_ready()
        burst.judged_by(leader)
        await burst.check()
        with leader.watched() as watch:
            await leader.stop_it(signal.SIGKILL)
            leader.begin()
            leader = await there.leader()
            await leader.became_ready()
            assert watch.changes == {}, watch.changes
        lost = await leader.judge()
        return {
            "seed": seed,
            "topology": topology,
            "configurators": sharing,
            "faults": [fault.__name__ for fault in faults],
            "answered": burst.answered,
            "asked_again": burst.again,
            "events": sum(map(len, leader.sent.values())),
            "lost": lost,
            "outside_outages": len(leader.missed),
            "dropped_by_queues": leader.dropped,
            "dropped": leader.machine_dropped.to_json(),
        }


if __name__ == "__main__":
    sys.exit(campaign(__doc__, "faults", 200, FAULTS_A_ROUND, one_round))
