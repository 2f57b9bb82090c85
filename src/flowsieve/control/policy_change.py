"""From one policy to another: ports let in what either lets hosts send, until all publishers know the one of now.

A label names all receivers of an event at once. Were a port to drop those that name one receiver too many before their
publisher knows, the others would miss the event.
"""

from __future__ import annotations

import asyncio
import logging

from flowsieve.control.core import Core
from flowsieve.control.memory.journal import Allowed
from flowsieve.control.publishers import Publishers
from flowsieve.control.switches.fleet import Fleet
from flowsieve.errors import JournalError

log = logging.getLogger(__name__)

RETRY_SECONDS = 1.0


async def go_over(core: Core, fleet: Fleet, publishers: Publishers, drain: float) -> None:
    """Have ports hold hosts to the policy of now, once nobody labels by what was `formerly` allowed."""
    if core.formerly is None:
        return
    await publishers.holding(list(core.state.filters.publishers))
    await asyncio.sleep(drain)

    def narrow() -> None:
        core.ledger.allow(policy)
        core.formerly = None
        fleet.guard_anew()

    while core.formerly is not None:
        policy = core.state.settings.policy
        try:
            await core.scribe.write(Allowed(policy), narrow)
        except JournalError as error:
            log.error("ports let in what the policy before let hosts send, too: %s", error)
            await asyncio.sleep(RETRY_SECONDS)
    log.info("all publishers know which hosts they may address, and their ports hold them to it")
