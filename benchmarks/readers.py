"""From a cable that is pulled until events arrive again, with and without a hundred clients that read all tables.

The clients are one process of their own. Each asks for `/v1/flows` and, as soon as it has the answer, again. Failures
with and without them take turns, so that both meet the same machine; what a failure costs is measured as in `mending`.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import random
import selectors
import socket
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event

from benchmarks.bench import Result, at_least, at_most, rounded
from benchmarks.mending import (
    CALM_SECONDS,
    RATE,
    SUBSCRIPTIONS,
    WANTED,
    Failure,
    Mending,
    crowded,
    outage_of,
)
from benchmarks.served import served
from benchmarks.talk import Logs, Pair

READERS, FAILURES, BUDGET = 100, 8, 48
LONGEST_SECONDS = 220.0
PATIENCE_SECONDS = 60.0
ASKED = b"GET /v1/flows HTTP/1.1\r\nHost: controller\r\n\r\n"


class Readers:
    """Clients that keep reading while they are told to; `answers` counts what they got."""

    def __init__(self, path: str) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._reading, self._end = spawn.Event(), spawn.Event()
        self.answers: Synchronized[int] = spawn.Value("L", 0)
        self._process = spawn.Process(
            target=_read, args=(path, self._reading, self._end, self.answers), daemon=True
        )

    def __enter__(self) -> Readers:
        self._process.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._end.set()
        self._reading.set()
        self._process.join(PATIENCE_SECONDS)
        if self._process.is_alive():
            self._process.kill()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        self._reading.set()
        try:
            yield
        finally:
            self._reading.clear()


class Reader:
    """One client: asks, reads to the end of the answer, asks again."""

    def __init__(self, path: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(path)
        self.asking = False
        self._left = 0  # bytes of the answer
        self._head = b""

    def ask(self) -> None:
        self.asking, self._left, self._head = True, 0, b""
        self.socket.sendall(ASKED)

    def read(self, buffer: bytearray) -> bool:
        """Take what there is; whether the answer is complete."""
        count = self.socket.recv_into(buffer)
        if not count:
            raise RuntimeError("the controller has closed the connection of a reader")
        if self._left:
            self._left -= count
        else:
            self._head += buffer[:count]
            head, ended, body = self._head.partition(b"\r\n\r\n")
            if not ended:
                return False
            if not head.startswith(b"HTTP/1.1 200"):
                raise RuntimeError(f"a reader was told {head[:200]!r} {body[:200]!r}")
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
            self._left = int(length.partition(b":")[2]) - len(body)
        self.asking = self._left > 0
        return not self.asking


def _read(path: str, reading: Event, end: Event, answers: Synchronized[int]) -> None:
    """Ask with all clients while `reading` is set; answers that are due are taken in any case."""
    buffer, readers = bytearray(1 << 18), [Reader(path) for _ in range(READERS)]
    with selectors.DefaultSelector() as selector:
        for reader in readers:
            selector.register(reader.socket, selectors.EVENT_READ, reader)
        while not end.is_set():
            if not any(reader.asking for reader in readers):
                reading.wait()
            if reading.is_set():
                for reader in readers:
                    if not reader.asking:
                        reader.ask()
            for key, _ in selector.select(0.1):
                if key.data.read(buffer):
                    answers.value += 1
                    if reading.is_set():
                        key.data.ask()


async def played() -> tuple[dict[int, list[Failure]], Logs, int, list[int]]:
    """Failures by the number of readers, what was logged meanwhile, all entries, and the answers in each failure."""
    state, events = crowded(BUDGET)
    hosts, dice = list(state.topology.hosts), random.Random(1)
    failures: dict[int, list[Failure]] = {0: [], READERS: []}
    answers = []
    async with asyncio.timeout(LONGEST_SECONDS), served(state) as (lab, dispatcher):
        with (
            Pair(lab, hosts[0], hosts[-1], WANTED, events, RATE) as pair,
            Readers(str(lab.requests)) as readers,
        ):
            mending = Mending(lab, dispatcher, pair)
            await mending.until(pair.talks)
            await asyncio.sleep(CALM_SECONDS)
            for _ in range(FAILURES):
                link = dice.choice(mending.between())
                failures[0].append(await mending.fail(*link))
                with readers.at_work():
                    before = readers.answers.value
                    await mending.until(lambda known=before: readers.answers.value > known)
                    link = dice.choice(mending.between())
                    failures[READERS].append(await mending.fail(*link))
                    answers.append(readers.answers.value - before)
                await asyncio.sleep(CALM_SECONDS)
            logs = await asyncio.to_thread(pair.end)
        entries = sum(len(state.table(switch)) for switch in state.topology.switches)
    return failures, logs, entries, answers


def run() -> Result:
    failures, logs, entries, answers = asyncio.run(played())
    lasted = {
        readers: sorted(1e3 * outage_of(failure, logs).from_order for failure in some)
        for readers, some in failures.items()
    }
    median = {readers: statistics.median(some) for readers, some in lasted.items()}
    return Result(
        "readers",
        {
            "entries in all tables": entries,
            "subscriptions": SUBSCRIPTIONS + 1,
            "failures of each kind": FAILURES,
            "readers": READERS,
            "answers to readers per failure, median": statistics.median(answers),
            "ms from the order to pull the cable": {
                f"{readers} readers": {"median": rounded(median[readers]), "worst": rounded(some[-1])}
                for readers, some in lasted.items()
            },
        },
        goals={
            "entries": at_least(entries, 20_000),
            f"median with {READERS} readers over that with none": at_most(median[READERS] / median[0], 1.2),
            "events that came twice": at_most(logs.doubled, 0),
        },
    )
