"""Clients that ask without pause while their controller is killed and started again.

They send what was not answered again, by the same number, and compare answers: so they know to the last request what
the controller has promised.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

from daemonic import Daemonic

from flowsieve.client.control_session import Transport, transport_to
from flowsieve.errors import ControlLost
from flowsieve.protocol.answer import BUSY, kind_in

PAUSE = 0.02  # seconds at most, from an answer to the next request
ANSWER_SECONDS = 120.0  # for an answer, with restarts in between

Where = Callable[[random.Random], str]  # a filter, by dice


class Burst:
    """What clients have asked for, and what became of it."""

    def __init__(self, world: Daemonic, dice: random.Random, where: Where, pause: float) -> None:
        self.answered = 0
        self.again = 0  # requests that were sent again because no answer came
        self.refused: Counter[str] = Counter()
        self._world = world
        self._dice, self._where, self._pause = dice, where, pause
        self._held: dict[str, tuple[str, str]] = {}
        self._texts: set[str] = set()
        self._names = count()
        self._ending = False

    async def ask_on(self, host: str) -> None:
        """One client: subscribe, or end a subscription, until the burst is over."""
        world, dice = self._world, self._dice
        transport = transport_to(world.control)
        about = {"session": os.urandom(16).hex(), "host": host, "token": world.token(host), "deadline": 30.0}
        mine: list[str] = []
        try:
            for number in count(1):
                if self._ending:
                    return
                if mine and dice.random() < 0.4:
                    id = mine.pop(dice.randrange(len(mine)))
                    answer = await self._ask(transport, {**about, "n": number, "op": "unsub", "id": id})
                    assert "ok" in answer, answer
                    del self._held[id]
                else:
                    text = self._text()
                    answer = await self._ask(transport, {**about, "n": number, "op": "sub", "filter": text})
                    if "ok" in answer:
                        self._held[answer["ok"]["id"]] = host, text
                        mine.append(answer["ok"]["id"])
                    else:
                        self.refused[answer["error"]["text"]] += 1
                await asyncio.sleep(self._pause * dice.random())
        finally:
            await transport.close()

    def judged_by(self, world: Daemonic) -> None:
        """Ask another controller what there is."""
        self._world = world

    async def check(self) -> None:
        """The controller holds what it has promised, and nothing else of what these clients asked for."""
        rows = await self._world.ask("/v1/subscriptions")
        there = {row["id"]: (row["host"], row["filter"]) for row in rows if row["filter"] in self._texts}
        assert there == self._held, {
            "forgotten": {id: self._held[id] for id in self._held.keys() - there.keys()},
            "too many": {id: there[id] for id in there.keys() - self._held.keys()},
        }

    def _text(self) -> str:
        unique = f"b < {1000 + next(self._names)}"  # always true
        text = f"({self._where(self._dice)}) and {unique}"
        self._texts.add(text)
        return text

    async def _ask(self, transport: Transport, message: Mapping[str, Any]) -> Mapping[str, Any]:
        """The answer to a request, for which it may take several attempts; all answers are the same."""
        end, attempts = time.monotonic() + ANSWER_SECONDS, 0
        while True:
            assert time.monotonic() < end, f"no answer to {message}"
            try:
                answer = await transport.call(message)
                if kind_in(answer) != BUSY:
                    break
            except ControlLost:
                pass
            attempts += 1
            await asyncio.sleep(0.05)
        if attempts:
            self.again += 1
            with contextlib.suppress(ControlLost):  # killed once more
                told = await transport.call(message)
                assert told == answer or kind_in(told) == BUSY, (told, answer)
        self.answered += 1
        return answer


def anywhere(dice: random.Random) -> str:
    """A filter somewhere in the space."""
    low, wide = dice.randrange(200), dice.randrange(4, 40)
    return f"{low} <= a < {low + wide} and b >= {dice.randrange(200)}"


@asynccontextmanager
async def bursting(
    world: Daemonic,
    dice: random.Random,
    clients: int = 6,
    where: Where = anywhere,
    pause: float = PAUSE,
) -> AsyncIterator[Burst]:
    """Clients on several hosts ask for the time of an `async with` block; at its end all have their answers."""
    burst, hosts = Burst(world, dice, where, pause), list(world.lab.topology.hosts)
    async with asyncio.TaskGroup() as tasks:
        for number in range(clients):
            tasks.create_task(burst.ask_on(hosts[number % len(hosts)]))
        yield burst
        burst._ending = True
