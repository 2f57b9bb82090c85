"""A wire to a switch or the controller that can be cut: at once, in the middle of a message, silently, or for long."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path


class Proxy:
    """Passes on what comes, until told otherwise."""

    def __init__(self, path: Path, switch: Path) -> None:
        self.path = path
        self.cuts = 0
        self._switch = switch
        self._server: asyncio.Server | None = None
        self._blocked = False
        self._passing = asyncio.Event()
        self._passing.set()
        self._left: int | None = None  # bytes to the switch before the wire is cut
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_unix_server(self._met, self.path)

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self) -> None:
        """End all connections."""
        self.cuts += 1
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    def block(self, blocked: bool) -> None:
        """Let no connection be, or let them be again; the switch goes on."""
        self._blocked = blocked
        if blocked:
            self.cut()

    def hang(self, hanging: bool) -> None:
        """Pass nothing on, or go on; connections stay, and nobody hears of it."""
        if hanging:
            self._passing.clear()
        else:
            self._passing.set()

    def cut_after(self, count: int) -> None:
        """Cut the wire once so many bytes more have gone to the switch."""
        self._left = count

    async def _dialled(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_unix_connection(self._switch)

    def _met(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._blocked:
            writer.transport.abort()
            return
        try:
            far_reader, far_writer = await self._dialled()
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, far_writer}
        with contextlib.suppress(OSError):
            await asyncio.gather(
                self._pass(reader, far_writer, counted=True), self._pass(far_reader, writer, counted=False)
            )
        for each in (writer, far_writer):
            each.transport.abort()
            self._writers.discard(each)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, counted: bool) -> None:
        while data := await reader.read(1 << 16):
            await self._passing.wait()
            last = counted and self._left is not None and len(data) >= self._left
            writer.write(data[: self._left] if last else data)
            await writer.drain()
            if last:
                self._left = None
                self.cut()
                return
            if counted and self._left is not None:
                self._left -= len(data)
        raise ConnectionResetError


class TcpProxy(Proxy):
    """The same to an address HOST:PORT; its own is `address` once it is started."""

    def __init__(self, target: str) -> None:
        super().__init__(Path(), Path())
        self.address = ""
        self._target = target

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._met, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def _dialled(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, _, port = self._target.rpartition(":")
        return await asyncio.open_connection(host, int(port))
