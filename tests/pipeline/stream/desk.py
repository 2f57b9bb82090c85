"""A controller that takes offers, in a thread of its own, on a port of loopback."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from office import Office

from flowsieve.index.plan import IndexPlan
from flowsieve.serving.chores import at_work
from flowsieve.serving.http.app import taking_calls
from flowsieve.serving.kept_values import FolderValues
from flowsieve.serving.offers import Offers, PlanOffer

TOKEN = "of the operator"
PATIENCE = 60.0


class Desk:
    """Its address, what it was offered, and the plans that it went over to."""

    def __init__(self) -> None:
        self.address = ""
        self.moved: list[IndexPlan] = []
        self.ready, self.over = threading.Event(), threading.Event()
        self._offers: Offers | None = None

    @property
    def offers(self) -> list[PlanOffer]:
        assert self._offers is not None
        return self._offers.listed()

    async def reindex(self, plan: IndexPlan) -> None:
        self.moved.append(plan)

    async def serve(self, folder: Path, auto: bool) -> None:
        async with Office(folder).open() as office:
            office.dispatcher.reindex = self.reindex  # type: ignore[attr-defined]
            offers = self._offers = Offers(FolderValues(folder / "offers"), office.dispatcher, TOKEN, auto)
            await offers.load()
            served = taking_calls(office.handler, office.dispatcher, ["tcp:127.0.0.1:0"], offers=offers)
            async with served as server, at_work(offers.run):
                self.address = f"http://127.0.0.1:{server.port}"
                self.ready.set()
                while not self.over.is_set():
                    await asyncio.sleep(0.02)


@contextmanager
def desk(folder: Path, auto: bool = False) -> Iterator[Desk]:
    found = Desk()
    thread = threading.Thread(target=lambda: asyncio.run(found.serve(folder, auto)))
    thread.start()
    try:
        assert found.ready.wait(PATIENCE)
        yield found
    finally:
        found.over.set()
        thread.join(PATIENCE)
