"""The controller over HTTP: clients' calls, and what people and their tools may look at.

`/docs` shows all of it, `/openapi.json` describes it. Whoever reaches the address may read; a call that changes
something carries the token of the host that it is for, or that of an operator.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse

from flowsieve.control.dispatcher import Dispatcher
from flowsieve.errors import BadMessage, FlowsieveError
from flowsieve.protocol.answer import answer_of
from flowsieve.scenario.plain import plain_verdict
from flowsieve.serving.calls.handler import CallHandler
from flowsieve.serving.chores import at_work
from flowsieve.serving.guard_counts import GuardCounts
from flowsieve.serving.http import views
from flowsieve.serving.http.flows_answer import FlowsAnswer
from flowsieve.serving.http.http_connection import Respond
from flowsieve.serving.http.index_paths import add_index
from flowsieve.serving.http.inquiries import Asker, Inquiries
from flowsieve.serving.http.plan_offers import add_plan_offers
from flowsieve.serving.http.server import HttpServer
from flowsieve.serving.metrics.metrics import CONTENT_TYPE, Metrics
from flowsieve.serving.offers import Offers
from flowsieve.southbound.shared_question import SharedQuestion
from flowsieve.southbound.socket_address import ReservedAddress

CALLS = "/v1/calls"
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


def make_app(
    calls: CallHandler,
    dispatcher: Dispatcher,
    metrics: Metrics | None = None,
    shared: Callable[[], Awaitable[Mapping[str, Any] | None]] | None = None,
    offers: Offers | None = None,
) -> FastAPI:
    """The application: one function for each path. `shared` tells of controllers that share the network, if some do.

    Offers of plans are taken where there is somebody to take them.
    """
    app = FastAPI(title="flowsieve", description=__doc__)
    tables, counts = FlowsAnswer(dispatcher), GuardCounts(dispatcher)
    inquiries = Inquiries(lambda: not (dispatcher.mended and dispatcher.at_rest))
    view = SharedQuestion(dispatcher.view)

    async def answered(request: Request, find: Callable[[], Any]) -> Response:
        """The answer to a question that takes time, when it is its turn."""
        asker = getattr(request.state, "asker", Asker())
        return await inquiries.answered(asker, lambda: JSONResponse(find()))

    @app.exception_handler(FlowsieveError)
    async def known_error(request: Request, error: FlowsieveError) -> Response:
        return _response(answer_of(error))

    @app.exception_handler(RequestValidationError)
    async def bad_parameters(request: Request, error: RequestValidationError) -> Response:
        return _response(
            answer_of(BadMessage("; ".join(f"{each['loc'][-1]}: {each['msg']}" for each in error.errors())))
        )

    @app.post(CALLS, openapi_extra=_body("A client's call, as it would go in band.", EXAMPLE))
    async def call(request: Request) -> Response:
        """hello, adv, sub, unadv, unsub, renew, filters, report, bye; a repeated (session, n) gets the same answer."""
        return _response(await calls.call(await _read(request)))

    @app.get("/v1/health")
    async def health() -> dict[str, Any]:
        """Answers while the controller is alive."""
        return views.health(dispatcher)

    @app.get("/v1/ready")
    async def ready() -> Response:
        """200 when every switch holds what it should, 503 otherwise, with the reasons."""
        health = views.health(dispatcher)
        return JSONResponse(health, 200 if health["ready"] else 503)

    @app.get("/v1/status")
    async def status() -> dict[str, Any]:
        """The controller and its network in a few figures, and what guards have refused of hosts."""
        found = views.status(dispatcher, metrics.floods if metrics is not None else {})
        if shared is not None and (control := await shared()) is not None:
            found["control"] = control
        if calls.reports is not None:
            found["telemetry"] = calls.reports.told()
        return {**found, "guard": views.guard(dispatcher, await counts.now())}

    @app.get("/v1/topology")
    async def topology() -> dict[str, Any]:
        """Switches, links, hosts, trees, and what is down."""
        return views.topology(dispatcher)

    @app.get("/v1/subscriptions")
    async def subscriptions(request: Request) -> Response:
        return await answered(request, lambda: views.interests(dispatcher.state.subscriptions))

    @app.get("/v1/advertisements")
    async def advertisements(request: Request) -> Response:
        return await answered(request, lambda: views.interests(dispatcher.state.advertisements))

    @app.get("/v1/flows")
    async def flows(switch: Annotated[str | None, Query()] = None) -> Response:
        """What the switches really hold, as `flowsieve verify --flows` reads it."""
        return Response(await tables.of(switch), media_type="application/json")

    @app.get("/v1/verify")
    async def verify() -> dict[str, Any]:
        """Prove that what the switches hold delivers everything that is wanted, once."""
        return plain_verdict(await dispatcher.verify(), None)

    @app.get("/v1/quote")
    async def quote(request: Request, host: str, filter: str, op: str = "sub") -> Response:
        """What a subscription (or, with op = adv, an advertisement) would cost, before it is made."""
        supposing = await dispatcher.supposing()
        return await answered(request, lambda: views.quote(dispatcher, host, filter, op, supposing))

    @app.post("/v1/explain", openapi_extra=_body("An event that a host would publish.", EXAMPLE_EVENT))
    async def explain(request: Request) -> Response:
        """The path of an event, hop by hop, and why it takes it."""
        asked = await _read(request)
        host, event = asked.get("host"), asked.get("event")
        if not isinstance(host, str) or not isinstance(event, dict):
            raise BadMessage("a host, a text, and an event, an object of attributes, are needed")
        views.check_host(dispatcher.state.topology, host)
        there = await view.answered()
        return await answered(request, lambda: views.explanation(there, host, event))

    if metrics is not None:

        @app.get("/metrics", response_class=PlainTextResponse)
        async def prometheus() -> Response:
            """Metrics for Prometheus."""
            return Response(metrics.render(), media_type=CONTENT_TYPE)

    if offers is not None:
        add_plan_offers(app, offers)
        if not dispatcher.state.labelled:
            add_index(app, dispatcher, offers.operator)
    return app


@asynccontextmanager
async def taking_calls(
    calls: CallHandler,
    dispatcher: Dispatcher,
    addresses: Sequence[str | ReservedAddress],
    metrics: Metrics | None = None,
    shared: Callable[[], Awaitable[Mapping[str, Any] | None]] | None = None,
    offers: Offers | None = None,
) -> AsyncIterator[HttpServer]:
    """Take calls at addresses, unix:PATH or tcp:HOST:PORT, perhaps reserved, for the time of an `async with` block.

    Clients' interests stay in force when it ends: switches go on without their controller.
    """
    quick = {(b"POST", CALLS.encode()): partial(_call, calls)}
    app = make_app(calls, dispatcher, metrics, shared, offers)
    async with HttpServer(app, addresses, quick) as server, at_work(calls.run):
        yield server


def _call(calls: CallHandler, body: bytes, respond: Respond) -> None:
    """Take a call as `make_app` does, at less expense."""
    try:
        message = _message(body)
    except BadMessage as error:
        respond(*_encoded(answer_of(error)))
    else:
        calls.take(message, lambda answer: respond(*_encoded(answer)))


async def _read(request: Request) -> Mapping[str, Any]:
    return _message(await request.body())


def _message(body: bytes) -> Mapping[str, Any]:
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        message = None
    if not isinstance(message, dict):
        raise BadMessage(f"a call is a JSON object, not {body[:60]!r}")
    return message


def _encoded(answer: Mapping[str, Any]) -> tuple[int, bytes]:
    """The status and the body of an answer."""
    error = answer.get("error")
    status = 200 if error is None else STATUS.get(error["kind"], 500)
    return status, json.dumps(answer).encode()


def _response(answer: Mapping[str, Any]) -> Response:
    status, body = _encoded(answer)
    headers = {"Retry-After": "1"} if status == 503 else None
    return Response(body, status, headers, "application/json")


def _body(description: str, example: Mapping[str, Any]) -> dict[str, Any]:
    content = {"application/json": {"schema": {"type": "object"}, "example": example}}
    return {"requestBody": {"description": description, "required": True, "content": content}}
