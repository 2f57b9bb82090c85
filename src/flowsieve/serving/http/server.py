"""An HTTP server: where it listens, and the connections it has."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Mapping, Sequence
from email.utils import formatdate
from functools import partial
from pathlib import Path
from typing import Self

from starlette.types import ASGIApp

from flowsieve.errors import BadInput
from flowsieve.serving.descriptors import accepted_at_once, room_for_clients
from flowsieve.serving.http.http_connection import HttpConnection, HttpServerState, QuickRoute
from flowsieve.serving.http.listener import Listener
from flowsieve.southbound.socket_address import SocketAddress
from flowsieve.tasks import Tasks

CHECK_SECONDS = 0.5
log = logging.getLogger(__name__)


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
        self._state = HttpServerState(app, quick or {}, _date())
        self._servers: list[asyncio.Server] = []
        self._tasks = Tasks()

    async def __aenter__(self) -> Self:
        room, many = room_for_clients(), len(self._addresses)
        for address in self._addresses:
            serve = partial(HttpConnection, self._state, Listener.sharing(room, many))
            try:
                server = await address.serve(serve, accepted_at_once(many))
            except OSError as error:
                await self._close()
                why = error.strerror or error
                raise BadInput(f"requests cannot be taken at {address}: {why}") from None
            self._servers.append(server)
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
