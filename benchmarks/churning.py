"""Clients that subscribe and end subscriptions, and how long each of their requests took."""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np

from benchmarks.bench import rounded
from flowsieve.client.control_session import Transport
from flowsieve.client.inband_transport import ControlSocket, InbandTransport
from flowsieve.client.wire import CallWire
from flowsieve.errors import ControlLost

DEADLINE = 10.0  # seconds for an answer


@dataclass
class Tally:
    """What became of requests: seconds of those that were served, and the others."""

    seconds: list[float] = field(default_factory=list)
    unserved: list[str] = field(default_factory=list)
    unanswered: int = 0
    begin: float = field(default_factory=time.perf_counter)
    end: float = 0.0

    def figures(self) -> dict[str, float]:
        p50, p99 = (1e3 * np.quantile(self.seconds, [0.5, 0.99])).tolist() if self.seconds else (0.0, 0.0)
        return {
            "requests": len(self.seconds),
            "per second": rounded(self.per_second),
            "p50 ms": rounded(p50),
            "p99 ms": rounded(p99),
            "not served": len(self.unserved),
            "not answered": self.unanswered,
        }

    @property
    def per_second(self) -> float:
        return len(self.seconds) / max(self.end - self.begin, 1e-9)


class Churner:
    """A session on a host: it subscribes, and later ends the subscription, and so on."""

    def __init__(
        self, transport: Transport, host: str, token: str, filters: Sequence[str], tally: Tally, seed: int = 0
    ) -> None:
        self.held: dict[str, str] = {}
        self._transport = transport
        self._about = {"session": os.urandom(16).hex(), "host": host, "token": token, "deadline": DEADLINE}
        self._filters = filters
        self._tally = tally
        self._numbers = count(1)
        self._dice = random.Random(seed)

    async def turn(self) -> None:
        """One request."""
        if len(self.held) < 4 or (len(self.held) < 12 and self._dice.random() < 0.5):
            text = self._dice.choice(self._filters)
            answer = await self._ask(op="sub", filter=text)
            if answer is not None:
                self.held[answer["id"]] = text
        else:
            id = self._dice.choice(list(self.held))
            if await self._ask(op="unsub", id=id) is not None:
                del self.held[id]

    async def leave(self) -> None:
        """End all of it."""
        with suppress(ControlLost):
            await self._transport.call({**self._about, "n": next(self._numbers), "op": "bye"})

    async def _ask(self, **what: str) -> Mapping[str, Any] | None:
        number, begin = next(self._numbers), time.perf_counter()
        try:
            answer = await self._transport.call({**self._about, "n": number, "answered": number, **what})
        except ControlLost:
            self._tally.unanswered += 1
            return None
        if "ok" not in answer:
            self._tally.unserved.append(str(answer["error"]))
            return None
        self._tally.seconds.append(time.perf_counter() - begin)
        ok: Mapping[str, Any] = answer["ok"]
        if "keys" in ok:  # said from now on, as applications do, or they are told with every answer
            self._about["stage"] = ok["keys"]["stage"]
        return ok


async def as_fast(churners: Sequence[Churner], tally: Tally, seconds: float) -> None:
    """All of them ask without pause for so long."""
    end = time.perf_counter() + seconds

    async def work(churner: Churner) -> None:
        while time.perf_counter() < end:
            await churner.turn()

    tally.begin = time.perf_counter()
    await asyncio.gather(*map(work, churners))
    tally.end = time.perf_counter()


async def at_rate(churners: Sequence[Churner], tally: Tally, seconds: float, rate: float) -> int:
    """They take turns at a rate, if they can; those that are due while all wait are counted and left out."""
    free, begin, late, started = list(churners), time.perf_counter(), 0, 0
    tasks: set[asyncio.Task[None]] = set()

    async def work(churner: Churner) -> None:
        await churner.turn()
        free.append(churner)

    tally.begin = begin
    while (now := time.perf_counter()) < begin + seconds:
        while started < (now - begin) * rate:
            started += 1
            if free:
                task = asyncio.create_task(work(free.pop(0)))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
            else:
                late += 1
        await asyncio.sleep(0.001)
    await asyncio.gather(*tasks)
    tally.end = time.perf_counter()
    return late


class LossyWire:
    """A host's socket that loses some of what it sends and of what comes."""

    def __init__(self, wire: CallWire, share: float, dice: random.Random) -> None:
        self.lost = self.carried = 0
        self._wire, self._share, self._dice = wire, share, dice

    def send(self, datagram: bytes) -> None:
        if self._carries():
            self._wire.send(datagram)

    def listen(self, hear: Callable[[bytes], None]) -> None:
        self._wire.listen(lambda datagram: hear(datagram) if self._carries() else None)

    def close(self) -> None:
        self._wire.close()

    def _carries(self) -> bool:
        if self._dice.random() < self._share:
            self.lost += 1
            return False
        self.carried += 1
        return True


def inband(interface: str, loss: float = 0.0, seed: int = 0) -> tuple[InbandTransport, LossyWire]:
    """Calls through the network, from the namespace that the caller is in."""
    wire = LossyWire(ControlSocket(interface), loss, random.Random(seed))
    return InbandTransport(wire), wire


class LeanHttp:
    """Calls over one connection of HTTP, with as little work as can be: the server is what is measured."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def call(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            async with asyncio.timeout(DEADLINE + 5):
                if self._streams is None:
                    self._streams = await asyncio.open_unix_connection(self._path)
                reader, writer = self._streams
                body = json.dumps(message).encode()
                head = f"POST /v1/calls HTTP/1.1\r\nHost: controller\r\nContent-Length: {len(body)}\r\n\r\n"
                writer.write(head.encode() + body)
                told = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = int(told.partition(b"content-length:")[2].split(b"\r\n", 1)[0])
                answer: Mapping[str, Any] = json.loads(await reader.readexactly(length))
                return answer
        except (OSError, EOFError, TimeoutError, ValueError) as error:
            raise ControlLost(f"no answer: {error!r}") from None

    async def close(self) -> None:
        if self._streams is not None:
            self._streams[1].transport.abort()
