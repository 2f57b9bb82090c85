"""A lab whose applications are served: its controller and its request server, on the loop of this process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial

from flowsieve.client.session import Client, connect
from flowsieve.control.dispatcher import Dispatcher
from flowsieve.control.state import ControlState
from flowsieve.header.encoding import encoding_of
from flowsieve.lab.blueprint import HOST_INTERFACE
from flowsieve.lab.lab import Lab, running
from flowsieve.serving.calls.event_secret import EventSecret
from flowsieve.serving.calls.handler import CallHandler
from flowsieve.serving.calls.key_rotation import ROTATION_SECONDS, KeyRotation
from flowsieve.serving.http.app import taking_calls
from flowsieve.testing.lab_control import controlled

ENCODING = encoding_of("ipv6")


@asynccontextmanager
async def served(state: ControlState, detours: bool = False) -> AsyncIterator[tuple[Lab, Dispatcher]]:
    """The network of a state as a lab, with the tables that follow from it in place."""
    with running(state.topology) as lab:
        groups = {host: lab.addresses(host).events_ipv6 for host in lab.topology.hosts}
        async with controlled(lab, state, ENCODING, detours=detours) as dispatcher:
            await dispatcher.settled()
            while not dispatcher.protected:
                await asyncio.sleep(0.01)
            keys = KeyRotation(
                EventSecret(os.urandom(32)), dispatcher.ledger, dispatcher.scribe, ROTATION_SECONDS
            )
            handler = CallHandler(dispatcher, groups, HOST_INTERFACE, keys=keys)
            async with taking_calls(handler, dispatcher, [f"unix:{lab.requests}"]):
                yield lab, dispatcher


def application(lab: Lab, host: str) -> AbstractAsyncContextManager[Client]:
    """A session of an application on a host, though this process is on none."""
    token = lab.directory / "tokens" / host  # which a controller in a process of its own asks for
    shown = token.read_text() if token.exists() else ""
    return connect(f"unix:{lab.requests}", host, shown, inside=partial(lab.inside, host))
