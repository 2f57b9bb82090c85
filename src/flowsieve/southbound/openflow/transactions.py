"""What a connection waits for: a batch, changes outside of batches, lists that come in parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from flowsieve.southbound.openflow import wire
from flowsieve.southbound.openflow.detours import groups_in
from flowsieve.southbound.openflow.entries import entries_in
from flowsieve.southbound.openflow.events import (
    ConnectionEvent,
    EntriesListed,
    GroupsListed,
    MetersCounted,
    MetersListed,
    PortsListed,
)
from flowsieve.southbound.openflow.guards import meter_counts_in
from flowsieve.southbound.openflow.ports import ports_in
from flowsieve.southbound.openflow.punts import meters_in
from flowsieve.southbound.openflow.roles import RoleReply


class Phase(Enum):
    """How far a batch is."""

    ADDING = "adding"
    COMMITTING = "committing"
    DISCARDING = "discarding"


@dataclass(slots=True)
class BundleTransaction:
    """A bundle under way; operation i has the xid `first` + i, the last step of each phase the xid `awaited`."""

    bundle: int
    first: int
    count: int
    awaited: int
    phase: Phase = Phase.ADDING
    failure: tuple[int | None, wire.Failed] | None = None


@dataclass(slots=True)
class PlainTransaction:
    """Messages outside of bundles; message i has the xid `first` + i, and after them comes a barrier."""

    first: int
    count: int
    failure: wire.Failed | None = None


@dataclass(slots=True)
class RoleTransaction(PlainTransaction):
    """A question about our role, or for another; a switch that knows no roles may answer the barrier alone."""

    told: RoleReply | None = None


class List(NamedTuple):
    """How the parts of a list are read, and what is made of them."""

    read: Callable[[bytes], Iterable[Any]]
    event: Callable[[int, tuple[Any, ...]], ConnectionEvent]


LISTS = {
    wire.ListKind.ENTRIES: List(entries_in, EntriesListed),
    wire.ListKind.PORTS: List(ports_in, PortsListed),
    wire.ListKind.METERS: List(meters_in, MetersListed),
    wire.ListKind.METER_COUNTS: List(meter_counts_in, MetersCounted),
    wire.ListKind.GROUPS: List(groups_in, GroupsListed),
}
