"""A controller for a lab: its switches kept at what its hosts ask for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from flowsieve.control.core import Watcher
from flowsieve.control.dispatcher import Dispatcher
from flowsieve.control.memory.journal import Journal
from flowsieve.control.repair.damping import DampingSettings
from flowsieve.control.requests.ledger import Ledger
from flowsieve.control.state import ControlState
from flowsieve.flow.last_hop import deliveries_of
from flowsieve.flow.punt import Punt
from flowsieve.header.encoding import Encoding
from flowsieve.lab.lab import Lab
from flowsieve.southbound.fabric import Report, SwitchEvent
from flowsieve.southbound.openflow.fabric import OpenFlowFabric
from flowsieve.southbound.openflow.switch_session import Timing


@asynccontextmanager
async def controlled(
    lab: Lab,
    state: ControlState,
    encoding: Encoding,
    *,
    addresses: Mapping[str, str] | None = None,
    listen: str | None = None,
    patience: float = 30.0,
    timing: Timing | None = None,
    journal: Journal | None = None,
    ledger: Ledger | None = None,
    punts: Sequence[Punt] = (),
    damping: DampingSettings | None = None,
    watcher: Watcher | None = None,
    heard: Report = lambda event: None,
) -> AsyncIterator[Dispatcher]:
    """A dispatcher over the switches of a lab, for the time of an `async with` block.

    The switches are dialled at their management sockets unless other `addresses` are given. `heard` hears what the
    dispatcher hears.
    """

    def report(event: SwitchEvent) -> None:
        dispatcher.heard(event)
        heard(event)

    fabric = OpenFlowFabric(
        lab.switch_addresses if addresses is None else addresses,
        listen=listen,
        control=f"unix:{lab.control}",
        timing=timing,
        report=report,
    )
    dispatcher = Dispatcher(
        state,
        fabric,
        encoding,
        deliveries_of(lab.topology, encoding.family),
        patience=patience,
        journal=journal,
        ledger=ledger,
        punts=punts,
        damping=damping,
        watcher=watcher,
    )
    async with dispatcher, fabric:
        yield dispatcher
