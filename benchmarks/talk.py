"""Two applications of a lab in a process of their own: one publishes at a constant rate, one subscribes; both log.

They share no interpreter with the controller, as real ones do not: neither has to wait for the other.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from pathlib import Path
from types import TracebackType

from benchmarks.served import application
from flowsieve.client.stats import Stats
from flowsieve.lab.lab import Lab

NAP_SECONDS = 0.0005
DIGEST_SECONDS = 1.5  # until a publisher that fell quiet has told how much it sent
PATIENCE_SECONDS = 30.0
Values = dict[str, int]


@dataclass
class Logs:
    """When each event was sent and when it came, by its number and this machine's clock; what was counted."""

    sent: dict[int, float] = field(default_factory=dict)
    came: dict[int, float] = field(default_factory=dict)
    doubled: int = 0
    stats: Stats = field(default_factory=Stats)  # the subscriber's

    def lost(self, begin: float = 0.0, end: float = float("inf")) -> list[int]:
        """The numbers of events that were sent in between and never came, in order."""
        return [number for number, at in self.sent.items() if begin <= at < end and number not in self.came]


class Pair:
    """Both applications, for the time of a `with` block. What was sent before the subscription is not logged."""

    def __init__(
        self, lab: Lab, publisher: str, subscriber: str, filter: str, events: Sequence[Values], rate: float
    ) -> None:
        self.publisher, self.subscriber = publisher, subscriber
        spawn = multiprocessing.get_context("spawn")
        self._began, self._end = spawn.Event(), spawn.Event()
        self._answer, answer = spawn.Pipe(duplex=False)
        self._process = spawn.Process(
            target=_run,
            args=(lab.directory, (publisher, subscriber), filter, events, rate),
            kwargs={"began": self._began, "end": self._end, "answer": answer},
            daemon=True,
        )

    def __enter__(self) -> Pair:
        self._process.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        self._process.join(PATIENCE_SECONDS)
        if self._process.is_alive():
            self._process.kill()

    def talks(self) -> bool:
        """Whether events are sent, and losses counted."""
        return self._began.is_set()

    def check(self) -> None:
        """Raise an error if they have ended by themselves."""
        if not self._process.is_alive():
            raise RuntimeError("the applications have ended; they say why above")

    def end(self) -> Logs:
        """Have them stop; what they logged."""
        self._end.set()
        if not self._answer.poll(PATIENCE_SECONDS):
            raise RuntimeError("the applications do not tell what they logged")
        logs = self._answer.recv()
        assert isinstance(logs, Logs)
        return logs


def _run(
    lab: Path,
    hosts: tuple[str, str],
    filter: str,
    events: Sequence[Values],
    rate: float,
    *,
    began: Event,
    end: Event,
    answer: Connection,
) -> None:
    answer.send(asyncio.run(_talk(Lab.read(lab), hosts, filter, events, rate, began, end)))


async def _talk(
    lab: Lab,
    hosts: tuple[str, str],
    filter: str,
    events: Sequence[Values],
    rate: float,
    began: Event,
    end: Event,
) -> Logs:
    logs = Logs()
    publisher, subscriber = (application(lab, host) for host in hosts)
    async with publisher as near, subscriber as far:
        await near.advertise()
        subscription = await far.subscribe(filter)

        async def listen() -> None:
            async for event in subscription:
                logs.doubled += event.seq in logs.came
                logs.came.setdefault(event.seq, time.monotonic())

        listening = asyncio.create_task(listen())
        turns, begin, number = cycle(events), time.monotonic(), 0
        while not end.is_set():
            while number < (time.monotonic() - begin) * rate:
                at, number = time.monotonic(), number + 1
                logs.sent[near.publish_nowait(next(turns))] = at
            if subscription.checked and not began.is_set():
                began.set()
            await asyncio.sleep(NAP_SECONDS)
        await asyncio.sleep(DIGEST_SECONDS)
        logs.stats = replace(far.stats)
        listening.cancel()
    return logs
