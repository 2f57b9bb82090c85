"""Which of several controllers leads: the one that holds a key in etcd, under a lease that it keeps alive.

What it writes is fenced by the key: once another leads, nothing that it writes is taken any more, whether or not it has
noticed.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from flowsieve.control.shared.etcd import LARGEST, Etcd, EtcdSilent, Fence, LeaseOver
from flowsieve.control.shared.kept_lease import KeptLease
from flowsieve.errors import Busy, JournalError

log = logging.getLogger(__name__)

LEASE_SECONDS = 1
LEADER, NODES = "leader", "nodes/"
LOOK_SECONDS = 2.0  # at who leads, though nothing was heard of it
PAUSE_SECONDS = 0.1  # with an etcd that does not answer


class NotLeading(Busy, JournalError):
    """Another controller leads, and is to be asked instead."""

    final = True


class Leadership:
    """`win` it, and see whether it is `lost`; `leave` gives it back. A node that waits is known to the others, too."""

    def __init__(
        self, etcd: Etcd, node: str, about: Mapping[str, object], lease: int = LEASE_SECONDS
    ) -> None:
        self.etcd, self.node = etcd, node
        self.lost = asyncio.Event()
        self._about = dict(about)
        self._seconds = lease
        self._fence: Fence | None = None
        self._lease: KeptLease | None = None
        self._mark = os.urandom(8).hex()  # tells this attempt from others of the same node

    @property
    def fence(self) -> Fence:
        """What all that is written as a leader hangs on."""
        if self._fence is None or self.lost.is_set():
            raise NotLeading("another controller leads")
        return self._fence

    @property
    def doubt(self) -> str | None:
        """Why this controller may not be the one that leads, if so."""
        if self._fence is None or self.lost.is_set():
            return "another controller leads"
        if self._lease is None or not self._lease.sure:
            return "etcd does not answer, so another controller may lead by now"
        return None

    async def win(self) -> None:
        """Wait until this controller leads."""
        told = ""
        while self._fence is None or self.lost.is_set():
            try:
                if self._lease is None or self.lost.is_set():
                    await self._begin()
                if await self._taken():
                    log.info("node %s leads from now on", self.node)
                    return
                holder = await self.etcd.holder(LEADER)
                if holder is not None:
                    if (leader := node_in(holder.value)) != told:
                        told = leader
                        log.info("node %s stands by; node %s leads", self.node, leader)
                    await self.etcd.gone(holder, LOOK_SECONDS)
            except LeaseOver:
                self.lost.set()  # and a new one is begun
            except EtcdSilent as error:
                if str(error) != told:
                    told = str(error)
                    log.warning("node %s stands by: %s", self.node, error)
                await asyncio.sleep(PAUSE_SECONDS)

    async def commit(self, puts: Mapping[str, bytes], deletes: Sequence[tuple[str, str]] = ()) -> None:
        """Change keys as the one who leads, however long etcd takes to answer; NotLeading once another does."""
        for value in puts.values():
            if len(value) > LARGEST:
                raise JournalError(f"{len(value):,} bytes are more than etcd takes at once ({LARGEST:,})")
        while True:
            try:
                if await self.etcd.commit(puts, deletes, fence=self.fence):
                    return
                self.lost.set()
                raise NotLeading("another controller leads, so nothing is written here any more")
            except EtcdSilent:
                await asyncio.sleep(PAUSE_SECONDS)

    async def kept(self, path: str, make: Callable[[], bytes]) -> bytes:
        """What a key has; it is made by the first who asks for it."""
        found = await self.etcd.value(path)
        if found is None:
            found = make()
            await self.commit({path: found})
        return found

    async def leave(self) -> None:
        """Let another lead, at once."""
        self._fence = None
        lease, self._lease = self._lease, None
        if lease is not None:
            await lease.end()

    async def nodes(self) -> Sequence[Mapping[str, object]]:
        """All controllers that are alive, by name."""
        found = await self.etcd.below(NODES)
        return [{"node": path.removeprefix(NODES), **json.loads(value)} for path, value in found.items()]

    async def _begin(self) -> None:
        await self.leave()
        self.lost = asyncio.Event()
        lost = self.lost
        lease = KeptLease(self.etcd.servers, self._seconds, lost.set)
        try:
            await lease.begin()
        except JournalError as error:
            raise EtcdSilent(str(error)) from None
        self._lease = lease
        await self.etcd.commit({NODES + self.node: json.dumps(self._about).encode()}, lease=lease.id)

    async def _taken(self) -> bool:
        """Take the lead if nobody has it; where it is unknown what came of that, the key says it."""
        assert self._lease is not None
        mine = json.dumps(
            {"node": self.node, "mark": self._mark, "lease": self._lease.id, **self._about}
        ).encode()
        with suppress(EtcdSilent):
            await self.etcd.commit({LEADER: mine}, absent=LEADER, lease=self._lease.id)
        holder = await self.etcd.holder(LEADER)
        if holder is None or holder.value != mine:
            return False
        self._fence = holder.fence
        return True


def node_in(value: bytes) -> str:
    """The name of the node that a leader's key tells."""
    with suppress(ValueError, KeyError, TypeError):
        return str(json.loads(value)["node"])
    return "?"
