"""Each way in which things break, on real switches, while events flow."""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
import subprocess
from collections.abc import Awaitable, Callable

from traffic import PATIENCE
from world import TIMING, World

from flowsieve.errors import SwitchError
from flowsieve.flow.entry import Flow
from flowsieve.lab.machine import environment
from flowsieve.lab.real_network import bound_tables
from flowsieve.network.topology import Topology

Fault = Callable[[World, random.Random], Awaitable[None]]


async def kill_the_switches(world: World, dice: random.Random) -> None:
    """kill -9 of vswitchd, and a restart: all tables are gone."""
    async with world.outage():
        await asyncio.to_thread(world.lab.kill_vswitchd)
        await asyncio.sleep(dice.uniform(0, 0.3))
        await asyncio.to_thread(world.lab.restart_vswitchd)


async def stop_the_switches(world: World, dice: random.Random) -> None:
    """SIGSTOP of vswitchd during updates, for longer than it may be silent: connections stay, nothing answers."""
    host = dice.choice(list(world.lab.topology.hosts))
    async with world.outage():
        asking = asyncio.create_task(churn(world, host, dice, 20))
        await asyncio.sleep(0.05)
        world.lab.signal_vswitchd(signal.SIGSTOP)
        try:
            await asyncio.sleep(2 * TIMING.silence)
        finally:
            world.lab.signal_vswitchd(signal.SIGCONT)
        await asking


async def cut_in_a_bundle(world: World, dice: random.Random) -> None:
    """The connection to a switch is cut in the middle of a bundle; the switch goes on, so nothing may be lost."""
    host = dice.choice(list(world.lab.topology.hosts))
    proxy = world.proxies[world.lab.topology.hosts[host]]
    before = proxy.cuts
    proxy.cut_after(dice.randrange(40, 400))
    for _ in range(5):  # some subscriptions need no entry
        await churn(world, host, dice, 8)
        await world.repaired()
        if proxy.cuts > before:
            return
    raise AssertionError("the wire was not cut")


async def pull_a_cable(world: World, dice: random.Random) -> None:
    """A link of the tree goes down, the tree is mended, the link comes back."""
    a, b = dice.choice(world.dispatcher.state.trees.trees[0].edges)
    async with world.outage():
        await asyncio.to_thread(world.lab.set_link, a, b, False)
        async with asyncio.timeout(10):
            while frozenset((a, b)) not in world.dispatcher.state.down:
                await asyncio.sleep(0.001)
    await world.prove()
    apart = any(tree.others for tree in world.dispatcher.state.trees.trees)
    async with world.outage() if apart else contextlib.nullcontext():
        await asyncio.sleep(dice.uniform(0.3, 0.6))
        await asyncio.to_thread(world.lab.set_link, a, b, True)
        async with asyncio.timeout(10):
            while world.dispatcher.fences.closed or world.dispatcher.state.down:
                await asyncio.sleep(0.001)
    await world.repaired()


async def lose_the_controller(world: World, dice: random.Random) -> None:
    """A switch loses its controller and still forwards, while requests go on; then a link beside it fails too."""
    topology = world.lab.topology
    a, b = dice.choice(world.dispatcher.state.trees.trees[0].edges)
    elsewhere = dice.choice([host for host, switch in topology.hosts.items() if switch != a])
    world.proxies[a].block(True)
    with contextlib.suppress(TimeoutError):  # what depends on the switch waits, and that is right
        async with asyncio.timeout(2):
            await churn(world, elsewhere, dice, 4)
    async with world.outage():
        await asyncio.to_thread(world.lab.set_link, a, b, False)
        async with asyncio.timeout(10):
            while frozenset((a, b)) not in world.dispatcher.state.down:
                await asyncio.sleep(0.001)
        # It must stay fenced, since a has not followed; unless a detour bridged it, and nothing was to follow.
        await asyncio.to_thread(world.lab.set_link, a, b, True)
        await asyncio.sleep(0.5)
        assert world.dispatcher.fails_over or frozenset((a, b)) in world.dispatcher.fences.closed
        world.proxies[a].block(False)
        async with asyncio.timeout(10):
            while world.dispatcher.fences.closed or world.dispatcher.state.down:
                await asyncio.sleep(0.001)


async def delete_a_flow(world: World, dice: random.Random) -> None:
    """Somebody deletes an entry behind the controller's back, and adds one that sends events everywhere."""
    switch = dice.choice([s for s in world.lab.topology.switches if world.dispatcher.state.table(s)])
    held = (await tables(world))[switch]
    flow = dice.choice(held)
    async with world.outage():
        match = f"ipv6,ipv6_dst={flow.match}"
        await asyncio.to_thread(
            ofctl, world, switch, "del-flows", f"priority={flow.priority},{match}", "--strict"
        )
        async with asyncio.timeout(10):
            while flow not in (await tables(world))[switch]:
                await asyncio.sleep(0.01)
    await asyncio.to_thread(
        ofctl, world, switch, "add-flow", "priority=9,ipv6,ipv6_dst=ff0e::/16,actions=flood"
    )
    async with asyncio.timeout(10):
        while set(held) != set((await tables(world))[switch]):
            await asyncio.sleep(0.01)


async def fill_the_tables(world: World, dice: random.Random) -> None:
    """The tables turn out to be smaller than the controller thinks."""
    for _ in range(10):  # some subscriptions need no entry, and others make a table smaller
        fullest = max(len(world.dispatcher.state.table(switch)) for switch in world.lab.topology.switches)
        await asyncio.to_thread(bound_tables, world.lab, fullest + 3)
        await churn(world, dice.choice(list(world.lab.topology.hosts)), dice, 12)
        await world.repaired()
        if any(world.dispatcher.state.capacity(switch) for switch in world.lab.topology.switches):
            return
    raise AssertionError("no table was filled")


async def send_random_bytes(world: World, dice: random.Random) -> None:
    """1,000 random byte strings to the port on which the controller takes switches."""
    for _ in range(1000):
        _, writer = await asyncio.open_unix_connection(world.listen)
        with contextlib.suppress(OSError):
            head = bytes([5, dice.randrange(256), 0, dice.randrange(256)]) if dice.random() < 0.5 else b""
            writer.write(head + dice.randbytes(dice.randrange(1, 200)))
            await writer.drain()
        writer.transport.abort()
    await world.repaired()


async def lose_power(world: World, dice: random.Random) -> None:
    """A rack loses power: neighbouring switches are gone at once with their cables, and come back with nothing."""
    topology = world.lab.topology
    rack = rack_of(topology, dice)
    dead = {frozenset((switch, near)) for switch in rack for near in topology.linked(switch)}
    async with world.outage():
        await asyncio.to_thread(world.lab.set_power, rack, False)
        async with asyncio.timeout(PATIENCE):  # of a cable inside the rack nobody tells
            while not {edge for edge in dead if not edge <= rack} <= world.dispatcher.state.down:
                await asyncio.sleep(0.001)
        await asyncio.sleep(dice.uniform(0, 0.5))
        await asyncio.to_thread(world.lab.set_power, rack, True)
        async with asyncio.timeout(PATIENCE):
            while world.dispatcher.fences.closed or world.dispatcher.state.down:
                await asyncio.sleep(0.001)


async def remove_a_switch(world: World, dice: random.Random) -> None:
    """A switch is gone for good, and with it its hosts; the others are served on."""
    topology = world.lab.topology
    publishing = {app.host for app in world.apps if app.publishes}
    spare = [switch for switch in topology.switches if not publishing & set(topology.attached_at(switch))]
    gone = dice.choice(spare)
    world.cut_off |= set(topology.attached_at(gone))
    async with world.outage(without=frozenset([gone])):
        await asyncio.to_thread(world.lab.remove_switch, gone)
        links = {frozenset((gone, near)) for near in topology.linked(gone)}
        async with asyncio.timeout(10):
            while not links <= world.dispatcher.state.down:
                await asyncio.sleep(0.001)


LASTING: tuple[Fault, ...] = (remove_a_switch,)  # after which the network is not what it was
FAULTS: tuple[Fault, ...] = (
    kill_the_switches,
    stop_the_switches,
    cut_in_a_bundle,
    pull_a_cable,
    lose_the_controller,
    delete_a_flow,
    send_random_bytes,
    fill_the_tables,
    lose_power,
)


def rack_of(topology: Topology, dice: random.Random) -> frozenset[str]:
    """A switch and one or two of those beside it."""
    first = dice.choice(topology.switches)
    near = topology.linked(first)
    return frozenset([first, *dice.sample(near, min(len(near), dice.randint(1, 2)))])


async def tables(world: World) -> dict[str, tuple[Flow, ...]]:
    """What the switches hold, read again where one does not answer: the machine may be busy."""
    async with asyncio.timeout(PATIENCE):
        while True:
            with contextlib.suppress(SwitchError):
                return await world.dispatcher.tables()
            await asyncio.sleep(0.05)


async def churn(world: World, host: str, dice: random.Random, count: int) -> None:
    """Have an application subscribe to several things, one after the other."""
    filters = []
    for _ in range(count):
        low, wide = dice.randrange(200), dice.randrange(4, 40)
        filters.append(f"{low} <= a < {low + wide} and b >= {dice.randrange(200)}")
    await world.subscribe(host, *filters)


def ofctl(world: World, switch: str, command: str, flow: str, *options: str) -> None:
    words = ["ovs-ofctl", "-O", "OpenFlow14", *options, command, f"unix:{world.lab.management(switch)}", flow]
    done = subprocess.run(words, capture_output=True, text=True, env=environment())
    assert done.returncode == 0, done.stderr
