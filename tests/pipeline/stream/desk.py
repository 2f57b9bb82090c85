"""A controller that takes offers, in a thread of its own, on a port of loopback."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from office import Office

from flowsieve.control.dispatcher import Dispatcher
from flowsieve.control.transition.served_index import ServedIndex
from flowsieve.serving.chores import at_work
from flowsieve.serving.http.app import taking_calls
from flowsieve.serving.kept_values import FolderValues
from flowsieve.serving.offers import Offers, PlanOffer

TOKEN = "of the operator"
PATIENCE = 60.0


class Desk:
    """Its address, what it was offered, and the index that it serves."""

    def __init__(self) -> None:
        self.address = ""
        self.ready, self.over = threading.Event(), threading.Event()
        self._offers: Offers | None = None
        self._dispatcher: Dispatcher | None = None

    @property
    def offers(self) -> list[PlanOffer]:
        assert self._offers is not None
        return self._offers.listed()

    @property
    def index(self) -> ServedIndex:
        assert self._dispatcher is not None
        return self._dispatcher.index

    async def serve(self, folder: Path, auto: bool) -> None:
        async with Office(folder).open() as office:
            self._dispatcher = office.dispatcher
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
