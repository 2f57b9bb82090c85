"""A lab under a controller that takes requests, and clients on its hosts: real sockets, switches and packets."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from flowsieve.client.interests import Subscription
from flowsieve.client.session import Client, connect
from flowsieve.content.schema import Schema
from flowsieve.control.core import Guarding, not_guarded
from flowsieve.control.state import ControlState
from flowsieve.flow.guard import known_sources
from flowsieve.header.encoding import encoding_of
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.lab.blueprint import HOST_INTERFACE
from flowsieve.lab.lab import Lab, running
from flowsieve.network.topology import Topology
from flowsieve.serving.calls.event_secret import EventSecret
from flowsieve.serving.calls.handler import CallHandler
from flowsieve.serving.calls.key_rotation import KeyRotation
from flowsieve.serving.http.app import taking_calls
from flowsieve.serving.late_publishers import LatePublishers
from flowsieve.serving.metrics.metrics import Metrics
from flowsieve.southbound.fabric import PuntedPacket, SwitchEvent
from flowsieve.testing.indexed_dispatcher import IndexedDispatcher
from flowsieve.testing.lab_control import controlled

SECONDS = 60.0
BITS = 9
NETWORK = Topology.make(
    [("s1", "s2"), ("s2", "s3"), ("s3", "s1")], {"ann": "s1", "bob": "s2", "cy": "s3", "dee": "s3"}
)
SCHEMA = Schema.parse(
    {"price": {"type": "int", "min": 0, "max": 1023}, "side": {"type": "enum", "values": ["buy", "sell"]}}
)


class Place:
    """A lab under a controller that takes requests, and the clients on its hosts."""

    def __init__(self, lab: Lab, control: str, metrics: Metrics, clients: AsyncExitStack) -> None:
        self.lab, self.control, self.metrics, self._clients = lab, control, metrics, clients
        self.dispatcher: IndexedDispatcher
        self.behind: LatePublishers

    async def client(self, host: str) -> Client:
        inside = partial(self.lab.inside, host)
        return await self._clients.enter_async_context(connect(self.control, host, inside=inside))


@asynccontextmanager
async def place(
    lab: Lab, path: Path, header: str, lease: float, guarding: Guarding = not_guarded
) -> AsyncIterator[Place]:
    encoding = encoding_of(header)
    state = ControlState(NETWORK, RegularPlan.make(SCHEMA, bits=BITS, room=encoding.room))
    own = [lab.addresses(host) for host in NETWORK.hosts]
    groups = [each.events_ipv6 if header == "ipv6" else each.events_ipv4 for each in own]
    control, metrics = f"unix:{path / 'control'}", Metrics()

    def heard(event: SwitchEvent) -> None:
        if isinstance(event, PuntedPacket):
            behind.late.heard(event)

    async with (
        asyncio.timeout(SECONDS),
        controlled(lab, state, encoding, heard=heard, guarding=guarding) as dispatcher,
    ):
        await dispatcher.settled()
        switches, by_host = dispatcher._core.switches, dict(zip(NETWORK.hosts, groups, strict=True))
        behind = LatePublishers.of(
            dispatcher,
            lambda: by_host,
            partial(known_sources, family=encoding.family),
            switches.send_packet,
            switches.inject_packet,
        )
        async with (
            taking_calls(
                CallHandler(
                    dispatcher,
                    by_host,
                    HOST_INTERFACE,
                    keys=KeyRotation(EventSecret(os.urandom(32)), dispatcher.ledger, dispatcher.scribe, 1e6),
                    lease=lease,
                    observer=metrics,
                ),
                dispatcher,
                [control],
            ),
            AsyncExitStack() as clients,
        ):
            there = Place(lab, control, metrics, clients)
            there.dispatcher, there.behind = dispatcher, behind
            yield there
            await behind.late.close()


def play(
    path: Path,
    story: Callable[[Place], Awaitable[None]],
    header: str = "ipv6",
    lease: float = 30.0,
    guarding: Guarding = not_guarded,
) -> None:
    async def whole() -> None:
        with running(NETWORK) as lab:
            async with place(lab, path, header, lease, guarding) as there:
                await story(there)

    asyncio.run(whole())


async def take(subscription: Subscription, count: int) -> list[dict[str, Any]]:
    async with asyncio.timeout(20):
        return [dict((await anext(subscription)).values) for _ in range(count)]


async def until(condition: Callable[[], bool], seconds: float = 20) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)
