"""Keys for events: whatever is lost and restarted on the way, who is promised events believes who publishes."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from flowsieve.control.memory.journal import NoJournal
from flowsieve.control.memory.scribe import Scribe
from flowsieve.control.requests.ledger import Ledger
from flowsieve.serving.calls.event_secret import EventSecret, believed_epochs, signing_epoch
from flowsieve.serving.calls.key_rotation import Clocks, KeyRotation
from flowsieve.serving.calls.leases import Leases
from flowsieve.serving.calls.sessions import ClientSessions

LEASE = 9.0
STEP = LEASE / 9
STEPS = 400
DEAF = 2  # answers to one session that are lost one after the other


@dataclass
class Session:
    """A client's side: the stage of its keys, when it asks next, and whether it holds something."""

    stage: int
    asks_at: float
    holds: bool = False
    unheard: int = 0


class Story:
    """Sessions and a controller that may be restarted; the time is set by hand."""

    def __init__(self, dice: Random, scribe: Scribe) -> None:
        self.dice, self.scribe = dice, scribe
        self.now = 0.0
        self.ledger = Ledger()
        self.clients: dict[str, Session] = {}
        self.seen: set[int] = set()
        self.restart()

    def restart(self) -> None:
        """The controller knows of those who hold something, and not what keys they have."""
        self.sessions, self.leases = ClientSessions(), Leases(LEASE)
        for name, client in self.clients.items():
            if client.holds:
                self.sessions.restore(name, "ann")
                self.leases.renew(name, self.now)
        clocks = Clocks(lambda: self.now, lambda: 1e9 + self.now)
        self.rotation = KeyRotation(EventSecret(b"secret"), self.ledger, self.scribe, 3 * LEASE, clocks)

    def call(self, name: str, holds: bool = False) -> None:
        """A call that may not come, or whose answer may be lost."""
        client = self.clients[name]
        client.asks_at = self.now + LEASE / 3
        fate = self.dice.choice(["well", "well", "well", "lost", "unheard"])
        if fate == "lost":
            return
        known = self.sessions.meet(name, "ann")
        known.stage = client.stage
        self.leases.renew(name, self.now)
        if fate == "unheard" and client.unheard < DEAF:
            client.unheard += 1
            return
        client.unheard, client.stage = 0, self.rotation.stage
        client.holds |= holds

    def begin(self) -> None:
        name = f"{len(self.clients)}"
        self.clients[name] = Session(self.rotation.stage, self.now + LEASE / 3)
        self.sessions.meet(name, "ann")
        self.leases.renew(name, self.now)

    async def go_on(self) -> None:
        self.now += self.dice.choice([STEP / 4, STEP, 2 * STEP])
        for name, client in self.clients.items():
            if client.asks_at <= self.now:
                self.call(name)
        for name in self.leases.ended(self.now):
            self.leases.end(name)
            self.sessions.leave(name)
            self.clients.pop(name, None)  # it is told, and begins anew
        await self.rotation.look(self.sessions, LEASE)
        self.seen.add(self.rotation.stage)

    def check(self) -> None:
        promised = [client for client in self.clients.values() if client.holds]
        for publisher in promised:
            for subscriber in promised:
                assert signing_epoch(publisher.stage) in believed_epochs(subscriber.stage)


async def played(seed: int) -> set[int]:
    """A story of so many steps; the stages that it went through."""
    dice, scribe = Random(seed), Scribe(NoJournal())
    running = asyncio.create_task(scribe.run())
    story = Story(dice, scribe)
    for _ in range(STEPS):
        chance = dice.random()
        if chance < 0.1 and len(story.clients) < 5:
            story.begin()
        elif chance < 0.3 and story.clients:
            story.call(dice.choice(sorted(story.clients)), holds=True)
        elif chance < 0.35:
            story.rotation.rotate()
        elif chance < 0.37:
            story.restart()
        await story.go_on()
        story.check()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return story.seen


@given(st.integers(0, 1 << 32))
def test_who_is_promised_events_believes_all_who_publish(seed: int) -> None:
    assert len(asyncio.run(played(seed))) > 4  # or it has told us little
