"""Connections of HTTP over real sockets: whatever a client sends or leaves out, it holds up nobody for long."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from flowsieve.serving.http import http_connection as connection
from flowsieve.serving.http import listener, server
from flowsieve.serving.http.http_connection import LONGEST_HEAD, Respond
from flowsieve.serving.http.server import HttpServer

SECONDS = 20.0
PING = b"POST /quick HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nping"


class Harness:
    """A server with one quick address, which answers when it is let, and an application for all others."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.waiting: list[tuple[bytes, Respond]] = []
        self.held = False
        self.app_bodies: list[bytes] = []

    def quick(self, body: bytes, respond: Respond) -> None:
        if body == b"oops":
            raise RuntimeError("a mistake")
        if self.held:
            self.waiting.append((body, respond))
        else:
            respond(200, b'"%s"' % body)

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/broken":
            raise RuntimeError("a mistake")
        self.app_bodies.append((await receive())["body"])
        told = f"{scope['method']} {scope['path']} {scope['query_string'].decode()}".encode()
        size = 5_000_000 if scope["path"] == "/large" else 0
        await send({"type": "http.response.start", "status": 200, "headers": [(b"X-One", b"1")]})
        await send({"type": "http.response.body", "body": told, "more_body": True})
        await send({"type": "http.response.body", "body": b" " * size})

    @contextmanager
    def connected(self) -> Iterator[socket.socket]:
        with socket.socket(socket.AF_UNIX) as own:
            own.setblocking(False)
            own.connect(str(self.path))
            yield own


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Harness]:
    harness = Harness(folder / "http")
    async with HttpServer(harness.app, [f"unix:{harness.path}"], {(b"POST", b"/quick"): harness.quick}):
        yield harness


def play(folder: Path, story: Callable[[Harness], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with asyncio.timeout(SECONDS), opened(folder) as harness:
            await story(harness)

    asyncio.run(whole())


async def received(own: socket.socket, count: int | None = None) -> bytes:
    """What comes until the other side closes, or until so many answers have begun."""
    loop, got = asyncio.get_running_loop(), b""
    while count is None or got.count(b"HTTP/1.1") < count or not got.endswith(b'"'):
        part = await loop.sock_recv(own, 1 << 16)
        if not part:
            break
        got += part
    return got


async def send(own: socket.socket, data: bytes) -> None:
    await asyncio.get_running_loop().sock_sendall(own, data)


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, seconds in (
        (connection, "WHOLE_SECONDS", 0.3),
        (listener, "IDLE_SECONDS", 0.3),
        (connection, "READ_SECONDS", 0.3),
        (server, "CHECK_SECONDS", 0.05),
    ):
        monkeypatch.setattr(module, name, seconds)


@pytest.mark.parametrize(
    "begun",
    [
        b"",
        b"\r\n",
        b"POST /quick HTTP/1.1\r\nHost: x\r\n",
        b"POST /quick HTTP/1.1\r\nContent-Length: 9\r\n\r\nhalf",
    ],
)
def test_one_that_never_finishes_its_request_has_to_leave(
    tmp_path: Path, hurried: None, begun: bytes
) -> None:
    async def story(harness: Harness) -> None:
        with harness.connected() as own:
            await send(own, begun)
            assert (await received(own)).startswith(b"HTTP/1.1 408 ")
        with harness.connected() as own:
            await send(own, PING)
            assert b'"ping"' in await received(own, 1)

    play(tmp_path, story)


def test_one_that_sends_its_head_byte_by_byte_has_no_more_time(tmp_path: Path, hurried: None) -> None:
    async def story(harness: Harness) -> None:
        with harness.connected() as own:
            await send(own, b"GET / HTTP/1.1\r\nX: ")
            began, got = asyncio.get_running_loop().time(), b""
            with suppress(ConnectionError):  # where a byte was not read any more, that is all one hears
                while not got:
                    await send(own, b"x")
                    await asyncio.sleep(0.02)
                    with suppress(BlockingIOError):
                        got = own.recv(1 << 16)
            assert not got or got.startswith(b"HTTP/1.1 408 ")
            assert asyncio.get_running_loop().time() - began < 5

    play(tmp_path, story)


def test_one_that_says_nothing_after_an_answer_has_to_leave(tmp_path: Path, hurried: None) -> None:
    async def story(harness: Harness) -> None:
        with harness.connected() as own:
            await send(own, PING)
            assert (await received(own)).count(b"HTTP/1.1 200 OK") == 1

    play(tmp_path, story)


def test_one_that_waits_for_its_answer_may_wait_long(tmp_path: Path, hurried: None) -> None:
    async def story(harness: Harness) -> None:
        harness.held = True
        with harness.connected() as own:
            await send(own, PING)
            await asyncio.sleep(0.8)
            ((body, respond),) = harness.waiting
            respond(200, b'"late"')
            assert body == b"ping"
            assert b'"late"' in await received(own, 1)

    play(tmp_path, story)


def test_one_that_does_not_take_its_answer_has_to_leave(tmp_path: Path, hurried: None) -> None:
    async def story(harness: Harness) -> None:
        with harness.connected() as own:
            await send(own, b"GET /large HTTP/1.1\r\n\r\n")
            await asyncio.sleep(1.0)
            got = b""
            with pytest.raises(ConnectionResetError):
                while part := await asyncio.get_running_loop().sock_recv(own, 1 << 20):
                    got += part
                assert len(got) < 5_000_000
                raise ConnectionResetError  # closed before all was sent
        with harness.connected() as own:
            await send(own, PING)
            assert b'"ping"' in await received(own, 1)

    play(tmp_path, story)


def test_requests_behind_each_other_are_answered_in_order_one_at_a_time(tmp_path: Path) -> None:
    async def story(harness: Harness) -> None:
        harness.held = True
        with harness.connected() as own:
            await send(own, b"".join(PING.replace(b"ping", b"%04d" % n) for n in range(500)))
            for n in range(500):
                while not harness.waiting:
                    await asyncio.sleep(0)
                ((body, respond),) = harness.waiting
                harness.waiting.clear()
                assert body == b"%04d" % n
                respond(200, b'"%s"' % body)
            got = await received(own, 500)
            assert [int(part[:4]) for part in got.split(b'\r\n\r\n"')[1:]] == list(range(500))

    play(tmp_path, story)


def test_thousands_that_are_answered_at_once_do_not_pile_up(tmp_path: Path) -> None:
    async def story(harness: Harness) -> None:
        with harness.connected() as own:
            await send(own, PING * 3000)
            assert (await received(own, 3000)).count(b'"ping"') == 3000

    play(tmp_path, story)


def test_what_is_not_quick_goes_to_the_application(tmp_path: Path) -> None:
    async def story(harness: Harness) -> None:
        with harness.connected() as own:
            await send(own, b"GET /some%20where?a=1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            got = await received(own)
            assert got.startswith(b"HTTP/1.1 200 OK\r\n")
            assert b"\r\nX-One: 1\r\n" in got and b"connection: close" in got
            assert got.endswith(b"\r\n\r\nGET /some where a=1")
        with harness.connected() as own:
            await send(own, b"HEAD / HTTP/1.0\r\n\r\n")
            assert (await received(own)).endswith(b"\r\n\r\n")
        with harness.connected() as own:
            await send(own, b"POST /b HTTP/1.1\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n")
            await send(own, b"3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n")
            await received(own)
            assert harness.app_bodies[-1] == b"abcd"

    play(tmp_path, story)


def test_a_mistake_of_ours_is_told_and_the_next_request_is_served(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(harness: Harness) -> None:
        with harness.connected() as own:
            await send(own, PING.replace(b"ping", b"oops") + b"GET /broken HTTP/1.1\r\n\r\n" + PING)
            got = await received(own, 3)
            assert got.count(b"HTTP/1.1 500 ") == 2
            assert got.endswith(b'"ping"')

    play(tmp_path, story)
    assert "a mistake" in caplog.text


def test_one_that_asks_whether_to_go_on_is_told_so(tmp_path: Path) -> None:
    async def story(harness: Harness) -> None:
        with harness.connected() as own:
            head, _, body = PING.partition(b"\r\n\r\n")
            await send(own, head + b"\r\nExpect: 100-continue\r\n\r\n")
            assert await asyncio.get_running_loop().sock_recv(own, 99) == b"HTTP/1.1 100 Continue\r\n\r\n"
            await send(own, body)
            assert b'"ping"' in await received(own, 1)

    play(tmp_path, story)


def test_one_that_has_said_all_is_still_answered(tmp_path: Path) -> None:
    async def story(harness: Harness) -> None:
        harness.held = True
        with harness.connected() as own:
            await send(own, PING)
            own.shutdown(socket.SHUT_WR)
            while not harness.waiting:
                await asyncio.sleep(0.001)
            await asyncio.sleep(0.02)
            harness.waiting[0][1](200, b'"bye"')
            assert (await received(own)).endswith(b'"bye"')

    play(tmp_path, story)


def test_a_head_that_does_not_end_is_not_kept(tmp_path: Path) -> None:
    async def story(harness: Harness) -> None:
        with harness.connected() as own:
            await send(own, b"GET / HTTP/1.1\r\nX: " + b"x" * (LONGEST_HEAD + 1))
            assert (await received(own)).startswith(b"HTTP/1.1 431 ")

    play(tmp_path, story)


def test_a_head_of_very_many_headers_is_not_kept(tmp_path: Path) -> None:
    async def story(harness: Harness) -> None:
        with harness.connected() as own:
            many = b"a:\r\n" * (2 * connection.MOST_HEADERS)
            await send(own, b"GET / HTTP/1.1\r\n" + many + b"\r\n" + PING)
            got = await received(own, 2)
            assert got.startswith(b"HTTP/1.1 431 ") and got.endswith(b'"ping"')

    play(tmp_path, story)


def test_an_answer_for_one_that_has_gone_is_for_nobody(tmp_path: Path) -> None:
    async def story(harness: Harness) -> None:
        harness.held = True
        with harness.connected() as own:
            await send(own, PING)
            while not harness.waiting:
                await asyncio.sleep(0.001)
        await asyncio.sleep(0.02)
        harness.waiting[0][1](200, b'"late"')
        harness.held = False
        with harness.connected() as own:
            await send(own, PING)
            assert (await received(own, 1)).endswith(b'"ping"')

    play(tmp_path, story)


@pytest.mark.parametrize(
    ("place", "name", "bound"),
    [(listener, "MOST_CONNECTIONS", 1), (server, "room_for_clients", lambda: 1)],
    ids=["ours", "the machine's"],
)
def test_beyond_so_many_connections_others_are_sent_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: object, name: str, bound: object
) -> None:
    monkeypatch.setattr(place, name, bound)
    monkeypatch.setattr(listener, "CROWDED_SECONDS", SECONDS)

    async def story(harness: Harness) -> None:
        with harness.connected() as own:
            await send(own, PING)
            assert b'"ping"' in await received(own, 1)
            with harness.connected() as other:
                assert (await received(other)).startswith(b"HTTP/1.1 503 ")
            await send(own, PING)
            assert b'"ping"' in await received(own, 1)

    play(tmp_path, story)


GARBAGE = b"\x00\x01 no request\r\n\r\n"


@pytest.mark.parametrize(
    ("more", "late"),
    [
        (GARBAGE, False),
        (GARBAGE, True),
        (PING + GARBAGE, False),
        (PING + GARBAGE, True),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * (LONGEST_HEAD + 1), True),
    ],
    ids=[
        "nonsense",
        "nonsense later",
        "one more and nonsense",
        "one more and nonsense later",
        "a long head later",
    ],
)
def test_what_comes_after_a_request_does_not_take_its_answer_away(
    tmp_path: Path, more: bytes, late: bool
) -> None:
    async def story(harness: Harness) -> None:
        harness.held = True
        with harness.connected() as own:
            await send(own, PING if late else PING + more)
            while not harness.waiting:
                await asyncio.sleep(0.001)
            if late:
                await send(own, more)
                await asyncio.sleep(0.02)
            harness.held = False
            harness.waiting[0][1](200, b'"done"')
            got = await received(own)
            assert got.count(b"HTTP/1.1") == got.count(b"HTTP/1.1 200 ") == 1 + more.count(b"ping")
            assert b'"done"' in got and b"connection: close" in got

    play(tmp_path, story)


@pytest.mark.parametrize("late", [False, True])
def test_bytes_after_the_last_request_are_for_nobody(tmp_path: Path, late: bool) -> None:
    async def story(harness: Harness) -> None:
        harness.held = True
        last = PING.replace(b"Host: x", b"Connection: close")
        with harness.connected() as own:
            await send(own, last if late else last + PING)
            while not harness.waiting:
                await asyncio.sleep(0.001)
            if late:
                await send(own, PING)
                await asyncio.sleep(0.02)
            ((_, respond),) = harness.waiting
            respond(200, b'"done"')
            got = await received(own)
            assert got.startswith(b"HTTP/1.1 200 ") and got.count(b"HTTP/1.1") == 1

    play(tmp_path, story)


def test_one_that_reads_slowly_gets_all_of_its_answer(tmp_path: Path, hurried: None) -> None:
    async def story(harness: Harness) -> None:
        loop = asyncio.get_running_loop()
        with harness.connected() as own:
            await send(own, b"GET /large HTTP/1.1\r\nConnection: close\r\n\r\n")
            began, size = loop.time(), 0
            while part := await loop.sock_recv(own, 1 << 17):
                size += len(part)
                await asyncio.sleep(0.02)
            assert size > 5_000_000
            assert loop.time() - began > 2 * connection.READ_SECONDS

    play(tmp_path, story)


def test_one_that_reads_a_little_now_and_then_has_to_leave(
    tmp_path: Path, hurried: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "SLOWEST_READER", 5_000_000)

    async def story(harness: Harness) -> None:
        loop = asyncio.get_running_loop()
        with harness.connected() as own:
            await send(own, b"GET /large HTTP/1.1\r\n\r\n")
            size = 0
            with suppress(ConnectionResetError):
                while part := await loop.sock_recv(own, 1 << 16):  # at this pace it would take four seconds
                    size += len(part)
                    await asyncio.sleep(0.05)
            assert size < 5_000_000

    play(tmp_path, story)


@pytest.mark.parametrize("count", [1, 500])
@pytest.mark.parametrize("cut", [0, 30, 90, 110])
def test_an_upgrade_to_another_protocol_is_ignored(tmp_path: Path, cut: int, count: int) -> None:
    upgrading = PING.replace(b"Host: x", b"Connection: Upgrade\r\nUpgrade: h2c\r\nX: y")

    async def story(harness: Harness) -> None:
        with harness.connected() as own:
            await send(own, upgrading[:cut])
            await asyncio.sleep(0.01)
            await send(own, upgrading[cut:] + upgrading * (count - 1) + PING)
            got = await received(own, count + 1)
            assert got.count(b"HTTP/1.1 200 ") == got.count(b'"ping"') == count + 1
            await send(own, b"GET / HTTP/1.1\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n")
            assert (await received(own)).endswith(b"GET / ")

    play(tmp_path, story)


def test_one_that_wants_to_be_connected_elsewhere_is_answered_and_has_to_leave(tmp_path: Path) -> None:
    async def story(harness: Harness) -> None:
        with harness.connected() as own:
            await send(own, b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n" + PING)
            got = await received(own)
            assert got.count(b"HTTP/1.1") == 1
            assert b"ping" not in got

    play(tmp_path, story)
