"""An HTTP server at addresses of the machine: its sockets, its connections, and who has to leave."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import stat
from collections.abc import Awaitable, Mapping, Sequence
from email.utils import formatdate
from types import TracebackType
from typing import Self

from flowsieve.errors import BadInput
from flowsieve.serving.descriptors import room_for_clients
from flowsieve.serving.http.http_connection import App, Connection, Quick
from flowsieve.southbound.socket_address import SocketAddress

MOST_CONNECTIONS = 4096
LOOK_SECONDS = 0.5


class HttpServer:
    """An application at addresses, unix:PATH or tcp:HOST:PORT, for as long as its `async with` block lasts.

    What is asked at a `quick` address, named by its method and path, does not go to the application.
    """

    def __init__(
        self, app: App, addresses: Sequence[str], quick: Mapping[tuple[bytes, bytes], Quick] | None = None
    ) -> None:
        self.app = app
        self.quick = quick or {}
        self.addresses = tuple(SocketAddress.parse(address) for address in addresses)
        self.date = _date()
        self._most = min(MOST_CONNECTIONS, room_for_clients())
        self._connections: set[Connection] = set()
        self._tasks: set[asyncio.Future[None]] = set()
        self._sockets: list[socket.socket] = []
        self._servers: list[asyncio.Server] = []
        self._watch: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        try:
            for address in self.addresses:
                self._sockets.append(_listening(address))
        except BadInput:
            self._close()
            raise
        loop = asyncio.get_running_loop()
        for own in self._sockets:
            make = loop.create_unix_server if own.family == socket.AF_UNIX else loop.create_server
            self._servers.append(await make(lambda: Connection(self), sock=own, backlog=1024))
        self._watch = asyncio.create_task(self._look())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        assert self._watch is not None
        for server in self._servers:
            server.close()
        for connection in tuple(self._connections):
            connection.abort()
        left = [self._watch, *self._tasks]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        self._close()

    @property
    def port(self) -> int:
        """Where it listens, if it was to choose a TCP port itself."""
        return next(int(own.getsockname()[1]) for own in self._sockets if own.family != socket.AF_UNIX)

    # What connections need.

    def came(self, connection: Connection) -> bool:
        self._connections.add(connection)
        return len(self._connections) <= self._most

    def went(self, connection: Connection) -> None:
        self._connections.discard(connection)

    def own(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _look(self) -> None:
        """Now and then, send those away that have had their time: a timer for each would cost each request one."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self.date, now = _date(), loop.time()
            for connection in [each for each in self._connections if each.overdue(now)]:
                connection.dismiss()

    def _close(self) -> None:
        for own, address in zip(self._sockets, self.addresses, strict=False):
            own.close()
            if address.path is not None:
                with contextlib.suppress(OSError):
                    os.unlink(address.path)  # noqa: PTH108


def _date() -> bytes:
    return formatdate(usegmt=True).encode()


def _listening(address: SocketAddress) -> socket.socket:
    try:
        if address.path is None:
            family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
            own = socket.create_server((address.host, address.port), family=family, backlog=1024)
        else:
            _check_free(address.path)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(address.path)  # noqa: PTH108
            own = socket.socket(socket.AF_UNIX)
            try:
                own.bind(address.path)
            except OSError:
                own.close()
                raise
            own.listen(1024)
    except OSError as error:
        raise BadInput(f"requests cannot be taken at {address}: {error.strerror or error}") from None
    own.setblocking(False)
    return own


def _check_free(path: str) -> None:
    """A socket that nobody listens to any more may be replaced, no other file."""
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISSOCK(os.stat(path).st_mode):  # noqa: PTH116
            raise BadInput(f"requests cannot be taken at unix:{path}: there is a file, and it is no socket")
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(path)
        except (FileNotFoundError, ConnectionRefusedError):
            return
    raise BadInput(f"requests cannot be taken at unix:{path}: another controller takes them there")
