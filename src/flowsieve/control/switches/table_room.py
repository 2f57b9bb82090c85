"""Switches with less room than their tables need: tables are cut to it, and it is looked for again later.

How much room there is, nobody says: a switch refuses an entry. All that it held of ours at that moment has room; what
others have put there is not ours to count on. Others may take theirs away again, so now and then, and soon after
something has changed at the switch, it is asked for the whole table. It refuses that as a whole and holds what it held
where there is still no room, so nothing is lost by asking.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress

from flowsieve.control.core import Core
from flowsieve.control.memory.journal import Bounded
from flowsieve.control.switches.room_schedule import RoomSchedule
from flowsieve.errors import Refused, TableFull
from flowsieve.flow.diff import Change

log = logging.getLogger(__name__)


def less_room(known: int | None, held: int, full_at: int) -> int:
    """The room to make do with when a switch that holds `held` entries of ours refused one beside `full_at` of them.

    Where it was `known` to have no more than that, the truth is between what it holds and what was known: halfway.
    """
    if known is None or full_at < known:
        return full_at
    return (known + (held if held < known else 0)) // 2


class TableRoom:
    """`less` makes do with the room that there is; `run` looks for more. `ask` has tables changed."""

    def __init__(self, core: Core, ask: Callable[[Mapping[str, list[Change]]], None]) -> None:
        self._core = core
        self._ask = ask
        self._schedule = RoomSchedule()
        self._news = asyncio.Event()

    async def less(self, error: TableFull, held: int) -> None:
        """Have a table cut after a switch refused an entry; raises Refused where not even the coarsest one fits."""
        switch = error.switch
        room = less_room(self._core.state.capacity(switch), held, error.capacity)
        if room < 1:
            raise error
        log.warning("switch %s has room for %d entries", switch, room)
        self._schedule.bounded(switch, _now())
        try:
            await self._bound(switch, room)
        finally:
            self._news.set()  # now that the state knows of it, also if nothing fits

    def changed(self, switch: str) -> None:
        """A switch was connected anew, or somebody has changed its table."""
        self._schedule.changed(switch, _now())
        self._news.set()

    async def run(self) -> None:
        """Look for more room until cancelled."""
        while True:
            self._news.clear()
            at = self._schedule.next_at(self._core.state.bounds, _now())
            with suppress(TimeoutError):
                async with asyncio.timeout_at(at):
                    await self._news.wait()
            for switch in self._schedule.due([*self._core.state.bounds], _now()):
                log.info("looking whether switch %s has more room", switch)
                with suppress(Refused):  # there is no room at another one
                    await self._bound(switch, None)

    async def _bound(self, switch: str, room: int | None) -> None:
        entry = Bounded(switch, room)
        await self._core.scribe.write(entry, lambda: self._decide(switch, room), urgent=True)
        if self._core.deciding is not None:  # else the switch would be asked for the same table again
            await self._core.deciding.caught_up()
            size = self._core.state.size(switch)
            if room is not None and size > room:  # the coarsest there is
                raise TableFull(switch=switch, needed=size, capacity=room)

    def _decide(self, switch: str, room: int | None) -> None:
        """State and tables in one turn: a switch that is read in between would be asked for the difference twice."""
        self._ask(self._core.state.bound(switch, room).changes)


def _now() -> float:
    return asyncio.get_running_loop().time()
