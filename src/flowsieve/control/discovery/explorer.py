"""Makes the controller's network follow what discovery finds: new links and hosts are taken in while events flow."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace

from flowsieve.control.discovery.discoverer import Discoverer
from flowsieve.control.discovery.findings import Findings
from flowsieve.control.discovery.growth import grown, without
from flowsieve.control.dispatcher import Dispatcher
from flowsieve.errors import FlowsieveError, Refused, SwitchError
from flowsieve.flow.last_hop import deliveries_of
from flowsieve.network.mend import Edge, edges_of
from flowsieve.network.topology import Topology

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.2
SETTLE_SECONDS = 5.0
CALM_INTERVALS = 2.5  # without news, after which a network counts as found


class Explorer:
    """Compares what is found with what is known, and has the dispatcher grow by the difference.

    Links and hosts are each taken in only if they are asked for. `told` hears of each topology just before it comes
    into force.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        discoverer: Discoverer,
        told: Callable[[Topology], None],
        *,
        links: bool,
        hosts: bool,
    ) -> None:
        self._dispatcher = dispatcher
        self._discoverer = discoverer
        self._told = told
        self._links, self._hosts = links, hosts
        self._turn = asyncio.Lock()

    async def first(self, seconds: float) -> None:
        """Take in what is found once nothing new appears at the connected switches, or after `seconds`."""
        loop, interval = asyncio.get_running_loop(), self._discoverer.discovery.interval
        end, since, last = loop.time() + seconds, loop.time(), None
        while loop.time() < end:
            now = self._findings
            if last is None or (now.switches, now.links, now.one_sided) != (
                last.switches,
                last.links,
                last.one_sided,
            ):
                last, since = now, loop.time()
            there = self._dispatcher.reachable
            stable = loop.time() - since > CALM_INTERVALS * interval
            if stable and there and there <= set(now.switches) and not now.one_sided:
                break
            await asyncio.sleep(interval / 5)
        else:
            log.warning(
                "the network is not found as a whole after %.0f s; the rest is taken in as it comes", seconds
            )
        log.info("found: %s", await self.become(lambda known: grown(known, self._findings)))

    async def run(self) -> None:
        """Until cancelled, take in what appears."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            known = self._dispatcher.state.topology
            if grown(known, self._findings) is not known:
                try:
                    new = await self.become(lambda known: grown(known, self._findings))
                except FlowsieveError as error:
                    log.error("the network does not grow: %s", error)
                else:
                    log.info("taken in: %s", ", ".join(_news(known, new)))

    async def forget(self, seconds: float = SETTLE_SECONDS) -> frozenset[Edge]:
        """Forget the links that are down, so that their ports are free for others; returns these links.

        A link is kept as long as one of its ends cannot be asked: there the port is fenced.
        """
        dispatcher = self._dispatcher
        tried = self._dead
        if not self._links or not tried:
            return frozenset()
        ends = frozenset(end for edge in tried for end in edge)
        free: set[Edge] = set()
        try:
            async with asyncio.timeout(seconds):
                await dispatcher.settled(ends)
                await asyncio.gather(*(self._release(edge, free) for edge in tried & self._dead))
        except (TimeoutError, SwitchError, Refused) as error:
            log.warning("links that are down stay known: %s", str(error) or "switches are not settled")
        if not free:
            return frozenset()
        known = dispatcher.state.topology
        new = await self.become(lambda known: without(known, dispatcher.state.down & free))
        gone = edges_of(known) - edges_of(new)
        log.info("forgotten: %s", ", ".join(" - ".join(sorted(edge)) for edge in gone) or "nothing")
        return gone

    @property
    def _dead(self) -> frozenset[Edge]:
        """The links that are down, of switches that can be asked."""
        dispatcher = self._dispatcher
        down = dispatcher.state.down - dispatcher.suppressed
        return frozenset(edge for edge in down if edge <= dispatcher.reachable)

    async def _release(self, edge: Edge, free: set[Edge]) -> None:
        """Have a link opened over which no table sends anything; it is free then."""
        if await self._dispatcher.release(edge):
            free.add(edge)

    async def become(self, more: Callable[[Topology], Topology]) -> Topology:
        """Go over to the topology that `more` makes of the present one; one change at a time."""
        async with self._turn:
            topology = more(self._dispatcher.state.topology)
            self._told(topology)
            await self._dispatcher.grow(topology, deliveries_of(topology, self._dispatcher.encoding.family))
            return topology

    @property
    def _findings(self) -> Findings:
        found = self._discoverer.findings
        return replace(
            found, links=found.links if self._links else (), hosts=found.hosts if self._hosts else ()
        )


def _news(old: Topology, new: Topology) -> list[str]:
    """What a topology has in addition, in words."""
    return [
        *(f"switch {switch}" for switch in new.switches[len(old.switches) :]),
        *(
            f"the link {link.a} (port {new.number(link.a, link.b)}) - {link.b} (port {new.number(link.b, link.a)})"
            for link in new.links[len(old.links) :]
        ),
        *(
            f"host {host} (port {new.number(switch, host)} of {switch})"
            for host, switch in list(new.hosts.items())[len(old.hosts) :]
        ),
    ]
