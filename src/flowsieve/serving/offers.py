"""Plans that were offered to the controller, and what became of each.

An offer is known by its query and batch: the first body counts, so whoever offers may repeat it. A newer offer of the
same query takes the place of one that waits. They are kept, so that a restart forgets none; and there are only so many.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from flowsieve.control.dispatcher import Dispatcher
from flowsieve.errors import BadInput, BadMessage, Denied, FlowsieveError, Refused
from flowsieve.index.plan import IndexPlan, plan_from_json, plan_to_json
from flowsieve.serving.kept_values import KeptValues

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.1  # between looks at a way that is being gone

WAITING, MOVING, DONE, FAILED, SUPERSEDED = "waiting", "moving", "in force", "failed", "superseded"
OPEN = (WAITING, MOVING, FAILED)  # whose plans may still be asked for
MOST = 64  # offers that are remembered
MOST_WAITING = 8
LONGEST = 900_000  # bytes of one, so that etcd takes it as well
QUERY = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,63}")
LARGEST_BATCH = 1 << 62
KEYS = ("plan", "index", "why", "method", "score", "window", "auto")
AUTO_DENIED = (
    "this controller has plans approved by a person; right is auto = true in [offers] of its configuration, or "
    "an offer without auto"
)


@dataclass(frozen=True)
class PlanOffer:
    """An offer: its body as it came, without a plan that nobody will ask for again; its fate, and why if it failed."""

    query: str
    batch: int
    at: float  # seconds since 1970
    body: Mapping[str, Any]
    fate: str = WAITING
    reason: str | None = None

    @property
    def name(self) -> str:
        return f"{self.query}-{self.batch}"

    def told(self, whole: bool = False) -> dict[str, Any]:
        """What is shown of it; the plan itself only if the whole is asked for."""
        body = {key: value for key, value in self.body.items() if whole or key != "plan"}
        about = {"query": self.query, "batch": self.batch, "at": self.at, "fate": self.fate}
        return about | ({} if self.reason is None else {"reason": self.reason}) | body

    def become(self, fate: str, reason: str | None = None) -> PlanOffer:
        body = self.body if fate in OPEN else {key: self.body[key] for key in self.body if key != "plan"}
        return replace(self, fate=fate, reason=reason, body=body)

    def written(self) -> bytes:
        return json.dumps(vars(self)).encode()

    @classmethod
    def read(cls, data: bytes) -> PlanOffer:
        return cls(**json.loads(data))


class Offers:
    """The offers of one controller. `run` goes over to what was approved, one after the other.

    `operator` is the token that whoever offers or approves has to show; `auto` whether an offer may ask to be approved
    at once.
    """

    def __init__(
        self,
        values: KeptValues,
        dispatcher: Dispatcher,
        operator: str,
        auto: bool = False,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.operator, self.auto = operator, auto
        self._values, self._dispatcher, self._now = values, dispatcher, now
        self._known: dict[tuple[str, int], PlanOffer] = {}
        self._changing = asyncio.Lock()
        self._approved: asyncio.Queue[PlanOffer] = asyncio.Queue()
        self._under_way: PlanOffer | None = None  # that a controller before us had begun to go over to

    async def load(self) -> None:
        """Take up what is kept. What was being gone over to goes on, or else it is in force, or has failed."""
        for name, data in (await self._values.all()).items():
            try:
                offer = PlanOffer.read(data)
            except (ValueError, TypeError, KeyError):
                log.warning("the offer %s cannot be read, and is passed over", name)
                continue
            self._known[offer.query, offer.batch] = offer
        for offer in list(self._known.values()):
            if offer.fate == MOVING:
                crossing = self._dispatcher.transition.crossing
                if crossing is not None and offer.body.get("plan") == plan_to_json(crossing.new.plan):
                    self._under_way = offer  # it goes on
                else:
                    await self._keep(self._ended(offer, "the controller ended before it was done"))

    def listed(self) -> list[PlanOffer]:
        """All offers, the latest first."""
        return sorted(self._known.values(), key=lambda offer: (-offer.at, offer.query, -offer.batch))

    def found(self, query: str, batch: int) -> PlanOffer:
        try:
            return self._known[query, batch]
        except KeyError:
            raise BadInput(
                f"there is no offer {query}/{batch}; `flowsieve offers list` shows those that there are"
            ) from None

    async def offer(self, query: str, batch: int, body: Mapping[str, Any]) -> tuple[PlanOffer, bool]:
        """Take an offer; returns it as it stands, and whether it is new."""
        async with self._changing:
            known = self._known.get((query, batch))
            if known is not None:
                return known, False
            self._check(query, batch, body)
            offer = PlanOffer(query, batch, self._now(), {key: body[key] for key in KEYS if key in body})
            if len(offer.written()) > LONGEST:
                raise BadInput(
                    f"the offer takes {len(offer.written()):,} bytes; right are {LONGEST:,} at most, "
                    "a plan with fewer cells"
                )
            await self._keep(offer)
            await self._make_room(offer)
            log.info("plan %s/%d was offered: %s", query, batch, body["why"])
        if body.get("auto"):
            try:
                return await self.approve(query, batch), True
            except Refused as reason:
                async with self._changing:
                    await self._keep(replace(self.found(query, batch), reason=str(reason)))
        return self.found(query, batch), True

    async def approve(self, query: str, batch: int) -> PlanOffer:
        """Begin to go over to a plan; one that is being gone over to, or is in force, stays so."""
        async with self._changing:
            offer = self.found(query, batch)
            if offer.fate in (MOVING, DONE):
                return offer
            if offer.fate == SUPERSEDED:
                raise Refused(f"offer {query}/{batch} was superseded by a later one")
            other = next((each for each in self._known.values() if each.fate == MOVING), None)
            if other is not None:
                raise Refused(f"the network is going over to {other.query}/{other.batch}; try again then")
            if (why := self._dispatcher.transition.hindrance) is not None:
                raise Refused(f"this controller does not go over to another plan while it runs: {why}")
            self._check(query, batch, offer.body)
            offer = offer.become(MOVING)
            await self._keep(offer)
            self._approved.put_nowait(offer)
            return offer

    async def run(self) -> None:
        """Go over to what was approved; what a controller before us had begun is waited for first."""
        if (begun := self._under_way) is not None:
            while self._dispatcher.transition.crossing is not None:
                await asyncio.sleep(LOOK_SECONDS)
            async with self._changing:
                await self._keep(self._ended(begun, "it was given up; the log says why"))
        while True:
            offer = await self._approved.get()
            try:
                await self._dispatcher.reindex(plan_from_json(offer.body["plan"], self._plan.schema))
                offer = offer.become(DONE)
                log.info("plan %s/%d is in force", offer.query, offer.batch)
            except FlowsieveError as error:
                offer = offer.become(FAILED, str(error))
                log.error("plan %s/%d is not in force: %s", offer.query, offer.batch, error)
            except Exception as error:  # a mistake of ours; the network stays as it is
                log.exception("plan %s/%d is not in force", offer.query, offer.batch)
                offer = offer.become(FAILED, f"the controller failed: {type(error).__name__}")
            async with self._changing:
                await self._keep(offer)

    def _ended(self, offer: PlanOffer, otherwise: str) -> PlanOffer:
        """What became of an offer that was being gone over to: it is in force, or else why not."""
        there = offer.body.get("plan") == plan_to_json(self._plan)
        return offer.become(DONE) if there else offer.become(FAILED, otherwise)

    @property
    def _plan(self) -> IndexPlan:
        """The plan that publishers use."""
        return self._dispatcher.index.plan

    def _check(self, query: str, batch: int, body: Mapping[str, Any]) -> None:
        """Raise where a plan cannot be gone over to, whatever else it may be."""
        if not QUERY.fullmatch(query) or not 0 <= batch < LARGEST_BATCH:
            raise BadMessage("an offer has a query of letters, digits and dashes, and a number of a batch")
        texts = ("why",) if "method" not in body else ("why", "method")
        if not all(isinstance(body.get(key), str) for key in texts):
            raise BadMessage("an offer says why, in a text, and may say its method")
        for key in ("score", "window"):
            if not isinstance(body.get(key), Mapping):
                raise BadMessage(f"an offer has a {key}, which is an object")
        if not isinstance(body.get("auto", False), bool):
            raise BadMessage("auto is true or false")
        if body.get("auto") and not self.auto:
            raise Denied(AUTO_DENIED)
        if self._dispatcher.state.labelled:
            raise Refused("packets say here for whom they are, so there is no plan to go over to")
        room = self._dispatcher.encoding.room
        plan_from_json(body.get("plan"), self._plan.schema, room)
        index = getattr(self._dispatcher, "index", None)
        if index is not None and body.get("index") not in (None, index.version):
            raise Refused(f"it was made for index {body['index']}, and {index.version} is in force")

    async def _keep(self, offer: PlanOffer) -> None:
        await self._values.keep(offer.name, offer.written())
        self._known[offer.query, offer.batch] = offer

    async def _make_room(self, new: PlanOffer) -> None:
        """Let a new offer take the place of what waits of its query, and forget what is too old."""
        waiting = [each for each in self.listed() if each.fate == WAITING and each is not new]
        for each in [one for one in waiting if one.query == new.query] + waiting[MOST_WAITING - 1 :]:
            await self._keep(each.become(SUPERSEDED, f"by {new.query}/{new.batch}"))
        over = [each for each in self.listed() if each.fate not in (WAITING, MOVING)][MOST - MOST_WAITING :]
        for each in over:
            await self._values.forget(each.name)
            del self._known[each.query, each.batch]
