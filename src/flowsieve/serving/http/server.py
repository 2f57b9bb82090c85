"""An HTTP server: where it listens, and the connections it has."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping, Sequence
from email.utils import formatdate
from pathlib import Path
from typing import Self

from starlette.types import ASGIApp

from flowsieve.errors import BadInput
from flowsieve.serving.descriptors import room_for_clients
from flowsieve.serving.http.http_connection import HttpConnection, HttpServerState, QuickRoute
from flowsieve.southbound.socket_address import SocketAddress

MOST_CONNECTIONS = 4096
BACKLOG = 1024  # connections not accepted yet
CHECK_SECONDS = 0.5


class HttpServer:
    """An application at addresses, unix:PATH or tcp:HOST:PORT, for the time of an `async with` block.

    Requests to a `quick` route, by method and URL, do not go to the application.
    """

    def __init__(
        self,
        app: ASGIApp,
        addresses: Sequence[str],
        quick: Mapping[tuple[bytes, bytes], QuickRoute] | None = None,
    ) -> None:
        self._addresses = tuple(SocketAddress.parse(address) for address in addresses)
        most = min(MOST_CONNECTIONS, room_for_clients())
        self._state = HttpServerState(app, quick or {}, most, _date())
        self._servers: list[asyncio.Server] = []

    async def __aenter__(self) -> Self:
        for address in self._addresses:
            try:
                server = await address.serve(lambda: HttpConnection(self._state), BACKLOG)
            except OSError as error:
                await self._close()
                why = error.strerror or error
                raise BadInput(f"requests cannot be taken at {address}: {why}") from None
            self._servers.append(server)
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
        for server, address in zip(self._servers, self._addresses, strict=False):
            server.close()
            if address.path is not None:
                Path(address.path).unlink(missing_ok=True)
        for connection in tuple(self._state.connections):
            connection.abort()
        for task in self._state.tasks:
            task.cancel()
        await asyncio.gather(*self._state.tasks, return_exceptions=True)


def _date() -> bytes:
    return formatdate(usegmt=True).encode()
