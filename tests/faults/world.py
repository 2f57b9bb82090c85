"""A lab under a controller, with applications that publish and subscribe while things break."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from proxy import Proxy
from traffic import PATIENCE, Traffic

from flowsieve.content.schema import Schema
from flowsieve.control.dispatcher import Dispatcher
from flowsieve.control.state import ControlState
from flowsieve.errors import SwitchError
from flowsieve.header.encoding import encoding_of
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.lab.blueprint import HOST_INTERFACE
from flowsieve.lab.lab import Lab, running
from flowsieve.network.generators import generate
from flowsieve.serving.calls.event_secret import EventSecret
from flowsieve.serving.calls.handler import CallHandler
from flowsieve.serving.calls.key_rotation import ROTATION_SECONDS, KeyRotation
from flowsieve.serving.http.app import taking_calls
from flowsieve.southbound.openflow.switch_session import Timing
from flowsieve.testing.lab_control import controlled

SCHEMA = Schema.parse({name: {"type": "int", "min": 0, "max": 255} for name in ("a", "b")})
ENCODING = encoding_of("ipv6")
MARGIN = 0.3  # seconds around a fault in which a packet may be under way
ATTEMPTS = 20  # at reading all tables
TIMING = Timing(answer=1.0, echo=0.3, silence=1.2, last_retry=0.2)


class World(Traffic):
    """What there is to break, and what there is to judge by."""

    def __init__(self, lab: Lab, dispatcher: Dispatcher, proxies: Mapping[str, Proxy], listen: Path) -> None:
        super().__init__(lab)
        self.dispatcher = dispatcher
        self.proxies = proxies
        self.listen = listen
        self.gone: set[str] = set()  # switches that are gone for good

    # Faults.

    @asynccontextmanager
    async def outage(self, without: frozenset[str] = frozenset()) -> AsyncIterator[None]:
        """Packets may be lost from here until the controller has repaired what was broken."""
        start = time.monotonic()
        await self._count_dropped()
        yield
        self.gone |= without
        await self.repaired()
        self.outages.append((start - MARGIN, time.monotonic() + MARGIN))
        await self._count_anew()

    async def repaired(self) -> None:
        """Wait until the controller has set all switches right, but for those that are gone."""
        dispatcher = self.dispatcher
        async with asyncio.timeout(PATIENCE):
            while (
                dispatcher.troubles.keys() != self.gone or not dispatcher.mended or not dispatcher.protected
            ):
                await asyncio.sleep(0.005)

    # Judgement.

    async def judge(self) -> int:
        """Prove the tables, and compare the logs; how many events were lost."""
        await self.prove()
        return await self.compare()

    async def prove(self) -> None:
        """Prove that what is really installed does what is asked for."""
        for _ in range(ATTEMPTS):
            await self.repaired()
            with contextlib.suppress(SwitchError):  # a connection may be lost at any time
                verdict = await self.dispatcher.verify()
                assert verdict.holds, verdict
                return
        raise AssertionError(f"the tables cannot be read: {self.dispatcher.troubles}")


def keys_of(dispatcher: Dispatcher) -> KeyRotation:
    """Keys for events, which stay as they are."""
    return KeyRotation(
        EventSecret(os.urandom(32)), dispatcher.ledger, dispatcher.scribe, period=ROTATION_SECONDS
    )


@asynccontextmanager
async def world(topology: str, seconds: float = 120.0, detours: bool = False) -> AsyncIterator[World]:
    """A lab and its controller, for not more than so many seconds; with `detours` these bridge dead links."""
    with running(generate(topology)) as lab, tempfile.TemporaryDirectory(prefix="fs-") as directory:
        folder = Path(directory)
        proxies = {
            switch: Proxy(folder / f"{number}.sock", lab.management(switch))
            for number, switch in enumerate(lab.topology.switches)
        }
        for proxy in proxies.values():
            await proxy.start()
        listen = folder / "listen.sock"
        groups = {host: lab.addresses(host).events_ipv6 for host in lab.topology.hosts}
        state = ControlState(lab.topology, RegularPlan.make(SCHEMA))
        addresses = {switch: f"unix:{proxy.path}" for switch, proxy in proxies.items()}
        async with (
            asyncio.timeout(seconds),
            controlled(
                lab,
                state,
                ENCODING,
                addresses=addresses,
                listen=f"unix:{listen}",
                timing=TIMING,
                detours=detours,
            ) as dispatcher,
            taking_calls(
                CallHandler(dispatcher, groups, HOST_INTERFACE, keys=keys_of(dispatcher)),
                dispatcher,
                [f"unix:{lab.requests}"],
            ),
        ):
            made = World(lab, dispatcher, proxies, listen)
            try:
                await made.repaired()
                yield made
            finally:
                await asyncio.to_thread(made.stop)
                for proxy in proxies.values():
                    await proxy.stop()
