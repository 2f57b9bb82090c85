"""Former indexes, until nobody uses them any more: then their tags are free for others."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from functools import partial

from flowsieve.control.core import Core
from flowsieve.control.memory.journal import IndexLeft
from flowsieve.control.switches.fleet import Fleet
from flowsieve.control.transition.index_holders import IndexHolders
from flowsieve.control.transition.served_index import ServedIndex
from flowsieve.errors import JournalError

log = logging.getLogger(__name__)

SUBSCRIBER_SECONDS = (
    120.0  # before a tag may be used again though some subscriber has not said that it knows of it
)


class Retirement:
    """`look` now and then whether a tag can be freed."""

    def __init__(
        self, core: Core, fleet: Fleet, holders: IndexHolders, index: Callable[[], ServedIndex], drain: float
    ) -> None:
        self.subscriber_patience = SUBSCRIBER_SECONDS
        self._core, self._fleet, self._holders, self._index = core, fleet, holders, index
        self._drain = drain
        self._deserted_since = time.monotonic()

    async def look(self) -> None:
        """Free the tags of retired indexes that nobody uses any more."""
        state = self._core.state
        if not state.retired or not self._deserted:
            return
        await asyncio.sleep(self._drain)  # what was sent before they said so gets to its first switch
        for each in state.retired:
            if self._deserted:
                try:
                    await self._core.scribe.write(IndexLeft(each.version), partial(self._left, each))
                except JournalError as error:
                    log.warning("the tag of index %d is not free yet: %s", each.version, error)
                    return

    @property
    def _deserted(self) -> bool:
        """Whether nobody publishes by a former index any more, and all who subscribe know the one of now.

        A subscriber that does not say so, since it is of an older release, is waited for, but not for ever: it may come
        to count losses that there were not.
        """
        version = self._index().version
        if self._core.state.crossing is not None or self._holders.behind(version):
            self._deserted_since = time.monotonic()
            return False
        waited = time.monotonic() - self._deserted_since
        return waited > self.subscriber_patience or not self._holders.unaware(version)

    def _left(self, index: ServedIndex) -> None:
        state = self._core.state
        state.retired = tuple(each for each in state.retired if each.version != index.version)
        for switch in self._fleet.reachable:
            self._core.tasks.start(self._fleet.punt(switch))
        log.info("nobody uses index %d any more; its tag %s is free", index.version, index.tag.group)
