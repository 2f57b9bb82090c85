"""Hosts that are plugged in elsewhere: one that shows its token at a free port is there, once its old port is down.

The token says who it is, and the old port that nobody else can be: a host whose cable is where it was is not moved,
whatever somebody with its token says. Where the old switch is away, all its links have to be down: nobody at it is
connected to anybody then. The host's name, its token, its addresses and its bit in labels stay.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from flowsieve.control.discovery.findings import SwitchPort
from flowsieve.control.discovery.growth import moved
from flowsieve.control.dispatcher import Dispatcher
from flowsieve.control.memory.journal import Homed
from flowsieve.errors import BadTopology, Refused, SwitchError
from flowsieve.network.topology import Topology
from flowsieve.serving.calls.tokens import Tokens

log = logging.getLogger(__name__)

SETTLE_SECONDS = 5.0  # for switches to follow, before the host that has moved is answered
STRANGER = "no host is known at that port"

Become = Callable[[Callable[[Topology], Topology]], Awaitable[Topology]]


class HostMoves:
    """`refuses` says why a host is not taken in at a port; `take_in` has the network follow.

    `is_down` tells whether a switch that can be asked says so of a port, `is_linked` whether a switch was heard there;
    `become` goes over to another network.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        tokens: Tokens,
        become: Become,
        is_down: Callable[[SwitchPort], bool],
        is_linked: Callable[[SwitchPort], bool],
    ) -> None:
        self._dispatcher, self._tokens, self._become = dispatcher, tokens, become
        self._is_down, self._is_linked = is_down, is_linked

    def refuses(self, host: object, token: object, place: SwitchPort) -> str | None:
        """Why whoever calls at a port is not the host that it says, plugged in there; None if it is."""
        topology = self._dispatcher.state.topology
        if not isinstance(host, str) or not isinstance(token, str) or host not in topology.hosts:
            return STRANGER
        if not self._tokens.valid(host, token):
            return STRANGER
        if place.switch not in topology.switches or topology.behind(place.switch, place.port) is not None:
            return "that port leads elsewhere"
        if self._is_linked(place):
            return f"{host} shows its token there, and a switch was heard at that port"
        known = self._known(host)
        if not self._is_down(known) and not self._is_cut_off(known.switch):
            return f"{host} shows its token there, and nobody says that {known}, where it is known to be, is down"
        return None

    async def take_in(self, host: str, place: SwitchPort) -> None:
        """Have the network go on with a host at another port; returns when the switches that can be asked follow."""
        known, dispatcher = self._known(host), self._dispatcher
        home = Homed(host, known.switch, known.port)
        await dispatcher.scribe.write(home, lambda: dispatcher.ledger.homed(host, (known.switch, known.port)))

        def elsewhere(topology: Topology) -> Topology:
            if topology.behind(place.switch, place.port) is not None:  # somebody was found there meanwhile
                raise BadTopology(f"{place} is not free any more")
            return moved(topology, host, place)

        await self._become(elsewhere)
        log.info("host %s has moved from %s to %s", host, known, place)
        with suppress(TimeoutError, SwitchError, Refused):  # it is served when they do
            async with asyncio.timeout(SETTLE_SECONDS):
                await dispatcher.settled(dispatcher.reachable)

    def _is_cut_off(self, switch: str) -> bool:
        """Whether a switch is away, and no link leads to it any more."""
        state = self._dispatcher.state
        links = {frozenset((switch, near)) for near in state.topology.linked(switch)}
        return switch not in self._dispatcher.reachable and bool(links) and links <= state.down

    def _known(self, host: str) -> SwitchPort:
        topology = self._dispatcher.state.topology
        switch = topology.attached[host]
        return SwitchPort(switch, topology.number(switch, host))
