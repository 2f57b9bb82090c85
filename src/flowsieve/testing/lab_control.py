"""A controller for a lab: its switches kept at what its hosts ask for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from flowsieve.control.core import Guarding, no_detours, not_guarded
from flowsieve.control.state import ControlState
from flowsieve.flow.last_hop import deliveries_of
from flowsieve.header.encoding import Encoding
from flowsieve.lab.lab import Lab
from flowsieve.southbound.fabric import Report, SwitchEvent
from flowsieve.southbound.openflow.fabric import OpenFlowFabric
from flowsieve.southbound.openflow.switch_session import Timing
from flowsieve.testing.indexed_dispatcher import IndexedDispatcher


@asynccontextmanager
async def controlled(
    lab: Lab,
    state: ControlState,
    encoding: Encoding,
    *,
    addresses: Mapping[str, str] | None = None,
    listen: str | None = None,
    timing: Timing | None = None,
    heard: Report = lambda event: None,
    detours: bool = False,
    guarding: Guarding = not_guarded,
) -> AsyncIterator[IndexedDispatcher]:
    """A dispatcher over the switches of a lab, for the time of an `async with` block.

    The switches are dialled at their management sockets unless other `addresses` are given. `heard` hears what the
    dispatcher hears. With `detours` these bridge links that die.
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
    dispatcher = IndexedDispatcher(
        state,
        fabric,
        encoding,
        deliveries_of(lab.topology, encoding.family),
        guarding=guarding,
        detour_room=(lambda topology: None) if detours else no_detours,
    )
    async with dispatcher, fabric:
        yield dispatcher
