"""A controller for a lab: its switches kept at what its hosts ask for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from flowsieve.control.dispatcher import Dispatcher
from flowsieve.control.state import ControlState
from flowsieve.control.switches import SwitchEvent
from flowsieve.header.tag import Tag
from flowsieve.lab.deliveries import deliveries
from flowsieve.lab.lab import Lab
from flowsieve.southbound.openflow.fabric import OpenFlowFabric
from flowsieve.southbound.openflow.link import Timing


@asynccontextmanager
async def controlled(
    lab: Lab,
    state: ControlState,
    tag: Tag,
    *,
    addresses: Mapping[str, str] | None = None,
    listen: str | None = None,
    patience: float = 30.0,
    timing: Timing | None = None,
) -> AsyncIterator[Dispatcher]:
    """A dispatcher over the switches of a lab, for the time of an `async with` block.

    The switches are dialled at their management sockets unless other `addresses` are given.
    """
    if addresses is None:
        addresses = {switch: f"unix:{lab.management(switch)}" for switch in lab.topology.switches}

    def heard(event: SwitchEvent) -> None:
        dispatcher.heard(event)

    fabric = OpenFlowFabric(
        addresses, listen=listen, control=f"unix:{lab.control}", timing=timing, report=heard
    )
    dispatcher = Dispatcher(state, fabric, tag, deliveries(lab, tag.group.family), patience=patience)
    async with dispatcher, fabric:
        yield dispatcher
