"""A controller over embedded switches, its handler, and the calls of clients."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from flowsieve.content.schema import Schema
from flowsieve.control.core import Guarding, not_guarded
from flowsieve.control.dispatcher import Dispatcher
from flowsieve.control.memory.recovery import recover
from flowsieve.control.memory.sqlite_journal import SqliteJournal
from flowsieve.control.state import ControlState, Settings
from flowsieve.header.encoding import encoding_of
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.network.topology import Topology
from flowsieve.network.tree import TreeMap
from flowsieve.protocol.call import HELLO
from flowsieve.protocol.version import VERSION
from flowsieve.serving.calls.event_secret import EventSecret
from flowsieve.serving.calls.handler import CallHandler
from flowsieve.serving.calls.key_rotation import ROTATION_SECONDS, KeyRotation
from flowsieve.southbound.embedded.network import EmbeddedNetwork
from flowsieve.testing.embedded_fabric import EmbeddedFabric
from flowsieve.testing.indexed_dispatcher import IndexedDispatcher

SCHEMA = Schema.parse({"price": {"type": "int", "min": 0, "max": 1023}, "live": {"type": "bool"}})
NETWORK = Topology.make([("s1", "s2"), ("s2", "s3")], {"ann": "s1", "bob": "s2", "cy": "s3", "dee": "s3"})
GROUPS = {"ann": "ff02::f10e:0:1", "bob": "ff02::f10e:0:2", "cy": "ff02::f10e:0:3"}
ENCODING = encoding_of("ipv6")
SECRET = EventSecret(b"of the office")
SECONDS = 20.0


def fresh(capacity: int | None, trees: TreeMap | None) -> ControlState:
    return ControlState(NETWORK, RegularPlan.make(SCHEMA, bits=8), trees, Settings(capacity=capacity))


class Office:
    """The network outlives its controllers; what they remember is in a file."""

    def __init__(self, folder: Path, capacity: int | None = None, guarding: Guarding = not_guarded) -> None:
        self.guarding = guarding
        self.path = folder / "journal.db"
        self.network = EmbeddedNetwork(NETWORK, capacity)
        self.capacity = capacity
        self.before = 0  # entries of the journal when the controller began
        self.fabric: EmbeddedFabric
        self.dispatcher: Dispatcher
        self.handler: CallHandler

    @asynccontextmanager
    async def open(
        self, patience: float = 5.0, away: str = "", signed: bool = False, **options: Any
    ) -> AsyncIterator[Office]:
        """A controller at work; the switches named in `away` are not there. Whether events are `signed`."""
        async with AsyncExitStack() as stack:
            journal = SqliteJournal(self.path, "office")
            stack.push_async_callback(journal.close)
            self.before = journal.length
            state, ledger = recover(await journal.load(SCHEMA), partial(fresh, self.capacity))
            self.fabric = EmbeddedFabric(self.network, lambda event: self.dispatcher.heard(event))
            self.dispatcher = IndexedDispatcher(
                state,
                self.fabric,
                ENCODING,
                patience=patience,
                drain=0,
                journal=journal,
                ledger=ledger,
                guarding=self.guarding,
            )
            await stack.enter_async_context(self.dispatcher)
            for switch in NETWORK.switches:
                if switch not in away.split():
                    self.fabric.connect(switch)
            if not away:
                await self.dispatcher.settled()
            if signed:
                options["keys"] = KeyRotation(SECRET, ledger, self.dispatcher.scribe, ROTATION_SECONDS)
            self.handler = CallHandler(self.dispatcher, GROUPS, "eth0", **options)
            running = asyncio.create_task(self.handler.run())
            try:
                yield self
            finally:
                running.cancel()
                with suppress(asyncio.CancelledError):
                    await running

    @property
    def ids(self) -> tuple[list[str], list[str]]:
        state = self.dispatcher.state
        return sorted(state.subscriptions), sorted(state.advertisements)

    def client(self, host: str = "ann", name: int = 1) -> Client:
        return Client(self, host, f"{name:032x}")


class Client:
    """Makes calls, with numbers of the test's choice."""

    def __init__(self, office: Office, host: str, session: str) -> None:
        self.office, self.about = office, {"session": session, "host": host}
        self.session = session

    async def ask(self, n: int, op: str, **fields: object) -> Any:
        """The whole answer."""
        version = {"version": VERSION} if op == HELLO else {}
        return await self.office.handler.call({**self.about, "n": n, "op": op, **version, **fields})

    async def ok(self, n: int, op: str, **fields: object) -> Any:
        answer = await self.ask(n, op, **fields)
        assert "ok" in answer, answer
        return answer["ok"]

    async def wrong(self, n: int, op: str, **fields: object) -> tuple[str, str]:
        return told(await self.ask(n, op, **fields))


def told(answer: Mapping[str, Any]) -> tuple[str, str]:
    assert "error" in answer, answer
    return answer["error"]["kind"], answer["error"]["text"]


def play(
    folder: Path, story: Callable[[Office], Awaitable[None]], capacity: int | None = None, **options: Any
) -> None:
    """A story at one handler."""

    async def whole() -> None:
        async with asyncio.timeout(SECONDS), Office(folder, capacity).open(**options) as office:
            await story(office)

    asyncio.run(whole())


def run(story: Callable[[], Awaitable[None]]) -> None:
    """A story that opens its handlers itself."""

    async def whole() -> None:
        async with asyncio.timeout(SECONDS):
            await story()

    asyncio.run(whole())


async def until(condition: Callable[[], bool], seconds: float = SECONDS) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.005)
