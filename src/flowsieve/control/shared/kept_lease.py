"""A lease in etcd, kept by a thread for as long as this process is alive and its loop turns.

Recovering a large state blocks the loop for seconds; the lease must not end for that. A loop that stands still for
longer is given up: then somebody else may go on.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import grpc
from aetcd import rpc

from flowsieve.control.shared.servers import Server
from flowsieve.errors import JournalError

log = logging.getLogger(__name__)

RENEWALS = 4  # within a lease
HANGING_SECONDS = 20.0  # for which the loop may stand still
PAUSE_SECONDS = 0.1  # before the next server is asked


class KeptLease:
    """`sure` until a lease after the last answer; `lost` is called on the loop when etcd says that it is over."""

    def __init__(self, servers: Sequence[Server], seconds: int, lost: Callable[[], None]) -> None:
        self.seconds = seconds
        self.id = 0
        self._servers = list(servers)
        self._lost = lost
        self._until = 0.0
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="etcd-lease", daemon=True)
        self._loop = asyncio.get_running_loop()
        self._turned = time.monotonic()  # when the loop was last seen at work
        self._channel: grpc.Channel | None = None

    @property
    def sure(self) -> bool:
        """Whether nobody else can have been given what hangs on it."""
        return time.monotonic() < self._until

    async def begin(self) -> None:
        """Get a lease, and keep it from now on."""
        await asyncio.to_thread(self._granted)

    async def end(self) -> None:
        """Give it back, so that nobody has to wait for its end."""
        self._ending.set()
        if self._thread.ident is not None:
            await asyncio.to_thread(self._thread.join)
        if self.id:
            with suppress(JournalError):
                await asyncio.to_thread(
                    self._asked,
                    lambda stub, wait: stub.LeaseRevoke(rpc.LeaseRevokeRequest(ID=self.id), timeout=wait),
                )
        self._leave()

    # In the thread.

    def _granted(self) -> None:
        """Get one, and begin to renew it at once: the loop may have other things to do before it hears of it."""
        start = time.monotonic()
        request = rpc.LeaseGrantRequest(TTL=self.seconds)
        given = self._asked(lambda stub, wait: stub.LeaseGrant(request, timeout=wait))
        self._until, self.id = start + self.seconds, int(given.ID)
        self._thread.start()

    def _keep(self) -> None:
        pause = self.seconds / RENEWALS
        while not self._ending.wait(pause):
            self._loop.call_soon_threadsafe(self._turn)
            start = time.monotonic()
            if start - self._turned > HANGING_SECONDS:
                log.error(
                    "this controller stood still for %.0f s, and gives up what it leads", HANGING_SECONDS
                )
                self._over()
                return
            try:
                left = self._renewed()
            except JournalError as error:
                if not self.sure:
                    log.warning("the lease in etcd could not be renewed: %s", error)
                continue
            if left <= 0:
                self._over()
                return
            self._until = start + min(left, self.seconds)

    def _over(self) -> None:
        self._until = 0.0
        self._loop.call_soon_threadsafe(self._lost)

    def _turn(self) -> None:
        self._turned = time.monotonic()

    def _renewed(self) -> int:
        request = rpc.LeaseKeepAliveRequest(ID=self.id)

        def ask(stub: Any, wait: float) -> Any:
            return next(stub.LeaseKeepAlive(iter([request]), timeout=wait))

        return int(self._asked(ask).TTL)

    def _asked(self, work: Callable[[Any, float], Any]) -> Any:
        """What the first server that answers says."""
        wait, trouble = max(0.3, self.seconds / 3), ""
        for _ in self._servers:
            if self._channel is None:
                self._channel = grpc.insecure_channel(str(self._servers[0]))
            try:
                return work(rpc.LeaseStub(self._channel), wait)
            except (grpc.RpcError, StopIteration) as error:
                code = error.code() if isinstance(error, grpc.Call) else None
                if code is grpc.StatusCode.NOT_FOUND:
                    return rpc.LeaseKeepAliveResponse(TTL=0)
                trouble = f"{self._servers[0]}: {code.name if code is not None else error!r}"
                self._leave()
                self._servers = [*self._servers[1:], self._servers[0]]
        raise JournalError(f"no server of etcd answers ({trouble})")

    def _leave(self) -> None:
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()
