"""Where a switch or a controller can be dialled, written as Open vSwitch writes it: unix:PATH or tcp:HOST:PORT."""

from __future__ import annotations

import asyncio
import errno
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

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
        """Have all that dial served; where somebody is served already, it is an OSError."""
        return await self.serve(
            lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader(limit=BUFFER), serve), backlog=100
        )

    async def serve(
        self, protocol: Callable[[], asyncio.BaseProtocol], backlog: int, start: bool = True
    ) -> asyncio.Server:
        """The same, each connection with a protocol of its own; without `start`, none is accepted yet."""
        loop = asyncio.get_running_loop()
        if self.path is not None:
            await _check_free(self.path)
            return await loop.create_unix_server(protocol, self.path, backlog=backlog, start_serving=start)
        return await loop.create_server(protocol, self.host, self.port, backlog=backlog, start_serving=start)

    async def reserve(self, backlog: int) -> ReservedAddress:
        """Keep all others from listening there; where somebody does already, it is an OSError."""
        return await ReservedAddress.make(self, backlog)

    def __str__(self) -> str:
        return f"unix:{self.path}" if self.path is not None else f"tcp:{self.host}:{self.port}"


class ReservedAddress:
    """An address at which nobody else can listen any more: whoever dials waits until it is served."""

    def __init__(self, address: SocketAddress) -> None:
        self.address = address
        self._closed = False
        self._server: asyncio.Server
        self._protocol: Callable[[], asyncio.BaseProtocol] = asyncio.Protocol

    @classmethod
    async def make(cls, address: SocketAddress, backlog: int) -> ReservedAddress:
        made = cls(address)
        made._server = await address.serve(lambda: made._protocol(), backlog, start=False)
        try:
            for each in made._server.sockets:
                with each.dup() as same:
                    same.listen(backlog)  # what is only bound is nobody's: another could still listen there
        except OSError:
            made.close()
            raise
        return made

    async def serve(self, protocol: Callable[[], asyncio.BaseProtocol]) -> asyncio.Server:
        """Accept who has dialled, and who will."""
        self._protocol = protocol
        await self._server.start_serving()
        return self._server

    def close(self) -> None:
        """Let others listen there; once only, since they may by the second time."""
        if self._closed:
            return
        self._closed = True
        self._server.close()
        if self.address.path is not None:
            Path(self.address.path).unlink(missing_ok=True)


def _may_be_host(name: str) -> bool:
    """Whether a name can be a host's at all."""
    try:
        return bool(name.encode("idna"))
    except UnicodeError:  # as for a..b
        return False


async def _check_free(path: str) -> None:
    """Raise where somebody listens or another file is: only a socket that nobody listens to any more is replaced."""
    try:
        if not stat.S_ISSOCK(os.stat(path).st_mode):  # noqa: PTH116
            raise OSError(errno.EEXIST, "there is a file, and it is no socket")
        _, writer = await asyncio.open_unix_connection(path)
    except FileNotFoundError:
        if Path(path).is_symlink():  # to one that is gone
            Path(path).unlink()
        return
    except ConnectionRefusedError:
        return
    writer.transport.abort()
    raise OSError(errno.EADDRINUSE, "the address is in use: another controller listens there")
