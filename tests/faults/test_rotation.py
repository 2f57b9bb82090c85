"""The keys of events are changed while they flow, and the controller is killed on the way: nobody notices."""

from __future__ import annotations

import asyncio
import signal

import pytest
from daemonic import Daemonic, daemonic
from hatchery import Hatchery

pytestmark = pytest.mark.real

LEASE = 2.0  # seconds: clients hear of new keys within a third of it


async def rotated(there: Daemonic, epoch: int) -> None:
    """Ask for new keys, and wait until publishers are given them."""
    there.signal(signal.SIGUSR1)
    await there.logged(f"events are signed with the keys of epoch {epoch} from now on")


def test_keys_are_changed_under_traffic_and_across_a_kill_and_nothing_is_lost_or_doubled(
    hatchery: Hatchery,
) -> None:
    async def story() -> None:
        async with daemonic("ring:4", hatchery) as there:
            there.configure(f"lease = {LEASE}")
            await there.start()
            await there.populate()
            await rotated(there, 2)
            await there.stop_it(signal.SIGKILL)  # some clients have the new keys, and some have not
            await asyncio.sleep(LEASE)
            await there.start()
            await there.logged("events with keys of epochs before 2 are dropped")
            await there.subscribe("h3", "b >= 200")
            await rotated(there, 3)
            await there.logged("events with keys of epochs before 3 are dropped")
            await there.publish("h1")
            await asyncio.sleep(LEASE)
            assert await there.judge() == 0
            assert len(there.sent) == 3
            assert all(log for log in there.sent.values())

    asyncio.run(story())
