"""Stories of faults on the embedded network: several at once, and the controller killed in between.

A story is made by its seed. After every single change of a table, a fence or a link it is proved that no packet could
loop or arrive twice; in the end, when all that was broken is whole again, that everything wanted arrives.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random
from typing import Any

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.dispatcher import Dispatcher
from flowsieve.control.memory.journal import Entry, Past, Snapshot, entry_from_json, entry_to_json
from flowsieve.control.memory.recovery import recover, snapshot
from flowsieve.control.repair.damping import DampingSettings
from flowsieve.control.request import Op, Request
from flowsieve.control.state import ControlState
from flowsieve.errors import BadInput, JournalError
from flowsieve.flow.diff import FlowOp
from flowsieve.flow.entry import content_flow
from flowsieve.flow.interest import Interest
from flowsieve.flow.proof.verify import verify
from flowsieve.flow.view import NetworkView
from flowsieve.header.encoding import encoding_of
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.network.mend import Edge
from flowsieve.network.topology import Topology
from flowsieve.network.tree import TreeMap
from flowsieve.southbound.embedded.network import EmbeddedNetwork
from flowsieve.testing.embedded_fabric import EmbeddedFabric

SCHEMA = Schema.parse({"a": {"type": "int", "min": 0, "max": 15}})
PLAN = RegularPlan.make(SCHEMA)
ENCODING = encoding_of("ipv6")
EVERYTHING = Filter.parse("True", SCHEMA)
CALM = DampingSettings(half_life_seconds=0.01, longest_seconds=0.05)
LONGEST_SECONDS = 10.0  # of a story, on a busy machine


class WatchedFabric(EmbeddedFabric):
    """Proves after every change that no packet could loop or arrive twice on the links that carry any.

    What a switch has carried out is known to the controller a moment later: it may be killed in between.
    """

    async def apply(self, switch: str, ops: Sequence[FlowOp]) -> None:
        try:
            await super().apply(switch, ops)
        finally:
            self.check()
        await asyncio.sleep(0)

    async def fence(self, switch: str, port: int, closed: bool) -> None:
        try:
            await super().fence(switch, port, closed)
        finally:
            self.check()
        await asyncio.sleep(0)

    def set_link(self, a: str, b: str, up: bool) -> None:
        super().set_link(a, b, up)
        self.check()

    def restart(self, switch: str) -> None:
        super().restart(switch)
        self.check()

    @property
    def down(self) -> frozenset[Edge]:
        return frozenset(self._down)

    @property
    def fenced(self) -> dict[str, set[int]]:
        return {switch: ports for switch, ports in self._fences.items() if ports}

    def check(self) -> None:
        topology = self.network.topology
        tables = {name: self.network.read(name) for name in topology.switches}
        offers = [
            Interest(host, host, EVERYTHING, PLAN.cover(EVERYTHING, 0, None)) for host in topology.hosts
        ]
        verdict = verify(NetworkView(topology, PLAN, ENCODING, tables, offers, [], self.closed))
        assert not verdict.duplicates and not verdict.loops, verdict


class Memory:
    """A journal that outlives its controllers, and whose disk may be full."""

    def __init__(self) -> None:
        self.full = False
        self.number = 0
        self._snapshot: Snapshot | None = None
        self._entries: list[tuple[int, dict[str, Any]]] = []

    @property
    def length(self) -> int:
        return len(self._entries)

    @property
    def past(self) -> Past:
        return Past(self._snapshot, tuple(entry_from_json(data, SCHEMA) for _, data in self._entries))

    async def append(self, entries: Sequence[Entry]) -> int:
        await asyncio.sleep(0)
        if self.full:
            raise JournalError("the disk is full")
        for entry in entries:
            self.number += 1
            self._entries.append((self.number, json.loads(json.dumps(entry_to_json(entry)))))
        number = self.number
        await asyncio.sleep(0)
        return number

    async def compact(self, snapshot: Snapshot, number: int) -> None:
        self._snapshot = json.loads(json.dumps(snapshot))
        self._entries = [each for each in self._entries if each[0] > number]


class Story:
    """A network, its controller, and what happens to them; `told` has it step by step."""

    def __init__(self, seed: int) -> None:
        self.dice = Random(seed)
        self.topology = network(self.dice)
        self.told: list[str] = []
        self._trees = TreeMap.spread(self.topology, 2) if self.dice.random() < 0.3 else None
        self._damping = CALM if self.dice.random() < 0.5 else None
        self._memory = Memory()
        self._fabric = WatchedFabric(EmbeddedNetwork(self.topology), lambda event: None)
        self._pulled: set[Edge] = set()
        self._dark: set[str] = set()  # switches without power
        self._away: set[str] = set()  # switches without management
        self._pending: list[asyncio.Task[object]] = []
        self._number = 0
        self._dispatcher: Dispatcher

    async def run(self) -> None:
        """Whatever happens, nothing loops or doubles meanwhile, and all is right in the end."""
        async with asyncio.timeout(LONGEST_SECONDS):
            await self._start()
            try:
                for host in self.topology.hosts:
                    for op in (Op.ADVERTISE, Op.SUBSCRIBE):
                        self._ask(op, host, "True")
                await asyncio.gather(*self._pending)
                for _ in range(self.dice.randint(3, 16)):
                    await self._step()
                    await self._pass()
                await self._end_well()
            finally:
                await self._kill()

    # What happens.

    async def _step(self) -> None:
        happenings: list[tuple[int, Callable[[], None] | None]] = [
            (4, self._pull),
            (3, self._plug),
            (3, self._lose_management),
            (1, self._regain_management),
            (1, self._lose_power),
            (1, self._regain_power),
            (1, self._restart_a_switch),
            (1, self._lose_an_answer),
            (1, self._fill_the_disk),
            (2, self._change_requests),
            (3, None),
        ]
        weights = [weight for weight, _ in happenings]
        for _, happening in self.dice.choices(happenings, weights, k=self.dice.choice((1, 1, 1, 2, 3))):
            if happening is None:
                await self._kill_and_start()
            else:
                happening()
        if self.dice.random() < 0.1:
            await self._flap()
        if self.dice.random() < 0.3:
            await self._strand()

    async def _pass(self) -> None:
        """Some time passes: a few turns of the loop, or as much as all that is under way takes."""
        for _ in range(self.dice.choice((0, 1, 2, 4, 8, 16, 32, 64))):
            await asyncio.sleep(0)
        if self.dice.random() < 0.2:
            await asyncio.sleep(self.dice.uniform(0, 0.01))

    def _pull(self) -> None:
        edge = self._some_edge()
        self._tell(f"pull {'-'.join(sorted(edge))}")
        self._pulled.add(edge)
        self._cable()

    def _plug(self) -> None:
        if self._pulled:
            edge = self.dice.choice(sorted(self._pulled, key=sorted))
            self._tell(f"plug {'-'.join(sorted(edge))}")
            self._pulled.discard(edge)
            self._cable()

    async def _flap(self) -> None:
        edge = self._some_edge()
        self._tell(f"flap {'-'.join(sorted(edge))}")
        for _ in range(self.dice.randint(2, 5)):
            self._pulled ^= {edge}
            self._cable()
            for _ in range(self.dice.randrange(12)):
                await asyncio.sleep(0)

    async def _strand(self) -> None:
        """A switch that cannot be reached still sends over a link that is pulled and plugged."""
        tree = self.dice.choice(self._dispatcher.state.trees.trees)
        if tree.edges:
            a, b = self.dice.sample(self.dice.choice(tree.edges), 2)
            self._tell(f"strand {a}, pull and plug {a}-{b}")
            self._away.add(a)
            self._fabric.disconnect(a)
            for _ in range(2):
                await self._pass()
                self._pulled ^= {frozenset((a, b))}
                self._cable()

    def _lose_management(self) -> None:
        switch = self._some_switch()
        self._tell(f"without management: {switch}")
        self._away.add(switch)
        self._fabric.disconnect(switch)

    def _regain_management(self) -> None:
        if self._away:
            self._tell("management is back")
            for switch in self.dice.sample(sorted(self._away), self.dice.randint(1, len(self._away))):
                self._away.discard(switch)
                self._fabric.connect(switch)

    def _lose_power(self) -> None:
        """A rack: a switch and some of those beside it."""
        first = self._some_switch()
        near = self.topology.linked(first)
        rack = {first, *self.dice.sample(near, self.dice.randint(0, len(near)))}
        self._tell(f"without power: {' '.join(sorted(rack))}")
        self._dark |= rack
        for switch in self.dice.sample(sorted(rack), len(rack)):
            self._fabric.stop(switch)

    def _regain_power(self) -> None:
        if self._dark:
            self._tell("power is back")
            back, self._dark = self._dark, set()
            for switch in self.dice.sample(sorted(back), len(back)):
                self._fabric.restart(switch)
                if switch in self._away:
                    self._fabric.disconnect(switch)
            self._cable()

    def _restart_a_switch(self) -> None:
        switch = self._some_switch()
        if switch not in self._dark:
            self._tell(f"restart {switch}")
            self._fabric.restart(switch)
            if switch in self._away:
                self._fabric.disconnect(switch)

    def _lose_an_answer(self) -> None:
        """The connection goes with it, and comes back."""
        switch = self._some_switch()
        self._tell(f"an answer gets lost: {switch}")
        self._fabric.lose_answer(switch)
        self._connect()

    def _fill_the_disk(self) -> None:
        self._memory.full = not self._memory.full
        self._tell("the disk is full" if self._memory.full else "the disk has room")

    def _change_requests(self) -> None:
        state = self._dispatcher.state
        if self.dice.random() < 0.5 and state.subscriptions:
            ended = state.subscriptions[self.dice.choice(sorted(state.subscriptions))]
            request = Request(Op.UNSUBSCRIBE, ended.id, ended.endpoint)
            with suppress(BadInput):  # it ends already
                state.check(request)
                self._pending.append(asyncio.create_task(self._dispatcher.submit(request)))
        else:
            low = self.dice.randrange(16)
            text = f"{low} <= a <= {self.dice.randint(low, 15)}"
            self._ask(
                self.dice.choice((Op.ADVERTISE, Op.SUBSCRIBE)),
                self.dice.choice(list(self.topology.hosts)),
                text,
            )

    async def _kill_and_start(self) -> None:
        self._tell("the controller is killed")
        await self._kill()
        if self.dice.random() < 0.3:  # things go on happening
            self._pull()
            self._regain_management()
            self._regain_power()
        await self._start()

    # The controller.

    async def _start(self) -> None:
        state, ledger = recover(
            self._memory.past, lambda trees: ControlState(self.topology, PLAN, trees or self._trees)
        )
        dispatcher = Dispatcher(
            state,
            self._fabric,
            ENCODING,
            patience=2 * LONGEST_SECONDS,
            drain=0,
            journal=self._memory,
            ledger=ledger,
            damping=self._damping,
        )
        self._dispatcher = dispatcher
        for switch in self.topology.switches:
            self._fabric.disconnect(switch)
        self._fabric.report = dispatcher.heard
        await dispatcher.__aenter__()
        if self.dice.random() < 0.3:
            await dispatcher.scribe.compact(lambda: snapshot(state, ledger))
        self._connect()

    async def _kill(self) -> None:
        """What it was at stays undone; switches go on without it."""
        for task in self._pending:
            task.cancel()
        self._fabric.report = lambda event: None
        await self._dispatcher.__aexit__(None, None, None)
        await asyncio.gather(*self._pending, return_exceptions=True)
        self._pending.clear()

    def _connect(self) -> None:
        for switch in self.dice.sample(self.topology.switches, len(self.topology.switches)):
            if switch not in self._away:
                self._fabric.connect(switch)

    def _ask(self, op: Op, host: str, text: str) -> None:
        self._number += 1
        request = Request(op, str(self._number), host, Filter.parse(text, SCHEMA))
        self._pending.append(asyncio.create_task(self._dispatcher.submit(request)))

    # The end.

    async def _end_well(self) -> None:
        """All that was broken is whole again: everything wanted arrives, and nothing is left of it."""
        self._tell("all is whole again")
        self._memory.full = False
        self._pulled.clear()
        self._regain_power()
        self._cable()
        self._away.clear()
        while not self._calm:
            self._connect()
            await asyncio.sleep(0.001)
        for ended in await asyncio.gather(*self._pending, return_exceptions=True):
            if isinstance(ended, BaseException) and not isinstance(ended, JournalError | BadInput):
                raise ended
        await self._dispatcher.settled()
        verdict = await self._dispatcher.verify()
        assert verdict.holds, verdict
        state = self._dispatcher.state
        for switch in self.topology.switches:
            aim = {content_flow(ENCODING, dz, ports) for dz, ports in state.table(switch).items()}
            assert set(self._fabric.network.read(switch)) == aim, switch

    @property
    def _calm(self) -> bool:
        dispatcher = self._dispatcher
        return (
            not dispatcher.troubles
            and dispatcher.mended
            and not dispatcher.state.down
            and not dispatcher.suppressed
            and not self._fabric.fenced
            and not dispatcher.fences.closed
            and all(task.done() for task in self._pending)
        )

    # Names.

    def _cable(self) -> None:
        """Have the links that should be up, up, and the others down."""
        for link in self.topology.links:
            edge = frozenset((link.a, link.b))
            up = edge not in self._pulled and not edge & self._dark
            if up == (edge in self._fabric.down):
                self._fabric.set_link(link.a, link.b, up)

    def _some_edge(self) -> Edge:
        link = self.dice.choice(self.topology.links)
        return frozenset((link.a, link.b))

    def _some_switch(self) -> str:
        return self.dice.choice(self.topology.switches)

    def _tell(self, what: str) -> None:
        self.told.append(what)


def network(dice: Random) -> Topology:
    """A small network with ways around most failures, and a host at every switch."""
    n = dice.randint(3, 6)
    links = {(f"s{i}", f"s{dice.randrange(i)}") for i in range(1, n)}
    for _ in range(dice.choice((1, 1, 2, 4))):
        a, b = dice.sample(range(n), 2)
        links.add((f"s{max(a, b)}", f"s{min(a, b)}"))
    switches = [f"s{i}" for i in range(n)]
    return Topology.make(sorted(links), {f"h{i}": f"s{i}" for i in range(n)}, switches)


def play(seed: int) -> str | None:
    """Play a story; what went wrong, and what had happened before, if something did."""
    story = Story(seed)
    try:
        asyncio.run(story.run())
    except Exception as error:
        return f"{type(error).__name__}: {error}\n  after: {'; '.join(story.told)}"
    return None
