"""One connection of HTTP/1.1: requests in, answers out, one after the other, and nobody waits for bytes for ever.

Calls of clients are many and small, so those addresses that are named as *quick* are answered without the way through
an ASGI application, which costs more than all that the controller has to do for a call. All others take that way.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from http import HTTPStatus
from typing import Any, Protocol, cast

import httptools

from flowsieve.serving.http.http_request import Incoming

LONGEST_BODY = 1 << 20  # bytes
LONGEST_HEAD = 1 << 16  # bytes, of a request up to its body
WHOLE_SECONDS = 10.0  # until a request that was begun has come whole, and until the first one has
IDLE_SECONDS = 60.0  # between two requests
READ_SECONDS = 30.0  # until a client has taken what it is sent
JSON = b"application/json"

Answer = Callable[[int, bytes], None]  # with a status, and a body of JSON
Quick = Callable[[bytes, Answer], None]  # takes a body, and answers now or later
App = Callable[
    [MutableMapping[str, Any], Callable[[], Awaitable[Any]], Callable[[Any], Awaitable[None]]],
    Awaitable[None],
]
log = logging.getLogger(__name__)


class House(Protocol):
    """What the connections of a server share."""

    app: App
    quick: Mapping[tuple[bytes, bytes], Quick]  # by method and address
    date: bytes  # as HTTP writes it

    def came(self, connection: Connection) -> bool:
        """A connection was made; whether there is room for it."""
        ...

    def went(self, connection: Connection) -> None: ...

    def own(self, work: Awaitable[None]) -> None:
        """See to work until it is done."""
        ...


class Connection(asyncio.Protocol):
    """Bytes are parsed as they come; a request is worked on when it is whole, and none before the last was answered."""

    def __init__(self, house: House) -> None:
        self.waits_since: float | None = (
            None  # for bytes of its client; None while it is the client that waits
        )
        self.clogged_since: float | None = None  # it does not take what it is sent
        self._house = house
        self._parser: Any = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport = cast(asyncio.Transport, None)
        self._now = asyncio.get_running_loop().time
        self._asked = Incoming()
        self._head = 0  # bytes of a request whose head is not whole
        self._begun = True  # a request, or its first one is awaited
        self._answering: Incoming | None = None
        self._queue: deque[Incoming] = deque()
        self._advancing = self._ends = False
        self._left = 0  # bytes to be sent, when it was looked last
        self._gone: asyncio.Event | None = None

    def overdue(self, now: float) -> bool:
        """Whether its client has had its time; one that took something since it was looked last has it anew."""
        if self.clogged_since is not None:
            before, self._left = self._left, self._transport.get_write_buffer_size()
            if self._left < before:
                self.clogged_since = now
            return now - self.clogged_since > READ_SECONDS
        patience = WHOLE_SECONDS if self._begun else IDLE_SECONDS
        return self.waits_since is not None and now - self.waits_since > patience

    def dismiss(self) -> None:
        """Its client has had its time."""
        if self.clogged_since is None and self._begun and not self._transport.is_closing():
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, f"a request comes whole within {WHOLE_SECONDS:g} s")
        else:
            self._transport.abort()

    def abort(self) -> None:
        self._transport.abort()

    # What the transport tells.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.waits_since = self._now()
        if not self._house.came(self):
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, "there are too many connections; try again later")

    def connection_lost(self, error: Exception | None) -> None:
        self._house.went(self)
        if self._gone is not None:
            self._gone.set()
        self._queue.clear()

    def data_received(self, data: bytes) -> None:
        if self._ends:
            return
        self._head += len(data)
        try:
            self._parse(data)
        except httptools.HttpParserError:
            self._refuse(HTTPStatus.BAD_REQUEST, "this is no request of HTTP/1.1")
            return
        if self._head > LONGEST_HEAD:
            self._refuse(
                HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"more than {LONGEST_HEAD:,} bytes of head"
            )
            return
        self._advance()

    def eof_received(self) -> bool:
        self._ends = True
        return self._answering is not None or bool(self._queue)

    def pause_writing(self) -> None:
        self.clogged_since, self._left = self._now(), self._transport.get_write_buffer_size()

    def resume_writing(self) -> None:
        self.clogged_since = None
        if self.waits_since is not None:
            self.waits_since = self._now()
        self._advance()

    def _parse(self, data: bytes) -> None:
        """Parse bytes; that a client would rather talk something else is passed over, as if it had not said so.

        The parser then takes all that follows for that other talk, so another one reads the same head without the wish.
        """
        left = memoryview(data)
        while True:
            try:
                self._parser.feed_data(left)
                return
            except httptools.HttpParserUpgrade as wish:
                if self._asked.method == b"CONNECT":
                    self._ends = True  # what follows is not for us; what was asked is answered
                    return
                head, left = self._asked.plain_head, left[wish.args[0] :]
                self._parser = httptools.HttpRequestParser(self)
                self._parser.feed_data(head)

    # What the parser tells.

    def on_message_begin(self) -> None:
        self._asked, self._begun = Incoming(), True
        if self._answering is None:
            self.waits_since = self._now()

    def on_url(self, url: bytes) -> None:
        self._asked.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._asked.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        asked, self._head = self._asked, 0
        asked.method, asked.version = self._parser.get_method(), self._parser.get_http_version()
        asked.keeps = asked.version == "1.1" and self._parser.should_keep_alive()
        if self._wishes:
            return
        if (b"expect", b"100-continue") in asked.headers and self._answering is None:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        asked, self._head = self._asked, 0
        if len(asked.body) + len(body) > LONGEST_BODY:
            asked.too_long = True
        else:
            asked.body += body

    def on_message_complete(self) -> None:
        if self._wishes:
            return
        self._head, self._begun = 0, False
        self._queue.append(self._asked)
        if len(self._queue) > 1 or self._answering is not None:
            self._transport.pause_reading()

    @property
    def _wishes(self) -> bool:
        """Whether the request is one to be read again, without its wish to talk something else."""
        return bool(self._parser.should_upgrade()) and self._asked.method != b"CONNECT"

    # Requests, one after the other.

    def _advance(self) -> None:
        """Work on the next request, if it can be."""
        if self._advancing:
            return
        self._advancing = True
        while self._queue and self._answering is None and self.clogged_since is None:
            self._answering, self.waits_since = self._queue.popleft(), None
            self._work(self._answering)
        self._advancing = False

    def _work(self, asked: Incoming) -> None:
        quick = self._house.quick.get((asked.method, asked.url))
        if asked.too_long:
            self._answer(asked, HTTPStatus.BAD_REQUEST, _wrong(f"a call of more than {LONGEST_BODY:,} bytes"))
        elif quick is None:
            self._house.own(self._run_app(asked))
        else:
            try:
                quick(bytes(asked.body), lambda status, body: self._answer(asked, status, body))
            except Exception:
                log.exception("%s", asked.url)
                self._answer(
                    asked, HTTPStatus.INTERNAL_SERVER_ERROR, _wrong("the controller failed", "failed")
                )

    def _answer(self, asked: Incoming, status: int, body: bytes) -> None:
        headers = [(b"content-type", JSON), (b"content-length", b"%d" % len(body))]
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            headers.append((b"retry-after", b"1"))
        self._send(asked, status, headers, body)

    def _send(self, asked: Incoming, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        """Send an answer, unless nobody is there any more, and go on."""
        if asked is not self._answering or self._transport.is_closing():
            return
        last = not asked.keeps or (self._ends and not self._queue)
        parts = [b"HTTP/1.1 ", _STATUS[status], b"\r\ndate: ", self._house.date, b"\r\n"]
        for name, value in headers:
            parts += (name, b": ", value, b"\r\n")
        parts += (b"connection: close\r\n\r\n" if last else b"\r\n", b"" if asked.method == b"HEAD" else body)
        self._transport.write(b"".join(parts))
        self._answering, self._gone, self.waits_since = None, None, self._now()
        if last:
            self._transport.close()
            return
        if not self._queue and not self._ends:
            self._transport.resume_reading()
        self._advance()

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        """Say why, and talk no more; if something came whole before, answer that: a refusal would be taken for it."""
        self._ends = True
        if self._answering is not None or self._queue:
            self._advance()
            return
        self._answering = Incoming(keeps=False)
        self._answer(self._answering, status, _wrong(why))

    async def _run_app(self, asked: Incoming) -> None:
        """Have the application answer."""
        self._gone = gone = asyncio.Event()
        told: list[Any] = [{"type": "http.request", "body": bytes(asked.body), "more_body": False}]
        status, headers, body = 500, [], bytearray()

        async def receive() -> Any:
            if told:
                return told.pop()
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            nonlocal status, headers
            if message["type"] == "http.response.start":
                status, headers = message["status"], list(message.get("headers", ()))
                return
            body.extend(message.get("body", b""))
            if not message.get("more_body", False):
                if not any(name.lower() == b"content-length" for name, _ in headers):
                    headers.append((b"content-length", b"%d" % len(body)))
                self._send(asked, status, headers, bytes(body))

        try:
            await self._house.app(asked.scope, receive, send)
        except Exception:
            log.exception("%s", asked.url)
        self._answer(asked, HTTPStatus.INTERNAL_SERVER_ERROR, _wrong("the controller failed", "failed"))


_STATUS = {status.value: f"{status.value} {status.phrase}".encode() for status in HTTPStatus}


def _wrong(text: str, kind: str = "bad") -> bytes:
    return json.dumps({"error": {"kind": kind, "text": text}}).encode()
