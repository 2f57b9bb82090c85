"""Budgets over all connections, on real sockets: one address takes nothing from others, or from the operator."""

from __future__ import annotations

import asyncio
import resource
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from flowsieve.serving.http import http_connection, listener, server
from flowsieve.serving.http.http_connection import Respond
from flowsieve.serving.http.server import HttpServer

SECONDS = 60.0
BODY = 100_000
ANSWER = 8_000_000  # more than the system keeps for a socket
PING = b"POST /quick HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nping"
LARGE = b"POST /quick HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % BODY + b"x" * BODY
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Place:
    """A server at a TCP port and at the operator's socket; connections to it stay until the end."""

    def __init__(self, path: Path, port: int, stack: AsyncExitStack) -> None:
        self.path, self.port, self._stack = path, port, stack

    async def tcp(self, address: str = "127.0.0.1") -> Streams:
        return self._kept(await asyncio.open_connection("127.0.0.1", self.port, local_addr=(address, 0)))

    async def operator(self) -> Streams:
        return self._kept(await asyncio.open_unix_connection(str(self.path)))

    def _kept(self, streams: Streams) -> Streams:
        self._stack.callback(lambda: streams[1].transport.abort())
        return streams


async def app(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"x" * ANSWER})


def quick(body: bytes, respond: Respond) -> None:
    respond(200, b'"%d bytes"' % len(body))


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Place]:
    path = folder / "http"
    async with AsyncExitStack() as stack:
        routes = {(b"POST", b"/quick"): quick}
        http = await stack.enter_async_context(HttpServer(app, [f"unix:{path}", "tcp:127.0.0.1:0"], routes))
        yield Place(path, http.port, stack)


def play(folder: Path, story: Callable[[Place], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with asyncio.timeout(SECONDS), opened(folder) as place:
            await story(place)

    asyncio.run(whole())


async def answer(streams: Streams, sent: bytes = PING) -> bytes:
    """The first line of what comes back, and its last; nothing where the connection was closed."""
    reader, writer = streams
    with suppress(ConnectionError):
        writer.write(sent)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0])
        return head.partition(b"\r")[0] + b" " + await reader.readexactly(length)
    return b""


async def closed(streams: Streams) -> bytes:
    """What comes until the other side closes."""
    with suppress(ConnectionError):
        return await streams[0].read()
    return b""


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.01)


def test_idle_connections_of_one_address_leave_room_for_another_and_for_the_operator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "MOST_CONNECTIONS", 16)
    monkeypatch.setattr(listener, "CROWDED_SECONDS", SECONDS)

    async def story(place: Place) -> None:
        many = [await place.tcp() for _ in range(40)]
        told = [asyncio.create_task(closed(each)) for each in many]
        await until(lambda: sum(task.done() for task in told) == 40 - 8)
        assert all(task.result().startswith(b"HTTP/1.1 503 ") for task in told if task.done())
        for count in (4, 2, 1):  # each finds room, also after others that took all they could
            address = f"127.0.0.{10 + count}"
            others = [await place.tcp(address) for _ in range(6)]
            answers = [await answer(each) for each in others]
            assert [b"200 OK" in each for each in answers] == [True] * count + [False] * (6 - count)
        for _ in range(12):
            assert b"200 OK" in await answer(await place.operator())
        for task in told:
            task.cancel()

    play(tmp_path, story)


def test_where_there_is_hardly_room_idle_connections_have_to_leave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "MOST_CONNECTIONS", 16)
    monkeypatch.setattr(listener, "IDLE_SECONDS", 4.0)  # a quarter of it for one that has seven of eight
    monkeypatch.setattr(listener, "CROWDED_SECONDS", 0.2)
    monkeypatch.setattr(server, "CHECK_SECONDS", 0.05)

    async def story(place: Place) -> None:
        other = await place.tcp("127.0.0.2")
        assert b"200 OK" in await answer(other)
        many = [await place.tcp() for _ in range(7)]
        for each in many:
            assert b"200 OK" in await answer(each)
        left = [asyncio.create_task(closed(each)) for each in many]
        await until(lambda: any(task.done() for task in left))
        assert b"200 OK" in await answer(await place.tcp())
        assert b"200 OK" in await answer(other)  # it has taken little, and may be idle for long
        for task in left:
            task.cancel()

    play(tmp_path, story)


def test_half_sent_bodies_take_no_more_than_their_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "MOST_BYTES", 20 * BODY)

    async def story(place: Place) -> None:
        many = [await place.tcp() for _ in range(50)]
        for _, writer in many:
            writer.write(LARGE[:-1])
        told = [asyncio.create_task(closed(each)) for each in many]
        await until(lambda: sum(task.done() for task in told) >= 40)
        refused = [task.result() for task in told if task.done()]
        assert sum(b'"kind": "busy", "text": "too much is waiting' in each for each in refused) > 20
        assert b"200 OK" in await answer(await place.tcp())  # what is small always has room
        assert b'"100000 bytes"' in await answer(await place.tcp("127.0.0.2"), LARGE)
        assert b'"100000 bytes"' in await answer(await place.operator(), LARGE)
        for task, (_, writer) in zip(told, many, strict=True):
            task.cancel()
            writer.transport.abort()
        await asyncio.wait(told)
        got = b""
        while b'"100000 bytes"' not in got:  # when they have gone, their address has its share again
            got = await answer(await place.tcp(), LARGE)

    play(tmp_path, story)


def test_answers_that_nobody_reads_take_no_more_than_their_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "MOST_BYTES", 5 * ANSWER)

    async def story(place: Place) -> None:
        many = []
        for _ in range(10):
            own = socket.socket()
            own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 12)
            own.connect(("127.0.0.1", place.port))
            own.sendall(b"GET /large HTTP/1.1\r\n\r\n")
            many.append(own)
        try:
            asked = b"GET /large HTTP/1.1\r\n\r\n"
            got = b""
            while b"503 Service Unavailable" not in got:
                got = await answer(await place.tcp(), asked)
            assert b'"kind": "busy"' in got
            assert b"200 OK" in await answer(await place.tcp())
            assert b"200 OK" in await answer(await place.tcp("127.0.0.2"), asked)
            assert b"200 OK" in await answer(await place.operator(), asked)
        finally:
            for own in many:
                own.close()

    play(tmp_path, story)


def test_requests_behind_each_other_count_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "MOST_BYTES", 1_000_000)
    monkeypatch.setattr(http_connection, "FREE_BYTES", 4096)

    async def story(place: Place) -> None:
        reader, writer = await place.tcp()
        writer.write(b"GET / HTTP/1.1\r\n\r\n" * 10_000)
        got = await closed((reader, writer))
        assert got.count(b"HTTP/1.1 200") < 10_000
        assert b"200 OK" in await answer(await place.tcp())

    play(tmp_path, story)


SERVER = """
import asyncio, resource, sys
from flowsieve.serving.http.server import HttpServer

async def main():
    resource.setrlimit(resource.RLIMIT_NOFILE, (320, 320))
    quick = {(b"POST", b"/quick"): lambda body, respond: respond(200, b'"ping"')}
    async with HttpServer(None, [f"unix:{sys.argv[1]}", "tcp:127.0.0.1:0"], quick) as server:
        print(server.port, flush=True)
        await asyncio.to_thread(sys.stdin.read)

asyncio.run(main())
"""


def test_the_operators_socket_answers_where_others_would_take_all_descriptors(tmp_path: Path) -> None:
    path = tmp_path / "http"
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 1024:
        pytest.skip("too few files may be open here")
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as running:
        assert running.stdin is not None and running.stdout is not None
        port = int(running.stdout.readline())
        taken = []
        try:
            while len(taken) < 200:
                taken.append(socket.create_connection(("127.0.0.1", port), timeout=SECONDS))
            for _ in range(20):
                with socket.socket(socket.AF_UNIX) as own:
                    own.settimeout(SECONDS)
                    own.connect(str(path))
                    own.sendall(PING)
                    assert own.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
        finally:
            for each in taken:
                each.close()
            running.stdin.close()
            running.wait(SECONDS)
    assert running.returncode == 0
