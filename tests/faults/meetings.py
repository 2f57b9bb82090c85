"""Faults that meet on real switches: cables, management and the controller's process fail at the same time."""

from __future__ import annotations

import asyncio
import random
import signal

from breakages import rack_of
from daemonic import RECEIVERS
from foreign import Foreign, foreign
from hatchery import Hatchery

TOPOLOGIES = ("ring:4", "ring:5", "grid:3,2")
SECONDS = 300.0


async def one_meeting(seed: int, hatchery: Hatchery) -> dict[str, object]:
    """A network whose faults meet, then all is whole again; nothing came twice meanwhile, nothing is lost after it."""
    dice = random.Random(seed)
    topology = dice.choice(TOPOLOGIES)
    labelled = dice.random() < 0.3
    async with foreign(topology, hatchery, SECONDS, described=True) as there:
        if labelled:
            there.index = RECEIVERS
            there.configure()
        there.point()
        await there.start()
        await there.populate()
        await there.became_ready()
        meeting = Meeting(there, dice, labelled)
        async with there.outage():
            for _ in range(dice.randint(3, 9)):
                await meeting.happen()
                await asyncio.sleep(dice.choice((0.0, 0.1, 0.5, 1.5)))
            await meeting.end()
        await there.subscribe(dice.choice(list(there.lab.topology.hosts)), "a < 100")
        lost = await there.judge()
        sent = sum(map(len, there.sent.values()))
        return {
            "topology": topology,
            "labels": labelled,
            "faults": meeting.told,
            "events": sent,
            "lost": lost,
        }


class Meeting:
    """What is broken at the moment, and what has happened."""

    def __init__(self, there: Foreign, dice: random.Random, labelled: bool) -> None:
        self.told: list[str] = []
        self._labelled = labelled
        self._there, self._dice = there, dice
        self._pulled: set[tuple[str, str]] = set()
        self._away: set[str] = set()
        self._dark: set[str] = set()  # switches without power
        self._starting = False

    async def happen(self) -> None:
        """One thing breaks, or is mended."""
        everything = (self._pull, self._pull, self._plug, self._strand, self._regain, self._kill)
        more = (self._kill_matchers,) if self._labelled else ()
        await self._dice.choice((*everything, self._lose_power, self._regain_power, *more))()

    async def end(self) -> None:
        """All is whole again."""
        await self._regain_power()
        while self._pulled:
            await self._plug()
        while self._away:
            await self._regain()
        if self._starting:
            await self._there.started()
        await self._there.became_ready()
        while (told := await self._there.ask("/v1/topology"))["down"] or told["fenced"]:
            await asyncio.sleep(0.02)

    async def _pull(self) -> None:
        link = self._dice.choice(self._there.lab.topology.links)
        await self._set(link.a, link.b, up=False)

    async def _plug(self) -> None:
        if self._pulled:
            await self._set(*self._dice.choice(sorted(self._pulled)), up=True)

    async def _set(self, a: str, b: str, *, up: bool) -> None:
        self.told.append(f"{'plug' if up else 'pull'} {a}-{b}")
        if up:
            self._pulled.discard((a, b))
        else:
            self._pulled.add((a, b))
        if not self._dark & {a, b}:
            await asyncio.to_thread(self._there.lab.set_link, a, b, up)

    async def _strand(self) -> None:
        switch = self._dice.choice(self._there.lab.topology.switches)
        self.told.append(f"strand {switch}")
        self._away.add(switch)
        await asyncio.to_thread(self._there.strand, switch)

    async def _regain(self) -> None:
        if self._away:
            switch = self._dice.choice(sorted(self._away))
            self.told.append(f"regain {switch}")
            self._away.discard(switch)
            await asyncio.to_thread(self._there.regain, switch)

    async def _lose_power(self) -> None:
        """Of a rack, besides those that are dark already."""
        rack = rack_of(self._there.lab.topology, self._dice) - self._dark
        if rack:
            self.told.append(f"without power: {' '.join(sorted(rack))}")
            self._dark |= rack
            await asyncio.to_thread(self._there.lab.set_power, rack, False)

    async def _regain_power(self) -> None:
        """What was pulled or plugged meanwhile is so after a moment."""
        if self._dark:
            self.told.append("power is back")
            back, self._dark = self._dark, set()
            await asyncio.to_thread(self._there.lab.set_power, back, True)
            for link in self._there.lab.topology.links:
                if back & {link.a, link.b}:
                    plugged = (link.a, link.b) not in self._pulled
                    await asyncio.to_thread(self._there.lab.set_link, link.a, link.b, plugged)

    async def _kill(self) -> None:
        self.told.append("kill")
        await self._there.stop_it(signal.SIGKILL)
        self._there.begin()
        self._starting = True

    async def _kill_matchers(self) -> None:
        self.told.append("kill matchers")
        await asyncio.to_thread(self._there.kill_matchers)
