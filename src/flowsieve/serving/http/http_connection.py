"""One HTTP/1.1 connection: requests in, answers out, one after the other, with a time limit on every wait for bytes.

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

LONGEST_BODY = 1 << 20  # bytes
LONGEST_HEAD = 1 << 16  # bytes, of a request up to its body
WHOLE_SECONDS = 10.0  # for a request that has begun, or the first one, to be complete
IDLE_SECONDS = 60.0  # between two requests
READ_SECONDS = 30.0  # for a client to read some of what it is sent

Respond = Callable[[int, bytes], None]  # with a status and a JSON body
QuickRoute = Callable[[bytes, Respond], None]  # takes a body; responds now or later
log = logging.getLogger(__name__)


@dataclass(slots=True)
class HttpServerState:
    """What the connections of one server share."""

    app: ASGIApp
    quick: Mapping[tuple[bytes, bytes], QuickRoute]  # by method and URL
    most_connections: int
    date: bytes  # as HTTP writes it
    connections: set[HttpConnection] = field(default_factory=set)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)


class HttpConnection(asyncio.Protocol):
    """Parses bytes as they come; works on a request when it is complete and all before it are answered."""

    def __init__(self, server: HttpServerState) -> None:
        self._server = server
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
        self._blocked_since: float | None = None  # the client does not read what it is sent
        self._unsent = 0  # bytes, at the last check
        self._gone = asyncio.Event()

    def check_time(self, now: float) -> None:
        """Close the connection if its client has used up its time; reading some of an answer gives it new time."""
        if self._blocked_since is not None:
            before, self._unsent = self._unsent, self._transport.get_write_buffer_size()
            if self._unsent < before:
                self._blocked_since = now
            if now - self._blocked_since > READ_SECONDS:
                self._transport.abort()
        elif self._waits_since is not None:
            if now - self._waits_since <= (WHOLE_SECONDS if self._in_request else IDLE_SECONDS):
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
        if len(self._server.connections) > self._server.most_connections:
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, "there are too many connections; try again later")

    def connection_lost(self, error: Exception | None) -> None:
        self._server.connections.discard(self)
        self._gone.set()
        self._queue.clear()

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
        self._advance()

    def eof_received(self) -> bool:
        self._last = True
        return self._current is not None or bool(self._queue)

    def pause_writing(self) -> None:
        self._blocked_since, self._unsent = self._now(), self._transport.get_write_buffer_size()

    def resume_writing(self) -> None:
        self._blocked_since = None
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
        while self._queue and self._current is None and self._blocked_since is None:
            self._current, self._waits_since = self._queue.popleft(), None
            self._work(self._current)
        self._advancing = False

    def _work(self, request: HttpRequest) -> None:
        quick = self._server.quick.get((request.method, request.url))
        if request.too_long:
            self._answer(
                request, HTTPStatus.BAD_REQUEST, _wrong(f"a call of more than {LONGEST_BODY:,} bytes")
            )
        elif quick is None:
            task = asyncio.create_task(self._run_app(request))
            self._server.tasks.add(task)
            task.add_done_callback(self._server.tasks.discard)
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
            await self._server.app(request.scope, receive, send)
        except Exception:
            log.exception("%s", request.url)
        self._answer(request, HTTPStatus.INTERNAL_SERVER_ERROR, _FAILED)  # unless it has answered

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        """Read no more and say why; requests that were complete get their answers instead, the last of them closes."""
        self._last = True
        if self._current is not None or self._queue:
            self._advance()
        else:
            self._current = HttpRequest(keep_alive=False)
            self._answer(self._current, status, _wrong(why))

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
        closes = not request.keep_alive or (self._last and not self._queue)
        parts = [b"HTTP/1.1 ", _STATUS[status], b"\r\ndate: ", self._server.date, b"\r\n"]
        for name, value in headers:
            parts += (name, b": ", value, b"\r\n")
        parts.append(b"connection: close\r\n\r\n" if closes else b"\r\n")
        parts.append(b"" if request.method == b"HEAD" else body)
        self._transport.write(b"".join(parts))
        self._current, self._waits_since = None, self._now()
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
