"""A controller as a service: a lab's switches kept at what its hosts ask for, and where they ask."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from flowsieve.control.dispatcher import Dispatcher
from flowsieve.control.state import ControlState, Settings
from flowsieve.errors import BadInput
from flowsieve.flow.compiler import Tables
from flowsieve.index.sample import EventSample
from flowsieve.lab.blueprint import HOST_INTERFACE
from flowsieve.lab.control import controlled
from flowsieve.lab.lab import Lab
from flowsieve.network.tree import TreeMap
from flowsieve.scenario.encoding import Encoding, read_encoding
from flowsieve.scenario.mistakes import Mistakes
from flowsieve.scenario.network import Network, read_network
from flowsieve.scenario.read import PARTS
from flowsieve.scenario.toml import Section
from flowsieve.server import RequestServer

CONNECT_SECONDS = 30.0


@dataclass(frozen=True)
class Config:
    """How contents are encoded, and on which network; without a network of its own it takes any lab as it is."""

    encoding: Encoding
    network: Network | None


def read_config(path: Path) -> Config:
    """A scenario's schema, index and network; what steps it has are left alone."""
    mistakes = Mistakes()
    top = Section.read(path, mistakes)
    top.only(PARTS)
    encoding = read_encoding(top)
    network = read_network(top) if "network" in top else None
    mistakes.check()
    assert encoding is not None
    return Config(encoding, network)


def control_state(config: Config, lab: Lab) -> ControlState:
    """The state of a controller that has heard of nothing yet."""
    encoding, network = config.encoding, config.network
    if network is not None and network.topology != lab.topology:
        raise BadInput(
            f"the network of {encoding.path} is not that of lab {lab.name}: {network.topology} there, "
            f"{lab.topology} here; bring it up with `flowsieve lab up {encoding.path}`"
        )
    settings = Settings(
        budget=encoding.budget,
        capacity=network.capacity if network is not None else None,
        tables=(network.tables if network is not None else None) or Tables.OVERLAY,
        sample=EventSample.of(encoding.plan, encoding.sample) if encoding.sample is not None else None,
    )
    trees = TreeMap.spread(lab.topology, network.trees) if network is not None and network.trees > 1 else None
    return ControlState(lab.topology, encoding.plan, trees, settings)


async def serve(config: Config, lab: Lab, ready: Callable[[str, float], None]) -> None:
    """Run until a signal asks to end; `ready` hears where requests are taken, and how many seconds it took."""
    start = time.perf_counter()
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    tag = config.encoding.tag
    groups = {host: event_group(lab, host, tag.group.family) for host in lab.topology.hosts}
    address = f"unix:{lab.requests}"
    async with controlled(lab, control_state(config, lab), tag) as dispatcher:
        await _connected(dispatcher)
        async with RequestServer(dispatcher, address, groups, HOST_INTERFACE):
            ready(address, time.perf_counter() - start)
            await stopped.wait()


async def _connected(dispatcher: Dispatcher) -> None:
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            await dispatcher.settled()
    except TimeoutError:
        few = "; ".join(f"{switch}: {why}" for switch, why in list(dispatcher.troubles.items())[:3])
        raise BadInput(f"not all switches are there after {CONNECT_SECONDS:.0f} s: {few}") from None


def event_group(lab: Lab, host: str, family: int) -> str:
    """Where events for a host come in."""
    addresses = lab.addresses(host)
    return addresses.events_ipv6 if family == 6 else addresses.events_ipv4
