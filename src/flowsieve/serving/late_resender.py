"""Takes the events that switches hand over because they came too late, and has them sent again by the index of now.

Whatever comes, nothing here raises, waits, or grows without bound: each host's port has a meter in its switch, and what
finds too much under way is dropped. All of it is counted.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from flowsieve.control.transition.served_index import ServedIndex
from flowsieve.errors import BadMessage, SwitchError
from flowsieve.serving.late_events import ForeignTag, LateDigest, is_event, resent
from flowsieve.southbound.fabric import PuntedPacket
from flowsieve.tasks import noted

log = logging.getLogger(__name__)

MOST_SENDING = 1024  # packets on their way to switches
MOST_PLACES = 4096  # ports of which it is remembered that they were told of

Inject = Callable[[str, int, bytes], Awaitable[None]]  # a switch, its own number of a port, a packet


@dataclass(frozen=True, slots=True)
class LateCounters:
    """What was handed over, and what became of it."""

    received: int = 0  # packets
    again: int = 0  # packets that were sent again; an event that has several dz now is sent as often
    nowhere: int = 0  # … that the plan of now sends nowhere
    digests: int = 0  # … that say how much was sent by an index that nobody uses: subscribers do without
    malformed: int = 0  # … that are no events
    foreign: int = 0  # … of no index that is late
    unsent: int = 0  # packets that could not be sent again


class LateResender:
    """`heard` takes what is for it. `inject` has a switch take in a packet as from a port; `late` are old indexes.

    `publishes` hears of each port at which somebody publishes by an old index: its host can be told.
    """

    def __init__(
        self,
        now: Callable[[], ServedIndex],
        late: Callable[[], tuple[ServedIndex, ...]],
        inject: Inject,
        publishes: Callable[[str, int], None] = lambda switch, port: None,
    ) -> None:
        self.counters = LateCounters()
        self._now, self._late, self._inject, self._publishes = now, late, inject, publishes
        self._sending: set[asyncio.Task[None]] = set()
        self._told: dict[tuple[str, int], None] = {}
        self._closed = False

    def heard(self, packet: PuntedPacket) -> bool:
        """A switch has handed over a packet; whether it is an event, and so ours."""
        if not is_event(packet.data):
            return False
        if not self._closed:
            self._count("received")
            try:
                self._take(packet)
            except LateDigest:
                self._count("digests")
                self._publishes(packet.switch, packet.port)
            except ForeignTag:
                self._count("foreign")
            except BadMessage:
                self._count("malformed")
            except Exception:  # our own mistake: go on with the next packet
                log.exception("a late event from port %d of switch %s", packet.port, packet.switch)
        return True

    async def close(self) -> None:
        """Send nothing any more."""
        self._closed = True
        for task in self._sending:
            task.cancel()
        await asyncio.gather(*self._sending, return_exceptions=True)

    def _take(self, packet: PuntedPacket) -> None:
        frames = resent(packet.data, self._late(), self._now())
        self._tell(packet)
        if not frames:
            self._count("nowhere")
        for frame in frames:
            if len(self._sending) >= MOST_SENDING:
                self._count("unsent")
                continue
            task = asyncio.get_running_loop().create_task(self._send(packet, frame))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)
            task.add_done_callback(noted)

    async def _send(self, packet: PuntedPacket, frame: bytes) -> None:
        try:
            await self._inject(packet.switch, packet.port, frame)
            self._count("again")
        except SwitchError:
            self._count("unsent")

    def _tell(self, packet: PuntedPacket) -> None:
        place = packet.switch, packet.port
        if place not in self._told:
            if len(self._told) >= MOST_PLACES:
                del self._told[next(iter(self._told))]
            self._told[place] = None
            log.info(
                "somebody at port %d of switch %s publishes by an old index; it is sent again", *place[::-1]
            )
        self._publishes(*place)

    def _count(self, what: str) -> None:
        self.counters = replace(self.counters, **{what: getattr(self.counters, what) + 1})
