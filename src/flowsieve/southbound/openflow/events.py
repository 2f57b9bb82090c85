"""What happens on a connection, as small values; `request` is the number that the request got when it was made."""

from __future__ import annotations

from typing import NamedTuple

from flowsieve.southbound.openflow.detours import LinkGroup
from flowsieve.southbound.openflow.entries import SwitchEntry
from flowsieve.southbound.openflow.guards import MeterCount
from flowsieve.southbound.openflow.ports import Port
from flowsieve.southbound.openflow.punts import Meter
from flowsieve.southbound.openflow.roles import RoleReply, RoleStatus
from flowsieve.southbound.openflow.wire import Failed, Monitored, PacketIn, PortStatus


class Ready(NamedTuple):
    """The handshake is over; this is the switch's datapath id."""

    datapath: int


class BatchApplied(NamedTuple):
    """The switch has carried out a whole batch, or all changes that were asked for."""

    request: int


class BatchRefused(NamedTuple):
    """The switch has carried out nothing of a batch, because of one operation (or of the batch itself: None).

    Of changes to ports or meters, which are no batch, it has carried out the others.
    """

    request: int
    op_index: int | None
    failure: Failed


class RoleTold(NamedTuple):
    """The switch has said what we are to it, or nothing: it knows no roles."""

    request: int
    told: RoleReply | None


class EntriesListed(NamedTuple):
    """The entries that the switch holds."""

    request: int
    entries: tuple[SwitchEntry, ...]


class PortsListed(NamedTuple):
    """The ports that the switch has."""

    request: int
    ports: tuple[Port, ...]


class MetersListed(NamedTuple):
    """The meters that the switch has."""

    request: int
    meters: tuple[Meter, ...]


class MetersCounted(NamedTuple):
    """What the switch's meters have counted."""

    request: int
    counts: tuple[MeterCount, ...]


class GroupsListed(NamedTuple):
    """The groups of links that the switch has."""

    request: int
    groups: tuple[LinkGroup, ...]


Listing = EntriesListed | PortsListed | MetersListed | MetersCounted | GroupsListed
Notice = PacketIn | PortStatus | Monitored | RoleStatus  # what a switch tells unasked
ConnectionEvent = Ready | BatchApplied | BatchRefused | RoleTold | Listing | Notice
