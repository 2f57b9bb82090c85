"""The index over HTTP: which one is in force, how the network goes over to another; operators may begin that."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response

from flowsieve.control.dispatcher import Dispatcher
from flowsieve.control.transition.trees_anew import trees_anew
from flowsieve.errors import BadMessage, FlowsieveError
from flowsieve.index.plan import IndexPlan, plan_from_json, plan_to_json
from flowsieve.serving.http.operators import check_operator

KEYS = ("plan", "method", "trees", "dry_run", "rollback")
METHODS = {"light-weight": True, "versioning": False}


def index_told(dispatcher: Dispatcher) -> dict[str, Any]:
    """The index in force, the way to another one, if the network is on it, and the ways that it has gone."""
    transition, index = dispatcher.transition, dispatcher.index
    crossing = transition.crossing
    return {
        "version": index.version,
        "tag": str(index.tag.group),
        "bits": index.plan.bits,
        "crossing": None
        if crossing is None
        else {"from": crossing.old.version, "to": crossing.new.version, "phase": crossing.phase.value},
        "behind": sorted(transition.hosts_behind),
        "retired": [{"version": each.version, "tag": str(each.tag.group)} for each in dispatcher.late],
        "transitions": [record.to_json() for record in reversed(transition.records)],
    }


def add_index(app: FastAPI, dispatcher: Dispatcher, operator: str) -> None:
    """Put the paths for the index among those of an app."""
    under_way: set[asyncio.Task[Any]] = set()  # so that nobody forgets them

    @app.get("/v1/index")
    async def index(plan: bool = False) -> dict[str, Any]:
        """The index in force and what became of going over to others; with `plan`, the plan itself."""
        told = index_told(dispatcher)
        return {**told, "plan": plan_to_json(dispatcher.index.plan)} if plan else told

    @app.post("/v1/index")
    async def reindex(request: Request) -> Response:
        """Go over to a plan (`plan`, perhaps `method` and `trees`), or only say what it would take (`dry_run`), or go
        back (`rollback`): 202 when it is begun; GET says how it goes. It takes an operator."""
        check_operator(request, operator)
        asked = _asked(await request.body())
        if asked.get("rollback"):
            if dispatcher.state.before is None and dispatcher.state.crossing is None:
                raise BadMessage("there was no index before this one; nothing is to be gone back to")
            return await _begun(dispatcher.transition.go_back())
        plan, carry = _plan(asked), METHODS[asked.get("method", "light-weight")]
        trees = trees_anew(dispatcher.state) if asked.get("trees") == "anew" else None
        if asked.get("dry_run"):
            return JSONResponse(await dispatcher.transition.plan_room(plan, carry=carry, trees=trees))
        return await _begun(dispatcher.reindex(plan, carry=carry, trees=trees))

    def _plan(asked: Mapping[str, Any]) -> IndexPlan:
        running = dispatcher.index
        if "plan" not in asked:
            return running.plan
        return plan_from_json(asked["plan"], running.plan.schema, running.encoding.room)

    async def _begun(way: Any) -> Response:
        """Wait for the first word of it: that it is on its way, or why it cannot be."""
        before = len(dispatcher.transition.records), dispatcher.transition.records[-1:]
        task = asyncio.ensure_future(way)
        under_way.add(task)
        task.add_done_callback(_over)
        while (
            not task.done()
            and (
                len(dispatcher.transition.records),
                dispatcher.transition.records[-1:],
            )
            == before
        ):
            await asyncio.wait([task], timeout=0.02)
        if task.done() and (error := task.exception()) is not None:
            raise error
        return JSONResponse(index_told(dispatcher), 202)

    def _over(task: asyncio.Task[Any]) -> None:
        under_way.discard(task)
        if not task.cancelled() and isinstance(task.exception(), FlowsieveError):
            pass  # whoever looks is told by the record of the transition


def _asked(body: bytes) -> Mapping[str, Any]:
    """What an operator asks for; raises what is wrong with it."""
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError):
        asked = None
    if not isinstance(asked, dict) or not set(asked) <= set(KEYS):
        raise BadMessage(f"going over to another index is asked for by a JSON object of {', '.join(KEYS)}")
    if asked.get("method", "light-weight") not in METHODS:
        raise BadMessage(f"there is no method {asked['method']!r}; right is {' or '.join(METHODS)}")
    if asked.get("trees") not in (None, "anew"):
        raise BadMessage(f"trees is {asked['trees']!r}; right is 'anew', or without it")
    if not {"plan", "trees", "rollback"} & set(asked):
        raise BadMessage("neither a plan, nor trees, nor rollback is asked for; right is one of them")
    return asked
