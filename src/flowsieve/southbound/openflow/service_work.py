"""Service entries, guards and detours, over one session with a switch: what has to be changed, and having it made."""

from __future__ import annotations

from collections.abc import Sequence

from os_ken.ofproto import ofproto_v1_4 as ofp

from flowsieve.flow.detours import Protection
from flowsieve.flow.guard import Guard
from flowsieve.flow.punt import Punt
from flowsieve.southbound.openflow.detours import DetourChanges, Held, detour_changes
from flowsieve.southbound.openflow.entries import SwitchEntry
from flowsieve.southbound.openflow.events import (
    BatchApplied,
    EntriesListed,
    GroupsListed,
    MetersListed,
    PortsListed,
)
from flowsieve.southbound.openflow.guards import GuardChanges, guard_changes
from flowsieve.southbound.openflow.packed import Packer
from flowsieve.southbound.openflow.punts import Changes, changes
from flowsieve.southbound.openflow.switch_session import SwitchSession
from flowsieve.southbound.openflow.wire import GUARD_COOKIE


async def punts_to_change(session: SwitchSession, punts: Sequence[Punt]) -> Changes:
    """What makes the service entries of a switch those that are wanted."""
    entries = (await session.ask(session.connection.list_service(), EntriesListed)).entries
    meters = (await session.ask(session.connection.list_meters(), MetersListed)).meters
    return changes(entries, meters, punts)


async def detours_held(session: SwitchSession) -> Held:
    """What a switch holds of detours."""
    groups = (await session.ask(session.connection.list_groups(), GroupsListed)).groups
    entries = (await session.ask(session.connection.list_detour_entries(), EntriesListed)).entries
    return Held(groups, entries)


async def detours_to_change(session: SwitchSession, protection: Protection) -> DetourChanges:
    """What makes a switch do about dead links what it should; nothing may get around ports that are closed."""
    ask, connection = session.ask, session.connection
    held = await detours_held(session)
    ports = (await ask(connection.list_ports(), PortsListed)).ports
    wanted = protection.closed_at({port.number for port in ports if port.fenced})
    content: Sequence[SwitchEntry] = ()
    if {
        group.port for group in held.groups
    } != wanted.links:  # entries send to just the groups that there are
        content = (await ask(connection.list_entries(), EntriesListed)).entries
    packer = Packer(connection.packer.decrement, wanted.links)
    return detour_changes(held, wanted, content, packer)


async def guard_to_change(session: SwitchSession, guard: Guard) -> GuardChanges:
    """What makes a switch take in what is wanted."""
    entries = (await session.ask(session.connection.list_service(GUARD_COOKIE), EntriesListed)).entries
    meters = (await session.ask(session.connection.list_meters(), MetersListed)).meters
    return guard_changes(entries, meters, guard)


async def make_punts(session: SwitchSession, todo: Changes) -> None:
    """Have service entries changed; meters are there before what uses them, and go after it."""
    ask, connection = session.ask, session.connection
    await _make_meters(session, todo)
    if todo.install or todo.remove:
        await ask(connection.serve(todo.install, todo.remove), BatchApplied)
    if todo.old_meters:
        await ask(connection.change_meters(todo.old_meters, ofp.OFPMC_DELETE), BatchApplied)


async def make_guard(session: SwitchSession, todo: GuardChanges) -> None:
    """Have a guard changed, in the same order."""
    ask, connection = session.ask, session.connection
    await _make_meters(session, todo)
    if todo.entries:
        await ask(connection.rearrange(todo.install, todo.remove), BatchApplied)
    if todo.old_meters:
        await ask(connection.change_meters(todo.old_meters, ofp.OFPMC_DELETE), BatchApplied)


async def _make_meters(session: SwitchSession, todo: Changes | GuardChanges) -> None:
    for meters, how in ((todo.new_meters, ofp.OFPMC_ADD), (todo.changed_meters, ofp.OFPMC_MODIFY)):
        if meters:
            await session.ask(session.connection.change_meters(meters, how), BatchApplied)


async def grouped_ports(session: SwitchSession) -> list[int]:
    """The ports that have groups."""
    groups = (await session.ask(session.connection.list_groups(), GroupsListed)).groups
    return [group.port for group in groups]
