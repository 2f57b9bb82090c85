"""Plans offered to a controller over real sockets: who may, what counts, and what a restart remembers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from office import ENCODING, SCHEMA, SECONDS, Office

from flowsieve.errors import JournalError, Refused
from flowsieve.index.plan import IndexPlan, plan_to_json
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.serving.chores import at_work
from flowsieve.serving.http.app import taking_calls
from flowsieve.serving.kept_values import FolderValues
from flowsieve.serving.offers import LONGEST, MOST, MOST_WAITING, Offers, PlanOffer

PLAN = RegularPlan.make(SCHEMA, bits=6)
BODY: dict[str, Any] = {
    "plan": plan_to_json(PLAN),
    "why": "price has drifted",
    "method": "lw",
    "score": {"events": 100, "old": {"fpr": 0.5}, "new": {"fpr": 0.1}},
    "window": {"from": "2026-01-31T12:00:00", "to": "2026-01-31T12:01:00"},
}
KEY = {"Authorization": "Bearer of the operator"}


class Desk:
    """A controller that takes offers, and a client of it; what is gone over to is noted."""

    def __init__(self, http: httpx.AsyncClient, offers: Offers) -> None:
        self.http, self.offers = http, offers
        self.moved: list[IndexPlan] = []
        self.go = asyncio.Event()

    async def reindex(self, plan: IndexPlan) -> None:
        await self.go.wait()
        if plan.bits == 5:
            raise Refused("the tables would not fit")
        self.moved.append(plan)

    async def put(self, batch: int, query: str = "q1", **more: Any) -> httpx.Response:
        return await self.http.put(f"/v1/plans/{query}/{batch}", json=BODY | more, headers=KEY)

    async def approve(self, batch: int, query: str = "q1") -> httpx.Response:
        return await self.http.post(f"/v1/plans/{query}/{batch}/approve", headers=KEY)

    async def fates(self) -> dict[int, str]:
        found = (await self.http.get("/v1/plans")).json()["offers"]
        return {each["batch"]: each["fate"] for each in found}

    async def until(self, batch: int, fate: str) -> None:
        while (await self.fates())[batch] != fate:
            await asyncio.sleep(0.01)


@asynccontextmanager
async def opened(folder: Path, auto: bool = False, moves: bool = True) -> AsyncIterator[Desk]:
    path = folder / "control"
    async with Office(folder).open() as office:
        offers = Offers(FolderValues(folder / "offers"), office.dispatcher, "of the operator", auto)
        transport = httpx.AsyncHTTPTransport(uds=str(path))
        async with httpx.AsyncClient(transport=transport, base_url="http://x", timeout=10) as http:
            desk = Desk(http, offers)
            office.dispatcher.reindex = desk.reindex  # type: ignore[assignment,method-assign]
            if not moves:
                office.dispatcher.transition._core.deciding = object()  # type: ignore[assignment]
            await offers.load()
            served = taking_calls(office.handler, office.dispatcher, [f"unix:{path}"], offers=offers)
            async with served, at_work(offers.run):
                yield desk


def play(folder: Path, story: Callable[[Desk], Awaitable[None]], **options: Any) -> None:
    async def whole() -> None:
        async with asyncio.timeout(SECONDS), opened(folder, **options) as desk:
            await story(desk)

    asyncio.run(whole())


def test_the_first_body_of_an_offer_counts_however_often_it_comes(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        first = await desk.put(7)
        assert (first.status_code, first.json()["fate"], "plan" in first.json()) == (201, "waiting", False)
        again = await desk.put(7, why="something else")
        assert (again.status_code, again.json()) == (200, first.json())
        whole = (await desk.http.get("/v1/plans/q1/7")).json()
        assert (whole["plan"], whole["why"]) == (BODY["plan"], "price has drifted")

    play(tmp_path, story)


def test_a_restart_remembers_offers_and_what_became_of_them(tmp_path: Path) -> None:
    async def before(desk: Desk) -> None:
        for batch in (1, 2):
            assert (await desk.put(batch)).status_code == 201
        assert (await desk.put(3, query="q2")).status_code == 201
        assert (await desk.approve(3, "q2")).status_code == 202  # and it ends in the middle of that

    async def after(desk: Desk) -> None:
        assert await desk.fates() == {1: "superseded", 2: "waiting", 3: "failed"}
        assert (await desk.put(2)).status_code == 200
        desk.go.set()
        assert (await desk.approve(3, "q2")).status_code == 202
        await desk.until(3, "in force")
        assert [plan_to_json(plan) for plan in desk.moved] == [BODY["plan"]]
        assert "plan" not in (await desk.http.get("/v1/plans/q2/3")).json()

    play(tmp_path, before)
    play(tmp_path, after)
    assert not [path for path in (tmp_path / "offers").iterdir() if path.name.startswith(".")]


def test_only_an_operator_offers_and_approves(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "of the operator"}):
            denied = await desk.http.put("/v1/plans/q1/1", json=BODY, headers=headers)
            assert denied.status_code == 403
            assert "flowsieve token CONFIG.toml --operator" in denied.json()["error"]["text"]
        assert (await desk.put(1)).status_code == 201
        odd = {b"authorization": "Bearer é".encode()}
        assert (await desk.http.post("/v1/plans/q1/1/approve", headers=odd)).status_code == 403
        assert await desk.fates() == {1: "waiting"}

    play(tmp_path, story)


@pytest.mark.parametrize(
    ("change", "status", "said"),
    [
        ({"plan": {"kind": "spiral"}}, 400, "no plan of kind"),
        ({"plan": None}, 400, "a plan is an object"),
        ({"plan": BODY["plan"] | {"schema": "0" * 32}}, 400, "is for a schema"),
        ({"plan": plan_to_json(RegularPlan.make(SCHEMA, bits=6)) | {"bits": 120}}, 400, "bits"),
        ({"why": 3}, 400, "says why"),
        ({"score": None}, 400, "a score"),
        ({"auto": "yes"}, 400, "auto is true or false"),
        ({"auto": True}, 403, "auto = true in [offers]"),
        ({"why": "x" * LONGEST}, 400, "bytes"),
    ],
)
def test_a_bad_offer_changes_nothing_and_is_told_why(
    tmp_path: Path, change: dict[str, Any], status: int, said: str
) -> None:
    async def story(desk: Desk) -> None:
        answer = await desk.put(1, **change)
        assert answer.status_code == status
        assert said in answer.json()["error"]["text"]
        for path in ("/v1/plans/q1/x", "/v1/plans/..%2fq/1", "/v1/plans/q1/-1"):
            assert (await desk.http.put(path, json=BODY, headers=KEY)).status_code in (400, 404)
        assert await desk.fates() == {}

    play(tmp_path, story)


def test_a_plan_that_cannot_be_gone_over_to_says_why_and_may_be_approved_again(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.put(1, plan=plan_to_json(RegularPlan.make(SCHEMA, bits=5)))
        desk.go.set()
        assert (await desk.approve(1)).status_code == 202
        await desk.until(1, "failed")
        assert (await desk.http.get("/v1/plans")).json()["offers"][0]["reason"] == "the tables would not fit"
        assert (await desk.approve(1)).status_code == 202
        await desk.until(1, "failed")
        assert (await desk.approve(9)).status_code == 400

    play(tmp_path, story)


def test_one_move_at_a_time_and_none_where_the_controller_cannot(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.put(1)
        await desk.put(2, query="q2")
        assert (await desk.approve(1)).status_code == 202
        assert (await desk.approve(1)).json()["fate"] == "moving"
        refused = await desk.approve(2, "q2")
        assert (refused.status_code, "going over to q1/1" in refused.text) == (409, True)
        desk.go.set()
        await desk.until(1, "in force")
        assert (await desk.approve(1)).status_code == 200

    play(tmp_path, story)

    async def without(desk: Desk) -> None:
        await desk.put(3)
        refused = await desk.approve(3)
        assert (refused.status_code, "does not go over" in refused.text) == (409, True)
        assert (await desk.fates())[3] == "waiting"

    play(tmp_path, without, moves=False)


def test_where_the_configuration_allows_it_an_offer_is_approved_at_once(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        desk.go.set()
        assert (await desk.http.get("/v1/plans")).json()["auto"] is True
        assert (await desk.put(1, auto=True)).json()["fate"] == "moving"
        await desk.until(1, "in force")
        assert (await desk.put(1, auto=True)).status_code == 200
        assert len(desk.moved) == 1
        assert (await desk.put(2)).json()["fate"] == "waiting"

    play(tmp_path, story, auto=True)


def test_there_are_only_so_many_offers(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        for batch in range(MOST + 20):
            assert (await desk.put(batch)).status_code == 201
        for query in range(2 * MOST_WAITING):
            assert (await desk.put(0, query=f"other{query}")).status_code == 201
        known = desk.offers.listed()
        assert len(known) <= MOST
        assert sum(offer.fate == "waiting" for offer in known) == MOST_WAITING
        assert sum("plan" in offer.body for offer in known) == MOST_WAITING

    play(tmp_path, story)
    assert len(list((tmp_path / "offers").iterdir())) <= MOST


def test_an_offer_that_cannot_be_kept_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "offers").write_text("no folder")

    async def keep() -> None:
        with pytest.raises(JournalError, match="cannot be written"):
            await FolderValues(tmp_path / "offers").keep("a", b"")

    asyncio.run(keep())


def test_an_offer_is_written_as_it_is_read() -> None:
    offer = PlanOffer("q", 1, 2.5, BODY)
    assert PlanOffer.read(offer.written()) == offer
    assert ENCODING.room >= PLAN.bits
