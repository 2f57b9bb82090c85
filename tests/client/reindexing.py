"""Applications that publish and subscribe while the network goes over to another plan, judged by what they logged."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from flowsieve.client.interests import Subscription
from flowsieve.client.session import Client
from flowsieve.content.filter import Filter

Event = dict[str, Any]
SECONDS = 30.0


@dataclass
class Log:
    """What an application has published: by number."""

    client: Client
    events: dict[int, Event] = field(default_factory=dict)


@dataclass
class Reader:
    """A subscription, and what it got, in its order."""

    client: Client
    subscription: Subscription
    filter: Filter
    got: list[tuple[bytes, int]] = field(default_factory=list)

    @classmethod
    async def of(cls, client: Client, text: str) -> Reader:
        return cls(client, await client.subscribe(text), Filter.parse(text, client.schema))

    def wanted(self, logs: list[Log]) -> list[tuple[bytes, int]]:
        return [
            (log.client.publisher, seq)
            for log in logs
            for seq, event in log.events.items()
            if log.client is not self.client and self.filter.matches(event)
        ]

    async def read(self, logs: list[Log]) -> None:
        """Take all that is wanted; what is missing is told by name."""
        wanted = set(self.wanted(logs))
        try:
            async with asyncio.timeout(SECONDS):
                while not wanted <= set(self.got):
                    event = await anext(self.subscription)
                    self.got.append((event.publisher, event.seq))
        except TimeoutError:
            missing = sorted(seq for _, seq in wanted - set(self.got))
            raise AssertionError(f"{len(missing)} of {len(wanted)} never came: {missing[:20]}") from None

    def check(self, logs: list[Log]) -> None:
        """Exactly what is wanted, each once, and nobody says that something was lost."""
        assert self.subscription.waiting == 0
        assert sorted(self.got) == sorted(self.wanted(logs))
        counts = self.client.stats
        assert (counts.lost, counts.malformed, counts.forged, counts.overflow) == (0,) * 4

    def in_order(self, log: Log) -> bool:
        """Whether what came of a publisher came in the order in which it was published."""
        got = [seq for publisher, seq in self.got if publisher == log.client.publisher]
        return got == sorted(got)


async def publish_while(
    work: Awaitable[Any], logs: list[Log], draw: Callable[[Random], Event], pause: float, more: int = 50
) -> Any:
    """Have all publish, one after the other, until some work is done, and a little longer; what it came to."""
    dice, doing, left = Random(7), asyncio.ensure_future(work), more
    while left:
        left -= doing.done()
        for log in logs:
            event = draw(dice)
            log.events[await log.client.publish(event)] = event
        await asyncio.sleep(pause)
    return await doing


def stays_behind(client: Client) -> None:
    """Have a client be one of an older release, which knows of no other index."""
    client._connection.index = None
    client._connection.reindex = lambda told, said: None
