"""Tells applications that there is another index, so that they ask for it at once and not with their next renewal.

A notice is a hint (`protocol/notice.py`): a packet-out to the host's own group, a few times as long as somebody there
has not said that it uses the index of now. All applications of a host hear it, also those that call over HTTP.
"""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress

from flowsieve.control.transition.index_holders import IndexHolders
from flowsieve.control.transition.served_index import ServedIndex
from flowsieve.errors import SwitchError
from flowsieve.header.address import Prefix
from flowsieve.header.frame import UdpFrame, build
from flowsieve.header.host_groups import IPV4_NETWORK, group_mac
from flowsieve.network.topology import Topology
from flowsieve.protocol.addresses import CONTROL_PORT, NOTICE_PORT
from flowsieve.protocol.notice import IndexNotice, encode
from flowsieve.protocol.told_index import FIRST_INDEX
from flowsieve.serving.inband.inband_server import LINK_LOCAL, MAC, beside

PAUSES = (0.0, 0.2, 0.5, 1.0, 3.0, 10.0)  # seconds before each time that those who are behind are told
LOOK_SECONDS = 0.1  # between two looks at the index
AGAIN_SECONDS = 1.0  # before a host that publishes by an old index is told once more
AT_ONCE = 64  # packets on their way to switches
SEND_SECONDS = 1.0  # for a switch to take one

Send = Callable[[str, int, bytes], Awaitable[None]]  # a switch, a port of the topology's, a packet


class IndexNotices:
    """`run` tells whoever is behind whenever the index changes, `announce` does so now, `nudge` tells one host.

    `groups` are the hosts' own groups, `sources` the addresses that hosts are known to have.
    """

    def __init__(
        self,
        index: Callable[[], ServedIndex],
        holders: IndexHolders,
        topology: Callable[[], Topology],
        groups: Callable[[], Mapping[str, str]],
        sources: Callable[[Topology], Mapping[str, Prefix]],
        send: Send,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.sent = 0
        self._index, self._holders, self._topology = index, holders, topology
        self._groups, self._sources, self._send, self._clock = groups, sources, send, clock
        self._nudged: dict[str, float] = {}
        self._nudging: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Until cancelled, tell of each index that there is after the first."""
        told, telling = FIRST_INDEX, asyncio.create_task(asyncio.sleep(0))
        try:
            while True:
                version = self._index().version
                if version != told:
                    told = version
                    telling.cancel()
                    telling = asyncio.create_task(self.announce())
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            for each in (telling, *self._nudging):
                each.cancel()
            await asyncio.gather(telling, *self._nudging, return_exceptions=True)

    async def announce(self) -> None:
        """Tell those who have not said that they use the index of now, a few times, until all have."""
        version = self._index().version
        for pause in PAUSES:
            await asyncio.sleep(pause)
            if not (hosts := self._holders.hosts(self._holders.unaware(version))):
                return
            await self._tell(hosts, version)

    def nudge(self, host: str) -> None:
        """Tell a host whose events come by an old index, and not too often."""
        now = self._clock()
        if now >= self._nudged.get(host, now):
            self._nudged[host] = now + AGAIN_SECONDS
            task = asyncio.create_task(self._tell({host}, self._index().version))
            self._nudging.add(task)
            task.add_done_callback(self._nudging.discard)

    async def _tell(self, hosts: Collection[str], version: int) -> None:
        topology, groups = self._topology(), self._groups()
        sources, payload = self._sources(topology), encode(IndexNotice(version))
        there = sorted(host for host in hosts if host in topology.hosts and host in groups)
        for first in range(0, len(there), AT_ONCE):
            await asyncio.gather(
                *(
                    self._send_to(topology, host, notice_frame(groups[host], sources.get(host), payload))
                    for host in there[first : first + AT_ONCE]
                )
            )

    async def _send_to(self, topology: Topology, host: str, packet: bytes) -> None:
        end = topology.endpoint(host)
        with suppress(SwitchError, TimeoutError):  # the host asks later, unasked
            async with asyncio.timeout(SEND_SECONDS):
                await self._send(end.switch, end.port, packet)
                self.sent += 1


def notice_frame(group: str, source: Prefix | None, payload: bytes) -> bytes:
    """A notice to a host's own group; an IPv4 one comes from beside the host's own address, as answers do."""
    destination = ipaddress.ip_address(group).packed
    if len(destination) == 16:
        own = LINK_LOCAL
    elif source is not None:
        own = beside(source.first.to_bytes(source.width // 8))
    else:
        own = IPV4_NETWORK[-2].packed  # where hosts are if nobody says otherwise
    ports = CONTROL_PORT, NOTICE_PORT
    return build(UdpFrame(MAC, group_mac(destination), own, destination, *ports, payload))
