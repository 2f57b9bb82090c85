"""Real switches, real packets, real faults: nothing is lost that the network could carry, nothing comes twice."""

from __future__ import annotations

import asyncio
import random

import pytest
from breakages import (
    FAULTS,
    LASTING,
    Fault,
    delete_a_flow,
    kill_the_switches,
    lose_the_controller,
    pull_a_cable,
)
from world import world

pytestmark = pytest.mark.real


@pytest.mark.parametrize("fault", [*FAULTS, *LASTING], ids=lambda fault: fault.__name__)
def test_nothing_wanted_is_lost_or_doubled_but_what_was_under_way_where_it_broke(fault: Fault) -> None:
    broken(fault, detours=False)


@pytest.mark.parametrize(
    "fault",
    [pull_a_cable, lose_the_controller, kill_the_switches, delete_a_flow, *LASTING],
    ids=lambda fault: fault.__name__,
)
def test_nor_is_it_where_detours_bridge_dead_links(fault: Fault) -> None:
    broken(fault, detours=True)


def broken(fault: Fault, detours: bool) -> None:
    async def story() -> None:
        async with world("ring:6", detours=detours) as there:
            await there.populate()
            await asyncio.sleep(0.3)
            await fault(there, random.Random(fault.__name__))
            await there.subscribe("h4", "a < 100")
            await asyncio.sleep(0.5)
            await there.judge()

    asyncio.run(story())
