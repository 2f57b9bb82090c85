"""Where a switch or a controller can be dialled, written as Open vSwitch writes it: unix:PATH or tcp:HOST:PORT."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable
from dataclasses import dataclass

from flowsieve.errors import BadInput

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
BUFFER = 1 << 18  # bytes that may wait to be read


@dataclass(frozen=True, slots=True)
class SocketAddress:
    """A socket's address: a path, or a host and a port.

    >>> SocketAddress.parse("tcp:[::1]:6653"), SocketAddress.parse("unix:/run/s1.mgmt").path
    (SocketAddress(path=None, host='::1', port=6653), '/run/s1.mgmt')
    """

    path: str | None = None
    host: str = ""
    port: int = 0

    @classmethod
    def parse(cls, text: str) -> SocketAddress:
        kind, _, rest = text.partition(":")
        if kind == "unix" and rest:
            return cls(path=rest)
        host, _, port = rest.rpartition(":")
        if kind == "tcp" and _may_be_host(host) and port.isdecimal() and int(port) < 1 << 16:
            return cls(host=host.removeprefix("[").removesuffix("]"), port=int(port))
        raise BadInput(f"{text!r} is no address; right is unix:/run/s1.mgmt or tcp:127.0.0.1:6653")

    async def dial(self) -> Streams:
        """Connect to what listens there."""
        if self.path is not None:
            return await asyncio.open_unix_connection(self.path, limit=BUFFER)
        return await asyncio.open_connection(self.host, self.port, limit=BUFFER)

    async def listen(
        self, serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]
    ) -> asyncio.Server:
        """Have `serve` called for everyone who dials; raises OSError where somebody else listens already."""
        if self.path is not None:
            await _check_free(self.path)
            return await asyncio.start_unix_server(serve, self.path, limit=BUFFER)
        return await asyncio.start_server(serve, self.host, self.port, limit=BUFFER)

    def __str__(self) -> str:
        return f"unix:{self.path}" if self.path is not None else f"tcp:{self.host}:{self.port}"


def _may_be_host(name: str) -> bool:
    """Whether a name can be a host's at all."""
    try:
        return bool(name.encode("idna"))
    except UnicodeError:  # as for a..b
        return False


async def _check_free(path: str) -> None:
    """Raise where somebody listens on a socket: we would take its path away."""
    try:
        _, writer = await asyncio.open_unix_connection(path)
    except (FileNotFoundError, ConnectionRefusedError):
        return
    writer.transport.abort()
    raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
