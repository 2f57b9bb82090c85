"""Filters that come and go where labels are Bloom filters: tables know them before publishers, and after them.

A step of the state is followed through: the switches on its ways acknowledge what their tables have to know besides,
then publishers are told; then, when all of them hold it or are past their leases, and what they sent before has
arrived, tables lose what nobody can send any more. Steps need no order among themselves (`flow.filter_book`), so a
switch or a publisher that is away holds up those alone that depend on it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from flowsieve.control.core import Core
from flowsieve.control.publishers import Publishers
from flowsieve.control.switches.fleet import Fleet
from flowsieve.errors import Refused
from flowsieve.flow.tables.bloom_labelled import BloomLabelledTables

log = logging.getLogger(__name__)

START_SECONDS = 10.0  # that publishers wait for switches which do not connect to a controller that starts
AGAIN_SECONDS = 0.5  # after a switch had no room


class FilterSteps:
    """`follow` steps of the state through; `told` waits until publishers have been told of some."""

    def __init__(self, core: Core, fleet: Fleet, publishers: Publishers, drain: float) -> None:
        self._core, self._fleet, self._publishers, self._drain = core, fleet, publishers, drain
        self._untold: dict[int, asyncio.Future[None]] = {}
        self._under_way: set[int] = set()
        self._due: list[int] = []
        self._started: asyncio.Event = asyncio.Event()
        self._tables: BloomLabelledTables | None = None  # those of the state that is followed

    @property
    def under_way(self) -> int:
        """How many steps are not through: publishers or tables have yet to follow."""
        return len(self._under_way) + (self._tables is not None and self._tables.starting)

    def begin(self) -> None:
        """Follow the state that decides now, from where it is; its switches may hold more than it knows of."""
        state = self._core.state
        assert state.bloom is not None, "labels are Bloom filters"
        self._tables = tables = state.bloom
        for told in self._untold.values():
            told.cancel()
        self._untold, self._under_way, self._due = {}, set(), []
        tables.start()
        self._started.clear()
        self._publishers.paused = True
        self._core.tasks.start(self._begin(tables))
        self.follow(tables.begun())

    def follow(self, steps: Iterable[int]) -> None:
        """Have publishers and tables follow some steps of the state."""
        for step in steps:
            self._untold[step] = asyncio.get_running_loop().create_future()
            self._under_way.add(step)
            assert self._tables is not None
            self._core.tasks.start(self._through(step, self._tables))

    async def told(self, steps: Iterable[int]) -> None:
        """Wait until publishers have been told of some steps, and of all that was known before we began."""
        await self._started.wait()
        if waiting := [self._untold[step] for step in steps if step in self._untold]:
            await asyncio.wait(waiting)

    async def _begin(self, tables: BloomLabelledTables) -> None:
        """Tell publishers all of it once switches know it, and forget what they held before when they do not."""
        if self._core.state.subscriptions:
            try:
                async with asyncio.timeout(START_SECONDS):
                    await self._acknowledged(tables, None)
            except TimeoutError:
                log.warning("publishers are told of filters that not all switches have acknowledged")
        if tables is not self._tables:
            return
        self._publishers.paused = False
        self._started.set()
        publishers = list(self._core.state.filters.publishers)
        await self._publishers.holding(publishers)
        if publishers:
            await asyncio.sleep(self._drain)
        if tables is self._tables:
            self._fleet.ask(tables.started())

    async def _through(self, step: int, tables: BloomLabelledTables) -> None:
        await self._started.wait()
        await self._acknowledged(tables, step)
        while tables is self._tables:
            waits = [self._untold[other] for other in tables.waits_of(step) if other in self._untold]
            if not waits:
                break
            await asyncio.wait(waits)
        if tables is not self._tables:
            return
        told = tables.tell(step)
        self._publishers.follow(told)
        self._untold.pop(step).set_result(None)
        await self._publishers.holding(told)
        await asyncio.sleep(self._drain)
        if tables is self._tables:
            self._due.append(step)
            asyncio.get_running_loop().call_soon(self._settle)

    async def _acknowledged(self, tables: BloomLabelledTables, step: int | None) -> None:
        """Wait until the switches on the ways of a step, or all of them, have followed, on the tree as it is then."""
        while tables is self._tables:
            labelling = tables.labelling
            switches = labelling.ports_of.keys() if step is None else tables.switches_of(step)
            try:
                await self._fleet.reached(switches)
            except Refused:
                await asyncio.sleep(AGAIN_SECONDS)  # it has no room: what asked for too much is taken back
                continue
            if tables.labelling is labelling:
                return

    def _settle(self) -> None:
        """Tables lose what no publisher sends any more; steps that are through at a time are one difference."""
        steps, self._due = self._due, []
        if steps and self._tables is not None:
            self._fleet.ask(self._tables.settle(steps))
            self._under_way.difference_update(steps)
            self.follow(self._tables.begun())
