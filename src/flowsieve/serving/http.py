"""The controller over HTTP: clients' calls, and all that people and their tools may look at.

`/docs` shows it all, `/openapi.json` describes it. Reading is free for whoever reaches the address; a call that
changes something carries the token of the host that it is for.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import stat
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Annotated, Any, Self

import uvicorn
from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from starlette.requests import ClientDisconnect

from flowsieve.control.dispatcher import Dispatcher
from flowsieve.errors import BadInput, BadMessage, FlowsieveError, kind_of
from flowsieve.scenario.plain import plain_flows, plain_verdict
from flowsieve.serving import views
from flowsieve.serving.desk import Desk
from flowsieve.serving.metrics import CONTENT_TYPE, Metrics
from flowsieve.southbound.openflow.address import Address

LONGEST_BODY = 1 << 20  # bytes
STATUS = {"bad": 400, "denied": 403, "refused": 409, "busy": 503, "lost": 410, "failed": 504}
EXAMPLE = {
    "session": "0123456789abcdef0123456789abcdef",
    "n": 1,
    "host": "h1",
    "token": "…",
    "op": "sub",
    "filter": "price < 50",
}
EXAMPLE_EVENT = {"host": "h1", "event": {"price": 42}}


def make_app(desk: Desk, dispatcher: Dispatcher, metrics: Metrics | None = None) -> FastAPI:
    """The application: one function for each address."""
    app = FastAPI(title="flowsieve", description=__doc__)

    @app.exception_handler(FlowsieveError)
    async def wrong(request: Request, error: FlowsieveError) -> Response:
        return _answer({"error": {"kind": kind_of(error), "text": str(error)}})

    @app.exception_handler(RequestValidationError)
    async def unread(request: Request, error: RequestValidationError) -> Response:
        missing = "; ".join(f"{each['loc'][-1]}: {each['msg']}" for each in error.errors())
        return _answer({"error": {"kind": "bad", "text": missing}})

    @app.post("/v1/calls", openapi_extra=_body("A client's call, as it would go in band.", EXAMPLE))
    async def call(request: Request) -> Response:
        """hello, adv, sub, unadv, unsub, renew or bye; the same (session, n) is carried out once."""
        return _answer(await desk.call(await _read(request)))

    @app.get("/v1/health")
    async def health() -> dict[str, Any]:
        """It answers while the controller is alive."""
        return views.health(dispatcher)

    @app.get("/v1/ready")
    async def ready() -> Response:
        """200 when every switch is where it should be, 503 otherwise, with the reasons."""
        told = views.health(dispatcher)
        return JSONResponse(told, 200 if told["ready"] else 503)

    @app.get("/v1/status")
    async def status() -> dict[str, Any]:
        """How it stands, in a few figures."""
        return views.status(dispatcher)

    @app.get("/v1/topology")
    async def topology() -> dict[str, Any]:
        """Switches, links, hosts, trees, and what is down."""
        return views.topology(dispatcher)

    @app.get("/v1/subscriptions")
    async def subscriptions() -> list[dict[str, Any]]:
        return views.interests(dispatcher.state.subscriptions)

    @app.get("/v1/advertisements")
    async def advertisements() -> list[dict[str, Any]]:
        return views.interests(dispatcher.state.advertisements)

    @app.get("/v1/flows")
    async def flows(switch: Annotated[str | None, Query()] = None) -> list[dict[str, Any]]:
        """What the switches really hold, in the form that `flowsieve verify --flows` takes."""
        tables, topology = await dispatcher.tables(), dispatcher.state.topology
        if switch is not None:
            topology.linked(switch)
            tables = {switch: tables[switch]} if switch in tables else {}
        return plain_flows(topology, tables)

    @app.get("/v1/verify")
    async def verify() -> dict[str, Any]:
        """Prove that what is really installed delivers all that is wanted, once."""
        return plain_verdict(await dispatcher.verify(), None)

    @app.get("/v1/quote")
    async def quote(host: str, filter: str) -> dict[str, Any]:
        """What a subscription would cost, before it is made."""
        return views.quote(dispatcher, host, filter)

    @app.post("/v1/explain", openapi_extra=_body("An event that a host would publish.", EXAMPLE_EVENT))
    async def explain(request: Request) -> dict[str, Any]:
        """The way of an event, hop by hop, and why."""
        asked = await _read(request)
        host, event = asked.get("host"), asked.get("event")
        if not isinstance(host, str) or not isinstance(event, dict):
            raise BadMessage(
                "what is to be explained has a host, a text, and an event, an object of attributes"
            )
        return await views.explanation(dispatcher, host, event)

    if metrics is not None:

        @app.get("/metrics", response_class=PlainTextResponse)
        async def measured() -> Response:
            """For Prometheus."""
            return Response(metrics.render(), media_type=CONTENT_TYPE)

    return app


@asynccontextmanager
async def taking_calls(
    desk: Desk, dispatcher: Dispatcher, addresses: Sequence[str], metrics: Metrics | None = None
) -> AsyncIterator[HttpServer]:
    """Calls are taken at addresses, unix:PATH or tcp:HOST:PORT, for the time of an `async with` block.

    When it ends, clients' interests stay in force: switches go on without their controller.
    """
    async with HttpServer(make_app(desk, dispatcher, metrics), addresses) as server:
        leases = asyncio.create_task(desk.run())
        try:
            yield server
        finally:
            leases.cancel()
            await asyncio.gather(leases, return_exceptions=True)


class HttpServer:
    """An application at addresses, unix:PATH or tcp:HOST:PORT, for as long as its `async with` block lasts."""

    def __init__(self, app: FastAPI, addresses: Sequence[str]) -> None:
        self.addresses = tuple(Address.parse(address) for address in addresses)
        config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", loop="none")
        self._server = _Server(config)
        self._sockets: list[socket.socket] = []
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        try:
            for address in self.addresses:
                self._sockets.append(_listening(address))
        except BadInput:
            self._close()
            raise
        self._task = asyncio.create_task(self._server.serve(self._sockets))
        while not self._server.started:
            if self._task.done():
                self._task.result()
                raise BadInput("HTTP could not be served")
            await asyncio.sleep(0.001)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        assert self._task is not None
        self._server.should_exit = self._server.force_exit = True
        await self._task
        self._close()

    def _close(self) -> None:
        for own, address in zip(self._sockets, self.addresses, strict=False):
            own.close()
            if address.path is not None:
                with contextlib.suppress(OSError):
                    os.unlink(address.path)  # noqa: PTH108

    @property
    def port(self) -> int:
        """Where it listens, if it was to choose a TCP port itself."""
        return next(int(own.getsockname()[1]) for own in self._sockets if own.family != socket.AF_UNIX)


class _Server(uvicorn.Server):
    """Signals are the daemon's business."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _read(request: Request) -> Mapping[str, Any]:
    body = b""
    try:
        async for part in request.stream():
            body += part
            if len(body) > LONGEST_BODY:
                raise BadMessage(f"a call of more than {LONGEST_BODY:,} bytes")
    except ClientDisconnect:
        raise BadMessage("a call that its client did not finish") from None
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        raise BadMessage(f"a call is a JSON object, not {body[:60]!r}") from None
    if not isinstance(message, dict):
        raise BadMessage(f"a call is a JSON object, not {body[:60]!r}")
    return message


def _answer(answer: Mapping[str, Any]) -> Response:
    error = answer.get("error")
    status = 200 if error is None else STATUS.get(error["kind"], 500)
    return Response(
        json.dumps(answer),
        status,
        {"Retry-After": "1"} if status == 503 else None,
        "application/json",
    )


def _body(description: str, example: Mapping[str, Any]) -> dict[str, Any]:
    content = {"application/json": {"schema": {"type": "object"}, "example": example}}
    return {"requestBody": {"description": description, "required": True, "content": content}}


def _listening(address: Address) -> socket.socket:
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
