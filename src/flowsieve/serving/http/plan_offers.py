"""Offers of plans over HTTP: whoever reaches the address may read them; to offer or to approve takes an operator."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import FastAPI, Path, Request
from fastapi.responses import JSONResponse, Response

from flowsieve.errors import BadMessage
from flowsieve.serving.http.operators import check_operator
from flowsieve.serving.offers import MOVING, Offers

Batch = Annotated[int, Path(ge=0)]


def add_plan_offers(app: FastAPI, offers: Offers) -> None:
    """Put the paths for offers among those of an app."""

    @app.get("/v1/plans")
    async def plans() -> dict[str, Any]:
        """All offers with their fates, the latest first, without the plans; and whether an offer may be `auto`."""
        return {"auto": offers.auto, "offers": [offer.told() for offer in offers.listed()]}

    @app.get("/v1/plans/{query}/{batch}")
    async def one_plan(query: str, batch: Batch) -> dict[str, Any]:
        """An offer as it came, with its plan unless it is in force or was superseded."""
        return offers.found(query, batch).told(whole=True)

    @app.put("/v1/plans/{query}/{batch}")
    async def offer_plan(request: Request, query: str, batch: Batch) -> Response:
        """Offer a plan (plan, why, score, window); the first body counts: 201, then 200. It takes an operator."""
        check_operator(request, offers.operator)
        try:
            body = json.loads(await request.body())
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            raise BadMessage("an offer is a JSON object with plan, why, score and window")
        offer, new = await offers.offer(query, batch, body)
        return JSONResponse(offer.told(), 201 if new else 200)

    @app.post("/v1/plans/{query}/{batch}/approve")
    async def approve_plan(request: Request, query: str, batch: Batch) -> Response:
        """Go over to a plan that was offered: 202 while that is under way. It takes an operator."""
        check_operator(request, offers.operator)
        offer = await offers.approve(query, batch)
        return JSONResponse(offer.told(), 202 if offer.fate == MOVING else 200)
