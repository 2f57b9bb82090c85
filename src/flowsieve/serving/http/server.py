"""An HTTP server: where it listens, and the connections it has."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Mapping, Sequence
from email.utils import formatdate
from functools import partial
from typing import Self

from starlette.types import ASGIApp

from flowsieve.errors import BadInput
from flowsieve.serving.descriptors import accepted_at_once, room_for_clients
from flowsieve.serving.http.http_connection import HttpConnection, HttpServerState, QuickRoute
from flowsieve.serving.http.listener import Listener
from flowsieve.southbound.socket_address import ReservedAddress, SocketAddress
from flowsieve.tasks import Tasks

CHECK_SECONDS = 0.5
log = logging.getLogger(__name__)


class HttpServer:
    """An application at addresses, unix:PATH or tcp:HOST:PORT, perhaps reserved, for the time of an `async with` block.

    Requests to a `quick` route, by method and URL, do not go to the application.
    """

    def __init__(
        self,
        app: ASGIApp,
        addresses: Sequence[str | ReservedAddress],
        quick: Mapping[tuple[bytes, bytes], QuickRoute] | None = None,
    ) -> None:
        self._addresses = addresses
        self._state = HttpServerState(app, quick or {}, _date())
        self._reserved: Sequence[ReservedAddress] = ()
        self._servers: list[asyncio.Server] = []
        self._tasks = Tasks()

    async def __aenter__(self) -> Self:
        self._reserved = await reserve(self._addresses)
        room, many = room_for_clients(), len(self._reserved)
        for each in self._reserved:
            serve = partial(HttpConnection, self._state, Listener.sharing(room, many))
            self._servers.append(await each.serve(serve))
        await self._tasks.__aenter__()
        self._tasks.start(self._check())
        return self

    async def __aexit__(self, *error: object) -> None:
        try:
            await self._tasks.__aexit__(None, None, None)
        finally:
            await self._close()

    @property
    def port(self) -> int:
        """Its first TCP port, which the system chose if the address has port 0."""
        sockets = [each for server in self._servers for each in server.sockets]
        return next(int(each.getsockname()[1]) for each in sockets if each.family != socket.AF_UNIX)

    async def _check(self) -> None:
        """Check the time of all connections now and then: a timer for each would cost every request something."""
        now = asyncio.get_running_loop().time
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            self._state.date = _date()
            for connection in tuple(self._state.connections):
                try:
                    connection.check_time(now())
                except Exception:  # our own mistake: the others are checked all the same
                    log.exception("a connection could not be checked, and is closed")
                    connection.abort()

    async def _close(self) -> None:
        for each in self._reserved:
            each.close()
        for connection in tuple(self._state.connections):
            connection.abort()
        for task in self._state.tasks:
            task.cancel()
        await asyncio.gather(*self._state.tasks, return_exceptions=True)


async def reserve(addresses: Sequence[str | ReservedAddress]) -> list[ReservedAddress]:
    """Addresses where requests will be taken, and nobody else can listen; BadInput if somebody does."""
    done: list[ReservedAddress] = []
    backlog = accepted_at_once(len(addresses))
    for address in [SocketAddress.parse(each) if isinstance(each, str) else each for each in addresses]:
        try:
            done.append(await address.reserve(backlog) if isinstance(address, SocketAddress) else address)
        except OSError as error:
            for each in done:
                each.close()
            raise BadInput(f"requests cannot be taken at {address}: {error.strerror or error}") from None
    return done


def _date() -> bytes:
    return formatdate(usegmt=True).encode()
