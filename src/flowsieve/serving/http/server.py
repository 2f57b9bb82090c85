"""An HTTP server: where it listens, and the connections it has."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping, Sequence
from email.utils import formatdate
from typing import Self

from starlette.types import ASGIApp

from flowsieve.errors import BadInput
from flowsieve.serving.descriptors import room_for_clients
from flowsieve.serving.http.http_connection import HttpConnection, HttpServerState, QuickRoute
from flowsieve.southbound.socket_address import ReservedAddress, SocketAddress

MOST_CONNECTIONS = 4096
BACKLOG = 1024  # connections not accepted yet
CHECK_SECONDS = 0.5


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
        most = min(MOST_CONNECTIONS, room_for_clients())
        self._state = HttpServerState(app, quick or {}, most, _date())
        self._reserved: Sequence[ReservedAddress] = ()
        self._servers: list[asyncio.Server] = []

    async def __aenter__(self) -> Self:
        self._reserved = await reserve(self._addresses)
        for each in self._reserved:
            self._servers.append(await each.serve(lambda: HttpConnection(self._state)))
        self._state.tasks.add(asyncio.create_task(self._check()))
        return self

    async def __aexit__(self, *error: object) -> None:
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
                connection.check_time(now())

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
    for address in [SocketAddress.parse(each) if isinstance(each, str) else each for each in addresses]:
        try:
            done.append(await address.reserve(BACKLOG) if isinstance(address, SocketAddress) else address)
        except OSError as error:
            for each in done:
                each.close()
            raise BadInput(f"requests cannot be taken at {address}: {error.strerror or error}") from None
    return done


def _date() -> bytes:
    return formatdate(usegmt=True).encode()
