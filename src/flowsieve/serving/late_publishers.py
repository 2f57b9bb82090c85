"""What a daemon does about applications that use an old index: it tells them, and sends their events again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from flowsieve.control.dispatcher import Dispatcher
from flowsieve.header.address import Prefix
from flowsieve.network.topology import Topology
from flowsieve.serving.index_notices import IndexNotices, Send
from flowsieve.serving.late_resender import Inject, LateResender
from flowsieve.serving.site.site import host_behind
from flowsieve.southbound.fabric import PuntedPacket


class LatePublishers(NamedTuple):
    """`notices` has to run as long as there are clients, `late` hears of packets that switches hand over."""

    notices: IndexNotices
    late: LateResender

    @classmethod
    def of(
        cls,
        dispatcher: Dispatcher,
        groups: Callable[[], Mapping[str, str]],
        sources: Callable[[Topology], Mapping[str, Prefix]],
        send: Send,
        inject: Inject,
    ) -> LatePublishers:
        """For the clients of a dispatcher: `groups` are the hosts' own, `sources` the addresses that are known.

        Ports are those of the topology where something is sent, and the switch's own where it is injected again.
        """

        def topology() -> Topology:
            return dispatcher.state.topology

        def publishes(switch: str, port: int) -> None:
            host = host_behind(topology(), switch, port)
            if host is not None:
                notices.nudge(host)

        index, holders = (lambda: dispatcher.index), dispatcher.holders
        notices = IndexNotices(index, holders, topology, groups, sources, send)
        late = LateResender(index, lambda: dispatcher.late, inject, publishes)
        return cls(notices, late)

    def before(self, others: Callable[[PuntedPacket], None]) -> Callable[[PuntedPacket], None]:
        """Who hears of packets: we do of events, and others of the rest."""

        def heard(packet: PuntedPacket) -> None:
            if not self.late.heard(packet):
                others(packet)

        return heard
