"""A state that keeps up with a journal that another controller writes, so that it can go on with it at once."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from flowsieve.content.schema import Schema
from flowsieve.control.memory.etcd_journal import since
from flowsieve.control.memory.journal import Past
from flowsieve.control.memory.recovery import MakeState, advance, recover
from flowsieve.control.requests.ledger import Ledger
from flowsieve.control.shared.etcd import Etcd, EtcdSilent
from flowsieve.control.state import ControlState

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.5


class Follower:
    """`follow` until cancelled; `caught_up` is the state after all that was written."""

    def __init__(self, etcd: Etcd, schema: Schema, make: MakeState) -> None:
        self._etcd, self._schema, self._make = etcd, schema, make
        self._turn = asyncio.Lock()
        self._number = 0  # of the last entry that was taken up
        self._known: tuple[ControlState, Ledger] | None = None

    async def follow(self) -> None:
        """Keep up until cancelled, and even where etcd does not answer for a while."""
        while True:
            with suppress(EtcdSilent):
                await self._take_up()
            await asyncio.sleep(LOOK_SECONDS)

    async def caught_up(self) -> tuple[ControlState, Ledger]:
        """The state after all that was written, and what came of the requests; it is given away."""
        await self._take_up()
        assert self._known is not None
        known, self._known, self._number = self._known, None, 0
        return known

    async def _take_up(self) -> None:
        async with self._turn:
            snapshot, last, entries = await since(self._etcd, self._schema, self._number)
            if snapshot is not None or self._known is None:
                self._known = recover(Past(snapshot, entries), self._make)
            else:
                state, ledger = self._known
                self._known = advance(state, ledger, entries), ledger
            self._number = last
