"""An application on a host, as a process of its own: publishes readings, or subscribes; tells what it counts.

It reads its orders from standard input, an object first and then a word a line (`go`, `drift`, `stop`), and tells by
JSON lines on standard output. What it sent, or got, is in its log when it has stopped. It ends with its input.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from array import array
from contextlib import AsyncExitStack, suppress
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from flowsieve.client.interests import Subscription
from flowsieve.client.session import Client, connect
from flowsieve.client.telemetry import counts_of
from flowsieve.errors import ControlLost
from flowsieve.loop.workload import NAMES, Readings

TELL_SECONDS = 0.25
TICK_SECONDS = 0.002
DRAWN = 2048  # readings at a time
BEHIND_SECONDS = 0.05  # of events that are made up for at once; a busy machine publishes fewer
AT_ONCE = 16  # subscriptions that are asked for
TRIES = 8  # to reach the controller
LONGEST_ORDERS = 1 << 26  # bytes


@dataclass(frozen=True, slots=True)
class AppOrders:
    """What an application is to do: publish at a rate, or subscribe; and where its log goes."""

    control: str
    host: str
    token: str
    log: str
    rate: float = 0.0
    seed: int = 0
    filters: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class Publishing:
    """Publishes readings at a rate, and remembers each."""

    def __init__(self, client: Client, orders: AppOrders) -> None:
        self._client, self._orders = client, orders
        self._readings = Readings(np.random.default_rng(orders.seed))
        self.drifted = False
        self._seqs, self._values = array("q"), list[np.ndarray[Any, Any]]()
        self._waiting: list[list[int]] = []
        self._of_drifted = False

    async def run(self) -> None:
        rate, due = self._orders.rate, time.monotonic()
        while True:
            now = time.monotonic()
            due = max(due, now - BEHIND_SECONDS)
            while due <= now:
                self._seqs.append(self._client.publish_nowait(dict(zip(NAMES, self._next(), strict=True))))
                due += 1 / rate
            await asyncio.sleep(TICK_SECONDS)

    def _next(self) -> list[int]:
        if not self._waiting or self._of_drifted != self.drifted:
            self._forget()
            self._of_drifted = self.drifted
            drawn = self._readings.draw(DRAWN, self.drifted)
            self._values.append(drawn)
            self._waiting = drawn.tolist()[::-1]
        return self._waiting.pop()

    def _forget(self) -> None:
        """Of the last readings drawn, keep those that were published."""
        if self._values:
            self._values[-1] = self._values[-1][: len(self._values[-1]) - len(self._waiting)]

    def write(self) -> None:
        self._forget()
        self._waiting = []
        values = np.concatenate(self._values) if self._values else np.zeros((0, len(NAMES)), np.int64)
        np.savez(
            self._orders.log, publisher=self._client.publisher.hex(), seqs=np.array(self._seqs), values=values
        )


class Subscribing:
    """Subscribes to filters, and remembers what came for each: subscription, publisher, sequence number."""

    def __init__(self, client: Client, orders: AppOrders) -> None:
        self._client, self._orders = client, orders
        self._publishers: dict[bytes, int] = {}
        self._rows = array("q")
        self._readers: list[asyncio.Task[None]] = []

    async def begin(self) -> None:
        room = asyncio.Semaphore(AT_ONCE)

        async def one(number: int, text: str) -> None:
            async with room:
                subscription = await self._client.subscribe(text)
            self._readers.append(asyncio.create_task(self._read(number, subscription)))

        await asyncio.gather(*(one(number, text) for number, text in enumerate(self._orders.filters)))

    async def _read(self, number: int, subscription: Subscription) -> None:
        async for event in subscription:
            publisher = self._publishers.setdefault(event.publisher, len(self._publishers))
            self._rows.extend((number, publisher, event.seq))

    def write(self) -> None:
        names = np.array([publisher.hex() for publisher in self._publishers], dtype=str)
        np.savez(self._orders.log, publishers=names, rows=np.array(self._rows, np.int64).reshape(-1, 3))


def tell(**what: Any) -> None:
    print(json.dumps(what), flush=True)


async def counting(client: Client) -> None:
    while True:
        tell(at=time.time(), **counts_of(client.stats)._asdict())
        await asyncio.sleep(TELL_SECONDS)


async def connected(kept: AsyncExitStack, orders: AppOrders) -> Client:
    """A session; a controller that has just started may take a while to answer, while it compiles what it needs."""
    for _ in range(TRIES - 1):
        with suppress(ControlLost):
            return await kept.enter_async_context(connect(orders.control, orders.host, orders.token))
    return await kept.enter_async_context(connect(orders.control, orders.host, orders.token))


async def work(orders: AppOrders, commands: asyncio.StreamReader) -> None:
    async with AsyncExitStack() as kept:
        client = await connected(kept, orders)
        publishing = Publishing(client, orders) if orders.rate else None
        subscribing = None if publishing else Subscribing(client, orders)
        if publishing is not None:
            await client.advertise("True")
        if subscribing is not None:
            await subscribing.begin()
        tell(ready=True)
        tasks: list[asyncio.Task[None]] = [asyncio.create_task(counting(client))]
        while (word := (await commands.readline()).decode().strip()) not in ("", "stop"):
            if publishing is None:
                continue
            if word == "go":
                tasks.append(asyncio.create_task(publishing.run()))
            publishing.drifted = publishing.drifted or word == "drift"
            for task in tasks:
                if task.done():
                    task.result()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        (publishing or subscribing).write()  # type: ignore[union-attr]
        tell(ended=client.stats.to_json())


async def main() -> None:
    commands = asyncio.StreamReader(limit=LONGEST_ORDERS)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    orders = AppOrders(**json.loads(await commands.readline()))
    await work(orders, commands)


if __name__ == "__main__":
    asyncio.run(main())
