"""Real switches, real packets, real faults: nothing is lost that the network could carry, nothing comes twice."""

from __future__ import annotations

import asyncio
import random

import pytest
from breakages import FAULTS, LASTING, Fault
from world import world

pytestmark = pytest.mark.real


@pytest.mark.parametrize("fault", [*FAULTS, *LASTING], ids=lambda fault: fault.__name__)
def test_nothing_wanted_is_lost_or_doubled_but_what_was_under_way_where_it_broke(fault: Fault) -> None:
    async def story() -> None:
        async with world("ring:6") as there:
            await there.populate()
            await asyncio.sleep(0.3)
            await fault(there, random.Random(fault.__name__))
            await there.subscribe("h4", "a < 100")
            await asyncio.sleep(0.5)
            await there.judge()

    asyncio.run(story())
