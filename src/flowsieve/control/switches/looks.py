"""What switches really hold, for those who only want to see it: all who ask at a time share one look."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial

from flowsieve.control.core import Core
from flowsieve.errors import Refused, SwitchError
from flowsieve.flow.entry import Flow
from flowsieve.southbound.shared_question import SharedQuestion

log = logging.getLogger(__name__)

MOST_AT_A_TIME = 4  # switches that are looked at: each answers with a whole table
REPAIR_SECONDS = (
    2.0  # for entries that do not belong into a table to be removed, before it is looked at again
)


class Looks:
    """Whoever asks gets a table as it was at some moment after that: with nobody's belief, and as old as its way here.

    `repair` has a switch read and set right, and returns what is done by then.
    """

    def __init__(self, core: Core, repair: Callable[[str], asyncio.Future[None]]) -> None:
        self._core = core
        self._repair = repair
        self._room = asyncio.Semaphore(MOST_AT_A_TIME)
        self._questions: dict[str, SharedQuestion[tuple[Flow, ...]]] = {}

    async def tables(self, switches: Collection[str]) -> dict[str, tuple[Flow, ...]]:
        """What some switches hold; not the entries of other owners."""
        tables = await asyncio.gather(*(self._question(switch).answered() for switch in switches))
        return dict(zip(switches, tables, strict=True))

    def close(self) -> None:
        """Ask nothing any more."""
        for question in self._questions.values():
            question.close()

    def _question(self, switch: str) -> SharedQuestion[tuple[Flow, ...]]:
        if switch not in self._questions:
            self._questions[switch] = SharedQuestion(partial(self._look, switch))
        return self._questions[switch]

    async def _look(self, switch: str) -> tuple[Flow, ...]:
        """Look once; entries in our groups that no flow can describe have to go first, so that nothing is hidden."""
        flows, strange = await self._looked(switch)
        if strange:
            log.warning("switch %s has %d entries in our groups that nobody of ours made", switch, strange)
            with suppress(TimeoutError, SwitchError, Refused):
                await asyncio.wait_for(self._repair(switch), REPAIR_SECONDS)
            flows, _ = await self._looked(switch)
        minds = self._core.state.owner.minds
        return tuple(flow for flow in flows if minds(flow.owner))

    async def _looked(self, switch: str) -> tuple[tuple[Flow, ...], int]:
        async with self._room:
            return await self._core.switches.look(switch)
