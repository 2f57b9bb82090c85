"""What switches tell: who connects is seen to, what changes is looked at, and all parts hear what concerns them."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

from flowsieve.control.core import Core
from flowsieve.control.repair.failover import Failover
from flowsieve.control.repair.mender import Mender
from flowsieve.control.switches.fleet import Fleet
from flowsieve.control.switches.hindrances import Hindrances
from flowsieve.control.switches.reconciler import RETRY_SECONDS
from flowsieve.errors import Refused, SwitchError
from flowsieve.southbound.fabric import Connected, Disconnected, PortChanged, SwitchEvent, TableChanged

log = logging.getLogger(__name__)


class Greeter:
    """Hears of switches, and sees to the ports and fences of one that has connected before its table."""

    def __init__(
        self, core: Core, fleet: Fleet, mender: Mender, failover: Failover, hindrances: Hindrances
    ) -> None:
        self._core = core
        self._fleet = fleet
        self._mender = mender
        self._failover = failover
        self._hindrances = hindrances
        self._looking: set[str] = set()  # the switches at which hindrances will be looked for
        self._connections: Counter[str] = Counter()  # each has a number, and so has the time without one

    def heard(self, event: SwitchEvent) -> None:
        """Take note of what a switch tells; on the loop."""
        match event:
            case Connected(switch):
                self._connections[switch] += 1
                self._mender.connected(switch)
                self._core.tasks.start(self._greet(switch))
            case Disconnected(switch, reason):
                self._connections[switch] += 1
                self._fleet.disconnected(switch, reason)
                self._failover.disconnected(switch)
            case PortChanged(switch, port, up):
                self._mender.changed(switch, port, up)
                self._look_for_hindrances(switch)
                if up and any(switch in edge for edge in self._mender.fences.closed):
                    self._core.tasks.start(self._fence_again(switch))
            case TableChanged(switch, owners):
                self._fleet.room.changed(switch)
                if not any(map(self._core.state.owner.minds, owners)):
                    return
                log.warning("somebody has changed the table of switch %s", switch)
                self._core.tasks.start(self._fleet.punt(switch))
                self._failover.doubt(switch)
                self._fleet[switch].doubt("somebody has changed its table")
                self._look_for_hindrances(switch)
            case _:
                pass

    async def look_at_ports(self, switch: str) -> None:
        """The network has grown at a switch: see to its ports again."""
        connection = self._connections[switch]
        try:
            ports = await self._ports(switch)
            if self._connections[switch] == connection:  # else they are read anew
                self._mender.told(switch, ports)
            await self._fleet.punt(switch)
            self._look_for_hindrances(switch)
        except SwitchError as error:
            log.warning("switch %s: %s", switch, error)

    async def _ports(self, switch: str) -> Mapping[int, bool]:
        """How the ports of a switch are; read again where the network has grown meanwhile, and counts otherwise."""
        while True:
            topology = self._core.state.topology
            ports = await self._mender.read(switch)
            if topology is self._core.state.topology:
                return ports

    async def _fence_again(self, switch: str) -> None:
        """A port came up that may not have been there when it was fenced."""
        await self._insist(switch, lambda: self._mender.fences.renew(switch))

    async def _greet(self, switch: str) -> None:
        """A switch has connected: see to its ports and fences before its table."""
        connection = self._connections[switch]

        async def see() -> None:
            await self._fleet.punt(switch)
            ports = await self._ports(switch)
            await self._failover.greet(switch)
            if self._connections[switch] == connection:  # else they may be others by now
                self._fleet.connected(switch)
                self._mender.told(switch, ports)
                self._look_for_hindrances(switch)

        await self._insist(switch, see)

    def _look_for_hindrances(self, switch: str) -> None:
        """See what others have put in the way at a switch, once it is where it should be and no fence is under way."""

        async def look() -> None:
            with suppress(SwitchError, Refused):
                await self._fleet.caught_up([switch])
                while any(switch in edge for edge in self._mender.blocked):
                    await self._mender.eased()
            self._looking.discard(switch)
            with suppress(SwitchError):  # it will connect anew
                await self._hindrances.look(switch)

        if switch not in self._looking:
            self._looking.add(switch)
            self._core.tasks.start(look())

    async def _insist(self, switch: str, work: Callable[[], Awaitable[None]]) -> None:
        """Do it again until it is done or the connection is another: that one is greeted on its own."""
        connection, told = self._connections[switch], ""
        while self._connections[switch] == connection:
            try:
                await work()
                return
            except SwitchError as error:
                if str(error) != told:
                    told = str(error)
                    log.warning("switch %s: %s", switch, told)
            await asyncio.sleep(RETRY_SECONDS)
