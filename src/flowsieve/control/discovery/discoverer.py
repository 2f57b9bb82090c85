"""Discovery at work: has live switches send the beacons, hands on what they hear, and logs differences."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Collection, Mapping
from types import TracebackType

from flowsieve.control.discovery.differences import Difference, differences
from flowsieve.control.discovery.discovery_state import INTERVAL_SECONDS, DiscoveryState
from flowsieve.control.discovery.findings import Findings, SwitchPort
from flowsieve.errors import BadTopology, SwitchError
from flowsieve.flow.punt import FRAMES_OF_A_PORT, LLDP, Punt
from flowsieve.network.mend import Edge
from flowsieve.network.names import Names
from flowsieve.network.topology import Topology
from flowsieve.southbound.fabric import (
    Connected,
    Disconnected,
    LiveSwitches,
    PortChanged,
    PuntedPacket,
    SwitchEvent,
)
from flowsieve.tasks import Tasks

log = logging.getLogger(__name__)

# What switches have to hand over for it; the rate is for beacons on all ports together of which nothing is known yet.
PUNTS = (Punt.of_type(LLDP, rate=1000),)


class Discoverer:
    """Discovers for the time of an `async with` block; the block of the switches should lie within it.

    The caller has the switches punt `PUNTS` and passes on to `heard` what they tell.

    The key is made anew at each start unless one is given, so that nothing sent before counts. `described` says how
    the network should be, if that is known; a difference is logged once, and once more when it is gone.
    """

    def __init__(
        self,
        switches: LiveSwitches,
        names: Names,
        described: Callable[[], Topology | None] = lambda: None,
        *,
        interval: float = INTERVAL_SECONDS,
        key: bytes | None = None,
        closed: Callable[[], Collection[Edge]] = frozenset,
    ) -> None:
        self.discovery = DiscoveryState(names, key or secrets.token_bytes(32), interval=interval)
        self._switches = switches
        self._described = described
        self._closed = closed
        self._tasks = Tasks()
        self._senders: dict[str, asyncio.Task[None]] = {}
        self._watch: asyncio.Task[None] | None = None
        self._told: frozenset[Difference] = frozenset()
        self._flooding: frozenset[SwitchPort] = frozenset()
        self._news: dict[str, dict[int, bool]] = {}  # of ports, since a switch connected

    @property
    def findings(self) -> Findings:
        """All that is found by now."""
        return self.discovery.findings(_now())

    @property
    def differences(self) -> tuple[Difference, ...]:
        """In what the network is not as described; nothing if it was not described."""
        described = self._described()
        return differences(self.findings, described, self._closed()) if described is not None else ()

    def is_linked(self, place: SwitchPort) -> bool:
        """Whether a switch was heard at a port, of late."""
        return self.discovery.is_linked(place, _now())

    @property
    def floods(self) -> dict[SwitchPort, float]:
        """The ports from which too many LLDP frames come, and how many in a second reach us."""
        return self.discovery.rates.floods(_now())

    def heard(self, event: SwitchEvent) -> None:
        """Take note of an event; on the loop. It never waits and never raises."""
        if self._watch is None or self._watch.cancelling():
            return
        match event:
            case Connected(switch):
                self._stop(switch)
                self._news[switch] = {}
                self._senders[switch] = self._tasks.start(self._send(switch))
            case Disconnected(switch):
                self._stop(switch)
                self.discovery.disconnected(switch)
            case PortChanged(switch, port, up):
                self._news.setdefault(switch, {})[port] = up
                self.discovery.port_changed(switch, port, up)
            case PuntedPacket():
                self.discovery.heard(event, _now())
            case _:
                pass

    async def __aenter__(self) -> Discoverer:
        await self._tasks.__aenter__()
        self._watch = self._tasks.start(self._tell())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._tasks.__aexit__(kind, error, trace)

    def _stop(self, switch: str) -> None:
        task = self._senders.pop(switch, None)
        if task is not None:
            task.cancel()

    async def _send(self, switch: str) -> None:
        """Have one switch send its beacons until it disconnects; a slow one holds up no other."""
        try:
            ports = await self._switches.ports(switch)
            # A change that came while we waited for the answer is newer than it, or the same.
            self.discovery.connected(switch, {**ports, **self._news[switch]})
            while True:
                for port, frame in self.discovery.beacons(switch, _now()):
                    await self._switches.send_packet(switch, port, frame)
                await asyncio.sleep(self.discovery.interval)
        except SwitchError as error:
            log.debug("switch %s sends no more beacons: %s", switch, error)  # it will connect anew
        except BadTopology as error:
            log.warning("switch %s is left out of discovery: %s", switch, error)

    async def _tell(self) -> None:
        """Log what is not as described once it has lasted for some intervals, and what is right again."""
        patience = 2 * self.discovery.interval
        before: frozenset[Difference] = frozenset()
        while True:
            await asyncio.sleep(patience)
            now = frozenset(self.differences)
            for each in sorted((now & before) - self._told, key=str):
                log.warning("not as configured: %s", each)
            for each in sorted(self._told - now, key=str):
                log.info("no longer so: %s", each)
            self._told, before = (now & before) | (self._told & now), now
            self._tell_floods(self.floods)

    def _tell_floods(self, floods: Mapping[SwitchPort, float]) -> None:
        described = self._described()
        for place in sorted(floods.keys() - self._flooding):
            known = described is not None and place.switch in described.switches
            near = described.behind(place.switch, place.port) if described is not None and known else None
            log.warning(
                "%s floods: %.0f LLDP frames a second reach us from it%s, where a link sends one; switches hand over "
                "%d of a port at most and drop the rest, so no link is disturbed",
                place,
                floods[place],
                f" ({near} is there)" if near is not None else "",
                FRAMES_OF_A_PORT,
            )
        for place in sorted(self._flooding - floods.keys()):
            log.info("%s floods no more", place)
        self._flooding = frozenset(floods)


def _now() -> float:
    return asyncio.get_running_loop().time()
