"""One HTTP/1.1 connection: requests in, answers out, one after the other, with a time limit on every wait for bytes.

What it holds of them counts towards its listener's budget, as does the connection itself.

Clients' calls are many and small: *quick* routes skip the ASGI application, which takes over 100 µs more for each.
Uvicorn with a bare ASGI route takes 50 µs of a core for a call where this takes 28 (the whole service: 900), and its
limits on time, head, body and connections, the order of answers and ignored upgrades would have to be added to it.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, cast

import httptools
from starlette.types import ASGIApp

from flowsieve.serving.http.http_request import HttpRequest
from flowsieve.serving.http.inquiries import Asker
from flowsieve.serving.http.listener import FREE_BYTES, Listener
from flowsieve.tasks import noted

LONGEST_BODY = 1 << 20  # bytes
LONGEST_HEAD = 1 << 16  # bytes, of a request up to its body
MOST_HEADERS = 200
WHOLE_SECONDS = 10.0  # for a request that has begun, or the first one, to be complete
READ_SECONDS = 30.0  # for a client to read some of what it is sent
SLOWEST_READER = 1 << 15  # bytes a second; besides that, for the whole of an answer there are READ_SECONDS

Respond = Callable[[int, bytes], None]  # with a status and a JSON body
QuickRoute = Callable[[bytes, Respond], None]  # takes a body; responds now or later
log = logging.getLogger(__name__)


@dataclass(slots=True)
class HttpServerState:
    """What the connections of one server share."""

    app: ASGIApp
    quick: Mapping[tuple[bytes, bytes], QuickRoute]  # by method and URL
    date: bytes  # as HTTP writes it
    connections: set[HttpConnection] = field(default_factory=set)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)


class HttpConnection(asyncio.Protocol):
    """Parses bytes as they come; works on a request when it is complete and all before it are answered."""

    def __init__(self, server: HttpServerState, listener: Listener) -> None:
        self._server = server
        self._listener = listener
        self._peer: str | None = None  # its address, if it is one of many
        self._counted = False  # among its listener's connections
        self._held = 0  # bytes, counted there
        self._parser: Any = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport = cast(asyncio.Transport, None)
        self._now = asyncio.get_running_loop().time
        self._incoming = HttpRequest()
        self._in_request = True  # one has begun, or the first one is awaited
        self._head_bytes = 0  # of a request whose head is not complete
        self._queue: deque[HttpRequest] = deque()
        self._current: HttpRequest | None = None  # the one being answered
        self._advancing = False
        self._last = False  # nothing more is read; what was read is answered
        self._waits_since: float | None = None  # for bytes of the client; None while the client waits for us
        self._blocked = False  # the client has not read yet what it was sent
        self._unsent = 0  # bytes, at the last check
        self._unsent_since = 0.0  # as many
        self._read_by = 0.0  # when all of it has to be read
        self._gone = asyncio.Event()

    def check_time(self, now: float) -> None:
        """Close the connection if its client has used up its time, for a request, an answer, or between the two.

        One that reads nothing for some time has to leave before the time for the whole answer is over. So has one whose
        answers are more than there is room for, though each was small.
        """
        before, self._unsent = self._unsent, self._transport.get_write_buffer_size()
        if (self._unsent or self._held) and not self._weigh():
            self._transport.abort()
        elif self._blocked:
            if self._unsent < before:
                self._unsent_since = now
            if now > min(self._unsent_since + READ_SECONDS, self._read_by):
                self._transport.abort()
        elif self._waits_since is not None:
            limit = WHOLE_SECONDS if self._in_request else self._listener.idle_seconds(self._peer)
            if now - self._waits_since <= limit:
                return
            if self._in_request and not self._transport.is_closing():
                why = f"a request has to be complete within {WHOLE_SECONDS:g} s"
                self._refuse(HTTPStatus.REQUEST_TIMEOUT, why)
            else:
                self._transport.abort()

    def abort(self) -> None:
        self._transport.abort()

    # Called by the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._waits_since = self._now()
        self._server.connections.add(self)
        name = transport.get_extra_info("peername")
        self._peer = name[0] if isinstance(name, tuple) else None
        self._counted = self._listener.connections.take(self._peer)
        if not self._counted:
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, _CROWDED)

    def connection_lost(self, error: Exception | None) -> None:
        self._server.connections.discard(self)
        self._gone.set()
        self._queue.clear()
        self._incoming = HttpRequest()
        if self._counted:
            self._listener.connections.give_back(self._peer)
        self._listener.held_bytes.give_back(self._peer, self._held)
        self._held, self._counted = 0, False

    def data_received(self, data: bytes) -> None:
        if self._last:
            return
        self._head_bytes += len(data)
        try:
            self._parse(data)
        except httptools.HttpParserError:
            self._refuse(HTTPStatus.BAD_REQUEST, "this is no request of HTTP/1.1")
            return
        if self._head_bytes > LONGEST_HEAD:
            why = f"more than {LONGEST_HEAD:,} bytes of head"
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, why)
            return
        small = len(data) <= FREE_BYTES and not self._in_request and len(self._queue) < 2
        if (not small or self._held) and not self._weigh():
            self._queue.clear()
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, _TOO_MUCH)
            return
        self._advance()

    def eof_received(self) -> bool:
        self._last = True
        return self._current is not None or bool(self._queue)

    def pause_writing(self) -> None:
        now, size = self._now(), self._transport.get_write_buffer_size()
        self._blocked, self._unsent, self._unsent_since = True, size, now
        self._read_by = now + READ_SECONDS + size / SLOWEST_READER
        if not self._weigh():
            self._transport.abort()

    def resume_writing(self) -> None:
        self._blocked = False
        self._weigh()
        if self._waits_since is not None:
            self._waits_since = self._now()
        self._advance()

    def _parse(self, data: bytes) -> None:
        """Parse bytes; requests to upgrade to another protocol are ignored.

        After such a request the parser takes all bytes for the other protocol's: a new one reads the head without it.
        """
        left = memoryview(data)
        while True:
            try:
                self._parser.feed_data(left)
                return
            except httptools.HttpParserUpgrade as upgrade:
                if self._incoming.method == b"CONNECT":
                    self._last = True  # what follows is for another server
                    return
                head, left = self._incoming.head_without_upgrade, left[upgrade.args[0] :]
                self._parser = httptools.HttpRequestParser(self)
                self._parser.feed_data(head)

    def _weigh(self) -> bool:
        """Count what is held of requests and answers beyond what each connection may hold; whether there is room."""
        waiting = [*self._queue, self._incoming] if self._in_request else [*self._queue]
        if self._current is not None:
            waiting.append(self._current)
        size = self._head_bytes + sum(each.size for each in waiting) + self._transport.get_write_buffer_size()
        size = size if size > FREE_BYTES and self._counted else 0
        if size <= self._held:
            self._listener.held_bytes.give_back(self._peer, self._held - size)
        elif not self._listener.held_bytes.take(self._peer, size - self._held):
            return False
        self._held = size
        return True

    # Called by the parser.

    def on_message_begin(self) -> None:
        self._incoming, self._in_request = HttpRequest(), True
        if self._current is None:
            self._waits_since = self._now()

    def on_url(self, url: bytes) -> None:
        self._incoming.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._incoming.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        request, self._head_bytes = self._incoming, 0
        request.method, request.version = self._parser.get_method(), self._parser.get_http_version()
        request.keep_alive = request.version == "1.1" and self._parser.should_keep_alive()
        if not self._upgrades and self._current is None and (b"expect", b"100-continue") in request.headers:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        request, self._head_bytes = self._incoming, 0
        if len(request.body) + len(body) > LONGEST_BODY:
            request.too_long = True
        else:
            request.body += body

    def on_message_complete(self) -> None:
        if self._upgrades:
            return
        self._head_bytes, self._in_request = 0, False
        self._queue.append(self._incoming)
        if len(self._queue) > 1 or self._current is not None:
            self._transport.pause_reading()

    @property
    def _upgrades(self) -> bool:
        """Whether the request asks for another protocol, and will be parsed again without that."""
        return bool(self._parser.should_upgrade()) and self._incoming.method != b"CONNECT"

    # Requests, one after the other.

    def _advance(self) -> None:
        """Work on the next request, if it is its turn."""
        if self._advancing:
            return
        self._advancing = True
        while self._queue and self._current is None and not self._blocked:
            self._current, self._waits_since = self._queue.popleft(), None
            self._work(self._current)
        self._advancing = False

    def _work(self, request: HttpRequest) -> None:
        quick = self._server.quick.get((request.method, request.url))
        if request.too_long:
            self._answer(
                request, HTTPStatus.BAD_REQUEST, _wrong(f"a call of more than {LONGEST_BODY:,} bytes")
            )
        elif len(request.headers) > MOST_HEADERS:
            request.headers.clear()
            why = _wrong(f"more than {MOST_HEADERS} headers")
            self._answer(request, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, why)
        elif quick is None:
            task = asyncio.create_task(self._run_app(request))
            self._server.tasks.add(task)
            task.add_done_callback(self._server.tasks.discard)
            task.add_done_callback(noted)
        else:
            try:
                quick(bytes(request.body), lambda status, body: self._answer(request, status, body))
            except Exception:
                log.exception("%s", request.url)
                self._answer(request, HTTPStatus.INTERNAL_SERVER_ERROR, _FAILED)

    async def _run_app(self, request: HttpRequest) -> None:
        """Have the application answer."""
        parts: list[Any] = [{"type": "http.request", "body": bytes(request.body), "more_body": False}]
        start: Any = {}
        body = bytearray()

        async def receive() -> Any:
            if parts:
                return parts.pop()
            await self._gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
                return
            body.extend(message.get("body", b""))
            if not message.get("more_body", False):
                headers = list(start.get("headers", ()))
                if not any(name.lower() == b"content-length" for name, _ in headers):
                    headers.append((b"content-length", b"%d" % len(body)))
                self._send(request, start["status"], headers, bytes(body))

        try:
            asker = {"asker": Asker(self._listener, self._peer)}
            await self._server.app(request.scope | {"state": asker}, receive, send)
        except Exception:
            log.exception("%s", request.url)
        self._answer(request, HTTPStatus.INTERNAL_SERVER_ERROR, _FAILED)  # unless it has answered

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        """Read no more and say why; requests that were complete get their answers instead, the last of them closes."""
        self._last, self._incoming = True, HttpRequest()
        if self._current is not None or self._queue:
            self._advance()
        else:
            self._current = HttpRequest(keep_alive=False)
            kind = "busy" if status is HTTPStatus.SERVICE_UNAVAILABLE else "bad"
            self._answer(self._current, status, _wrong(why, kind))

    def _answer(self, request: HttpRequest, status: int, body: bytes) -> None:
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            headers.append((b"retry-after", b"1"))
        self._send(request, status, headers, body)

    def _send(
        self, request: HttpRequest, status: int, headers: list[tuple[bytes, bytes]], body: bytes
    ) -> None:
        """Send an answer, unless the request has one or the client has gone, and go on to the next request."""
        if request is not self._current or self._transport.is_closing():
            return
        if len(body) > FREE_BYTES and not self._listener.held_bytes.room(self._peer, len(body)):
            self._answer(request, HTTPStatus.SERVICE_UNAVAILABLE, _wrong(_TOO_MUCH, "busy"))
            return
        closes = not request.keep_alive or (self._last and not self._queue)
        parts = [b"HTTP/1.1 ", _STATUS[status], b"\r\ndate: ", self._server.date, b"\r\n"]
        for name, value in headers:
            parts += (name, b": ", value, b"\r\n")
        parts.append(b"connection: close\r\n\r\n" if closes else b"\r\n")
        parts.append(b"" if request.method == b"HEAD" else body)
        self._transport.write(b"".join(parts))
        self._current, self._waits_since = None, self._now()
        if self._held and not self._queue:
            self._weigh()
        if closes:
            self._transport.close()
            return
        if not self._queue and not self._last:
            self._transport.resume_reading()
        self._advance()


_STATUS = {status.value: f"{status.value} {status.phrase}".encode() for status in HTTPStatus}


def _wrong(text: str, kind: str = "bad") -> bytes:
    return json.dumps({"error": {"kind": kind, "text": text}}).encode()


_FAILED = _wrong("the controller failed", "failed")
_CROWDED = "there are too many connections, or too many from your address; try again later"
_TOO_MUCH = "too much is waiting to be complete or to be read, in all or from your address; try again later"
