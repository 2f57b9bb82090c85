"""Stories of faults on the embedded network: several at once, and the controller killed in between.

A story is made by its seed. While it lasts nothing may loop or arrive twice; in the end, when all that was broken is
whole again, everything wanted arrives, and no fence is left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from random import Random

from lives import PATIENCE, Lives

from flowsieve.control.repair.damping import DampingSettings
from flowsieve.control.request import Op, Request
from flowsieve.errors import BadInput, JournalError
from flowsieve.network.mend import Edge
from flowsieve.network.topology import Topology
from flowsieve.network.tree import TreeMap

CALM = DampingSettings(half_life_seconds=0.01, longest_seconds=0.05)


class Story(Lives):
    """A network, its controllers, and what happens to them; `told` has it step by step."""

    def __init__(self, seed: int) -> None:
        self.dice = Random(seed)
        topology = network(self.dice)
        trees = TreeMap.spread(topology, 2) if self.dice.random() < 0.3 else None
        damping = CALM if self.dice.random() < 0.5 else None
        super().__init__(topology, trees, damping, detours=seed % 2 == 1)
        self.told: list[str] = []
        self._pulled: set[Edge] = set()
        self._dark: set[str] = set()  # switches without power

    async def run(self) -> None:
        """Whatever happens, nothing loops or doubles meanwhile, and all is right in the end."""
        async with asyncio.timeout(PATIENCE):
            await self.start()
            try:
                await self.populate()
                for _ in range(self.dice.randint(3, 16)):
                    await self._step()
                    await self._pass()
                await self._end_well()
            finally:
                await self.kill()

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
        tree = self.dice.choice(self.dispatcher.state.trees.trees)
        if tree.edges:
            a, b = self.dice.sample(self.dice.choice(tree.edges), 2)
            self._tell(f"strand {a}, pull and plug {a}-{b}")
            self.strand(a)
            for _ in range(2):
                await self._pass()
                self._pulled ^= {frozenset((a, b))}
                self._cable()

    def _lose_management(self) -> None:
        switch = self._some_switch()
        self._tell(f"without management: {switch}")
        self.strand(switch)

    def _regain_management(self) -> None:
        if self.away:
            self._tell("management is back")
            for switch in self.dice.sample(sorted(self.away), self.dice.randint(1, len(self.away))):
                self.away.discard(switch)
                self.fabric.connect(switch)

    def _lose_power(self) -> None:
        """A rack: a switch and some of those beside it."""
        first = self._some_switch()
        near = self.topology.linked(first)
        rack = {first, *self.dice.sample(near, self.dice.randint(0, len(near)))}
        self._tell(f"without power: {' '.join(sorted(rack))}")
        self._dark |= rack
        for switch in self.dice.sample(sorted(rack), len(rack)):
            self.fabric.stop(switch)

    def _regain_power(self) -> None:
        if self._dark:
            self._tell("power is back")
            back, self._dark = self._dark, set()
            for switch in self.dice.sample(sorted(back), len(back)):
                self.fabric.restart(switch)
                if switch in self.away:
                    self.fabric.disconnect(switch)
            self._cable()

    def _restart_a_switch(self) -> None:
        switch = self._some_switch()
        if switch not in self._dark:
            self._tell(f"restart {switch}")
            self.fabric.restart(switch)
            if switch in self.away:
                self.fabric.disconnect(switch)

    def _lose_an_answer(self) -> None:
        """The connection goes with it, and comes back."""
        switch = self._some_switch()
        self._tell(f"an answer gets lost: {switch}")
        self.fabric.lose_answer(switch)
        self.connect(self._shuffled())

    def _fill_the_disk(self) -> None:
        self.memory.full, self.memory.reserve = not self.memory.full, self.dice.random() < 0.5
        self._tell("the disk is full" if self.memory.full else "the disk has room")

    def _change_requests(self) -> None:
        state = self.dispatcher.state
        if self.dice.random() < 0.5 and state.subscriptions:
            ended = state.subscriptions[self.dice.choice(sorted(state.subscriptions))]
            request = Request(Op.UNSUBSCRIBE, ended.id, ended.endpoint)
            with suppress(BadInput):  # it ends already
                state.check(request)
                self.pending.append(asyncio.create_task(self.dispatcher.submit(request)))
        else:
            low = self.dice.randrange(16)
            text = f"{low} <= a <= {self.dice.randint(low, 15)}"
            self.ask(
                self.dice.choice((Op.ADVERTISE, Op.SUBSCRIBE)),
                self.dice.choice(list(self.topology.hosts)),
                text,
            )

    async def _kill_and_start(self) -> None:
        self._tell("the controller is killed")
        await self.kill()
        if self.dice.random() < 0.3:  # things go on happening
            self._pull()
            self._regain_management()
            self._regain_power()
        await self.start(compact=self.dice.random() < 0.3)

    # The end.

    async def _end_well(self) -> None:
        """All that was broken is whole again: everything wanted arrives, and nothing is left of it."""
        self._tell("all is whole again")
        self.memory.full = False
        self.fabric.lose_no_more()
        self._pulled.clear()
        self._regain_power()
        self._cable()
        self.away.clear()
        while not self._calm:
            self.connect(self._shuffled())
            await asyncio.sleep(0.001)
        for ended in await asyncio.gather(*self.pending, return_exceptions=True):
            if isinstance(ended, BaseException) and not isinstance(ended, JournalError | BadInput):
                raise ended
        await self.check()

    @property
    def _calm(self) -> bool:
        dispatcher = self.dispatcher
        return (
            not dispatcher.troubles
            and dispatcher.mended
            and not dispatcher.state.down
            and not dispatcher.suppressed
            and dispatcher.protected
            and not self.fabric.fenced
            and not dispatcher.fences.closed
            and all(task.done() for task in self.pending)
        )

    # Names.

    def _cable(self) -> None:
        """Have the links that should be up, up, and the others down."""
        for link in self.topology.links:
            edge = frozenset((link.a, link.b))
            up = edge not in self._pulled and not edge & self._dark
            if up == (edge in self.fabric.down):
                self.fabric.set_link(link.a, link.b, up)

    def _some_edge(self) -> Edge:
        link = self.dice.choice(self.topology.links)
        return frozenset((link.a, link.b))

    def _shuffled(self) -> list[str]:
        return self.dice.sample(self.topology.switches, len(self.topology.switches))

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


def play(seeds: Iterable[int]) -> dict[int, str]:
    """Play stories side by side; of those that went wrong, what did, and what had happened before."""

    async def played(seed: int) -> tuple[int, str | None]:
        story = Story(seed)
        try:
            await story.run()
        except Exception as error:
            return seed, f"{_first(error)!r} after: {'; '.join(story.told)}"
        return seed, None

    async def together() -> dict[int, str]:
        ended = await asyncio.gather(*map(played, seeds))
        return {seed: trouble for seed, trouble in ended if trouble is not None}

    return asyncio.run(together())


def _first(error: BaseException) -> BaseException:
    """Of what went wrong in several tasks, the first."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
