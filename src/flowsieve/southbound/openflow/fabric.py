"""The `Fabric` of OpenFlow switches, on one asyncio loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Self

from flowsieve.errors import BadTopology, SwitchError, Unacknowledged, nearest
from flowsieve.flow.detours import Protection
from flowsieve.flow.diff import FlowOp, OpKind
from flowsieve.flow.entry import Flow
from flowsieve.flow.entry_steps import EntrySteps, PortActions, Sample, removes
from flowsieve.flow.guard import Guard, Refusals
from flowsieve.flow.others import Foreign, PortSetting
from flowsieve.flow.punt import Punt
from flowsieve.network.names import SwitchId
from flowsieve.southbound.fabric import (
    Claim,
    Connected,
    DetourCosts,
    Disconnected,
    Fabric,
    Report,
    ServiceChanges,
    SwitchEvent,
)
from flowsieve.southbound.leisure import Leisure
from flowsieve.southbound.openflow.channel import Channel
from flowsieve.southbound.openflow.datapath_id import switch_id
from flowsieve.southbound.openflow.datapath_sync import DatapathBehind, DatapathSync
from flowsieve.southbound.openflow.guards import GROUPS, GuardChanges
from flowsieve.southbound.openflow.mastership import Mastership
from flowsieve.southbound.openflow.ports import MAX_PORT
from flowsieve.southbound.openflow.punts import Changes
from flowsieve.southbound.openflow.rejected_peers import RejectedPeers
from flowsieve.southbound.openflow.switch_session import Lost, SwitchSession, Timing
from flowsieve.southbound.socket_address import SocketAddress
from flowsieve.tasks import Tasks

MAX_PRIORITY = 0xFFFF
MOST_REMEMBERED = 1 << 16  # lengths of dz with sets of ports
MOST_ACTIONS = 900  # of an entry; a message is no longer than 65,535 bytes
MOST_GREETED = 256  # peers that dialled us and did not say yet who they are


class OpenFlowFabric(Fabric):
    """Switches that are dialled at their addresses, or that dial us and say who they are: their datapath ids.

    Where a switch that is dialled has an identity as well, whoever answers there has to have it.
    `control` is the control socket of the ovs-vswitchd that all the switches live in, if there is one: it knows
    when packets meet the new tables. `unknown` hears of an identity that nobody has named, and may name the switch if
    it has dialled us; otherwise the switch is refused.
    With a `claim` the switches are ours alone to change, or none of them is; owners of parts of the space, who share
    switches, have none.
    """

    def __init__(
        self,
        addresses: Mapping[str, str],
        *,
        listen: str | None = None,
        identities: Mapping[str, SwitchId] | None = None,
        unknown: Callable[[SwitchId], str | None] = lambda identity: None,
        timing: Timing | None = None,
        decrement: bool = True,
        control: str | None = None,
        report: Report = lambda event: None,
        claim: Claim | None = None,
    ) -> None:
        self.timing = timing or Timing()
        self._addresses = {switch: SocketAddress.parse(text) for switch, text in addresses.items()}
        self._listen = SocketAddress.parse(listen) if listen is not None else None
        self._identities = {identity: switch for switch, identity in (identities or {}).items()}
        self._name = unknown
        self._decrement = decrement
        self._datapath = DatapathSync(
            SocketAddress.parse(control) if control is not None else None, self.timing.lag
        )
        self._report = report
        self._channels: dict[str, Channel] = {}
        self._mastership = (
            Mastership(claim, lambda: len(self._channels), self._leave_all) if claim is not None else None
        )
        for switch in dict.fromkeys([*self._addresses, *self._identities.values()]):
            self._add_channel(switch)
        # Switches whose packets may still meet older tables, even if theirs are right: those of whom nobody has said
        # otherwise since they were changed, perhaps by a controller before us. Each failure has a mark of its own.
        self._behind: dict[str, object] = dict.fromkeys(self._channels, object())
        self._right: dict[str, tuple[PortActions, set[Sample]]] = {}
        self._leisure = Leisure(lambda: any(channel.at_work for channel in self._channels.values()))
        self._changed = asyncio.Event()  # set, and replaced, when connections come and go
        self._server: asyncio.Server | None = None
        self._tasks = Tasks()
        self._greeted = 0
        self._turned_away = RejectedPeers()

    # Beginning and end.

    async def __aenter__(self) -> Self:
        if self._listen is not None:
            try:
                self._server = await self._listen.listen(self._dialled)
            except OSError as error:
                why = error.strerror or error
                raise SwitchError(f"switches cannot dial us at {self._listen}: {why}") from None
        await self._tasks.__aenter__()
        for switch, address in self._addresses.items():
            self._tasks.start(
                self._channels[switch].keep_dialling(address, partial(self._check_identity, switch))
            )
        return self

    async def __aexit__(self, *error: object) -> None:
        if self._server is not None:
            self._server.close()
        self._datapath.close()
        await self._tasks.__aexit__(None, None, None)

    async def wait_connected(self, seconds: float = 3.0) -> None:
        """Wait until all switches are connected; raises an error that names those that are not."""
        try:
            async with asyncio.timeout(seconds):
                while self.missing:
                    await self._changed.wait()
        except TimeoutError:
            reasons = [f"switch {name} is not connected: {reason}" for name, reason in self.missing.items()]
            raise SwitchError("; ".join(reasons)) from None

    @property
    def standing_by(self) -> str | None:
        """Why every switch is left alone, if it is."""
        return self._mastership.standing_by if self._mastership is not None else None

    async def stood_by(self) -> str:
        """Wait until every switch is left alone, and say why."""
        if self._mastership is None:
            return await asyncio.Future()  # nobody else's claim is minded
        await self._mastership.decided.wait()
        return self._mastership.standing_by or ""

    @property
    def missing(self) -> dict[str, str]:
        """The switches to which there is no connection, and why."""
        return {switch: c.why_not for switch, c in self._channels.items() if not c.connected}

    @property
    def unknown(self) -> dict[str, str]:
        """The switches of which it is unknown what they hold, and why."""
        return {switch: c.unknown for switch, c in self._channels.items() if c.unknown is not None}

    # What a controller asks of it.

    async def apply(self, switch: str, ops: Sequence[FlowOp]) -> None:
        """Have a switch carry out a whole batch or nothing; returns once packets meet the new table."""
        self.check(switch, ops)
        if ops:
            removed = switch in self._behind or removes(ops)
            async with self._followed(switch) as channel:
                with self._datapath.batch():
                    await channel.apply(ops)
                await self._datapath.follow(removed=removed)

    async def read(self, switch: str) -> tuple[Flow, ...]:
        """The entries that a switch holds of ours and within our groups, in the order of their matches.

        Entries there that no `Flow` can describe are removed on the way. Packets meet what is read: where that is not
        known of a table which was changed before, it is waited for.
        """
        async with self._followed(switch) as channel:
            flows, removed = await channel.read(GROUPS)
            if removed or switch in self._behind:
                await self._datapath.follow(removed=True)
        return flows

    async def look(self, switch: str) -> tuple[tuple[Flow, ...], int]:
        """The entries that `read` would give, and how many it would remove; nothing is changed, and nobody waits."""
        return await self._channel(switch).look(GROUPS, self._leisure)

    def foreign(self, switch: str) -> tuple[Foreign, ...]:
        """The entries of others that events may meet at a switch, as the last read or look found them."""
        return self._channels[switch].foreign if switch in self._channels else ()

    async def settings(self, switch: str) -> Mapping[int, PortSetting]:
        """The ports of a switch that are not open, and how they are set."""
        ports = await self._channel(switch).list_ports(looking=True)
        return {port.number: port.setting for port in ports if port.setting}

    async def ports(self, switch: str) -> Mapping[int, bool]:
        """The ports of a switch, and whether each is up."""
        return {port.number: port.up for port in await self._channel(switch).list_ports()}

    async def fence(self, switch: str, port: int, closed: bool) -> None:
        """Close a port (it neither receives nor forwards), or open it again; returns once that is so."""
        await self._channel(switch).fence(port, closed)
        await self._datapath.follow()

    async def fences(self, switch: str) -> frozenset[int]:
        """The ports of a switch that are closed."""
        return frozenset(port.number for port in await self._channel(switch).list_ports() if port.fenced)

    async def protect(self, switch: str, protection: Protection) -> None:
        """Make what a switch does about dead links exactly this, but for ports that are closed."""
        if await self._channel(switch).protect(protection):
            await self._datapath.follow()

    async def protection(self, switch: str, *, looking: bool = False) -> Protection:
        """What a switch does about dead links."""
        return await self._channel(switch).protection(looking=looking)

    async def punt(self, switch: str, punts: Sequence[Punt]) -> None:
        """Make the service entries of a switch, and their limits, exactly these."""
        if await self._channel(switch).punt(punts):
            await self._datapath.follow()

    async def look_at_punts(self, switch: str, punts: Sequence[Punt]) -> ServiceChanges:
        """What `punt` would change; nothing is changed."""
        return _counted(await self._channel(switch).look_at_punts(punts))

    async def guard(self, switch: str, guard: Guard) -> None:
        """Make what a switch takes in exactly this; returns once packets meet it."""
        async with self._followed(switch) as channel:
            changed = await channel.guard(guard, self._datapath.follow)
            if changed.entries or switch in self._behind:
                await self._datapath.follow(removed=bool(changed.remove) or switch in self._behind)

    async def look_at_detours(self, switch: str, protection: Protection) -> DetourCosts:
        """What `protect` would change; nothing is changed."""
        todo = await self._channel(switch).look_at_detours(protection)
        entries = len(todo.install), len(todo.remove), len(todo.resent)
        return DetourCosts(*entries, len(todo.new_groups), len(todo.changed_groups), len(todo.old_groups))

    async def look_at_guard(self, switch: str, guard: Guard) -> ServiceChanges:
        """What `guard` would change; nothing is changed."""
        return _counted(await self._channel(switch).look_at_guard(guard))

    async def refusals(self, switch: str) -> Mapping[int, Refusals]:
        """What the guard of a switch has refused at each host's port."""
        return await self._channel(switch).refusals()

    async def send_packet(self, switch: str, port: int, data: bytes) -> None:
        """Have a switch send a packet out of a port; nobody says whether it did."""
        await self._channel(switch).send_packet(port, data)

    async def inject_packet(self, switch: str, port: int, data: bytes) -> None:
        """Have a switch take in a packet as if it had come in on a port."""
        await self._channel(switch).inject_packet(port, data)

    def check(self, switch: str, ops: Sequence[FlowOp]) -> None:
        """Refuse a switch that is not there, and operations that no message can express."""
        self._channel(switch)
        for op in ops.samples(self._found_right(switch, ops)) if isinstance(ops, EntrySteps) else ops:
            flow = op.flow
            if not 0 <= flow.priority <= MAX_PRIORITY:
                raise SwitchError(
                    f"switch {switch} has no priority {flow.priority}; right is 0 to {MAX_PRIORITY}"
                )
            if op.kind is OpKind.REMOVE:
                continue  # an entry is removed whatever it does
            if len(flow.actions) > MOST_ACTIONS:
                raise SwitchError(
                    f"{flow.match} goes to {len(flow.actions)} ports of switch {switch}; "
                    f"a message has room for {MOST_ACTIONS}"
                )
            if what := flow.flaw:
                raise SwitchError(f"switch {switch} cannot do what is asked for {flow.match}: {what}")
            for action in flow.actions:
                if not 1 <= action.port <= MAX_PORT:
                    raise SwitchError(f"switch {switch} has no port {action.port} for {flow.match}")

    def _found_right(self, switch: str, steps: EntrySteps) -> set[Sample]:
        """What was looked at before of entries with these actions, and can be asked of the switch."""
        known = self._right.get(switch)
        if known is None or known[0] is not steps.actions or len(known[1]) > MOST_REMEMBERED:
            known = self._right[switch] = steps.actions, set()
        return known[1]

    @asynccontextmanager
    async def _followed(self, switch: str) -> AsyncIterator[Channel]:
        """A switch's channel, for a block after which packets meet its table; where it fails, that is not known."""
        channel, mark = self._channel(switch), self._behind.get(switch)
        try:
            yield channel
        except BaseException as error:
            self._behind[switch] = object()
            if not isinstance(error, DatapathBehind):
                raise
            channel.unknown = channel.unknown or str(error)
            raise Unacknowledged(switch=switch, reason=str(error)) from error
        if self._behind.get(switch) is mark:
            self._behind.pop(switch, None)

    # Connections.

    def _dialled(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._greeted >= MOST_GREETED:
            writer.transport.abort()
        else:
            self._greeted += 1
            self._tasks.start(self._accept(reader, writer))

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A switch has dialled us; which one it is, its datapath id says."""
        session = SwitchSession((reader, writer), self.timing, self._decrement)
        try:
            identity = switch_id(await session.greet())
        except (OSError, Lost):
            return  # it is not a switch
        except SwitchError as error:
            self._turned_away.tell(writer, str(error))
            return
        finally:
            self._greeted -= 1
        channel = self._channel_for(identity)
        if channel is not None and channel.switch in self._addresses:
            why = f"switch {channel.switch} is dialled at {self._addresses[channel.switch]}; one connection will do"
            self._turned_away.tell(writer, why)
            channel = None
        if channel is None:
            session.abort()
        else:
            await channel.serve(session)

    def _channel_for(self, identity: SwitchId) -> Channel | None:
        """The channel of a switch that has dialled us, a new one for a newcomer; None if it is not one of ours."""
        if identity not in self._identities:
            name = self._name(identity)
            if name is None or name in self._channels:
                return None
            self._identities[identity] = name
            self._add_channel(name)
            self._behind[name] = object()
        return self._channels[self._identities[identity]]

    def _add_channel(self, switch: str) -> None:
        self._channels[switch] = Channel(switch, self.timing, self._decrement, self._heard, self._mastership)

    def _leave_all(self, reason: str) -> None:
        for channel in self._channels.values():
            channel.leave(reason)

    def _check_identity(self, switch: str, identity: SwitchId) -> None:
        """Raise where a switch that was dialled is another than it should be."""
        right = [each for each, name in self._identities.items() if name == switch]
        if right and identity not in right:
            self._name(identity)
            raise SwitchError(f"the switch there has the datapath id {identity}; right is {right[0]}")

    def _heard(self, event: SwitchEvent) -> None:
        if isinstance(event, Connected | Disconnected):
            self._changed.set()
            self._changed = asyncio.Event()
        self._report(event)

    def _channel(self, switch: str) -> Channel:
        if switch not in self._channels:
            few = ", ".join(map(repr, [*self._channels][:5]))
            hint = nearest(switch, self._channels) or f"; there are {few}"
            raise BadTopology(f"there is no switch {switch!r}{hint}")
        return self._channels[switch]


def _counted(todo: Changes | GuardChanges) -> ServiceChanges:
    counts = todo.install, todo.remove, todo.new_meters, todo.changed_meters, todo.old_meters
    return ServiceChanges(*map(len, counts))
