"""What keeps a host's filters up to date: it asks the controller for what is new, and knows how long they hold."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import Any

from flowsieve.client.control_session import ControlConnection
from flowsieve.errors import BadMessage, Busy, ControlLost, FlowsieveError
from flowsieve.matcher.filter_store import FilterStore
from flowsieve.protocol.call import FILTERS, HELLO
from flowsieve.protocol.event_keys import UNSIGNED, EventKeys
from flowsieve.protocol.filter_page import FilterPage
from flowsieve.protocol.welcome import Welcome

log = logging.getLogger(__name__)

ASK_SECONDS = 10.0  # that the controller may wait for something new
PAUSE_SECONDS = 0.2  # before it is asked again after it did not answer


class FilterLearner:
    """`learn` asks again and again; what is in the `store` may be used `until` a time of CLOCK_MONOTONIC."""

    def __init__(self, connection: ControlConnection, welcome: Welcome) -> None:
        self.store = FilterStore(welcome.schema)
        self.until = 0.0
        self._connection = connection
        self._renewed = asyncio.Event()
        connection.stage = welcome.keys.stage if welcome.keys is not None else UNSIGNED
        connection.rekey = self._rekeyed

    async def learn(self) -> None:
        """Until the controller has no filters for this host any more; why, is logged."""
        trouble = ""
        while True:
            asked_at = time.monotonic()
            try:
                page = FilterPage.parse(
                    await self._connection.ask(FILTERS, ASK_SECONDS, held=self.store.held)
                )
                self.store.take(page)
            except BadMessage as error:
                log.warning("%s; all of it is asked for anew", error)
                self.store.held = None
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            except (ControlLost, Busy) as error:
                if str(error) != trouble:
                    trouble = str(error)
                    log.warning("no filters from the controller: %s", error)
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            except FlowsieveError as error:
                log.error("no filters from the controller any more: %s", error)
                return
            if trouble:
                log.info("the controller tells filters again")
                trouble = ""
            if page.lease:
                self.until = asked_at + page.lease
                self._renewed.set()

    async def valid(self) -> None:
        """Wait until what is in the store may be used."""
        while time.monotonic() >= self.until:
            self._renewed.clear()
            await self._renewed.wait()

    def _rekeyed(self, told: Mapping[str, Any], before: int | None) -> None:
        """Events are signed by their publishers; the controller wants to hear that we know of their keys."""
        self._connection.stage = EventKeys.parse(told).stage


async def greeted(connection: ControlConnection) -> Welcome:
    """What the controller says to a matcher."""
    return Welcome.parse(await connection.ask(HELLO))
