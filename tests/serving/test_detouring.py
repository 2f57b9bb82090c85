"""What detours cost, whether there are any, and what people and their tools see of them."""

from __future__ import annotations

import asyncio

from lives import PATIENCE, Lives

from flowsieve.cli.controller import _failover_row
from flowsieve.flow.detours import protections, ways_around
from flowsieve.network.generators import fat_tree, generate, line
from flowsieve.network.mend import edges_of
from flowsieve.serving.detouring import detour_room
from flowsieve.serving.guarding import AUTO
from flowsieve.serving.http import views

MOST = max(
    each.entries
    for each in protections(
        fat_tree(4), ways_around(fat_tree(4), edges_of(fat_tree(4)), ()).values()
    ).values()
)


def test_there_are_detours_unless_somebody_says_no() -> None:
    assert detour_room(AUTO, None)(fat_tree(4)) is detour_room(True, None)(fat_tree(4)) is None
    assert detour_room(False, None)(fat_tree(4)) == detour_room(False, 1000)(fat_tree(4)) == 0


def test_where_tables_are_small_they_have_a_tenth_of_them_at_most() -> None:
    assert detour_room(AUTO, 100 * MOST)(fat_tree(4)) == MOST
    assert detour_room(AUTO, 200)(fat_tree(4)) == 20 < MOST
    assert detour_room(True, 200)(fat_tree(4)) == MOST
    assert detour_room(True, 200)(line(3)) == 0  # nothing leads around anything


def test_what_is_protected_and_bridged_is_shown_and_priced() -> None:
    async def story() -> None:
        lives = Lives(generate("ring:4"), detours=True)
        async with asyncio.timeout(PATIENCE):
            await lives.start()
            await lives.populate()
            dispatcher = lives.dispatcher
            while not (dispatcher.protected and len(dispatcher.detours) == 3):
                await asyncio.sleep(0.001)
            told = views.status(dispatcher, {})["failover"]
            assert told | {"groups": 0, "entries": 0} == {
                "on": True,
                "settled": True,
                "protected": 3,
                "unprotected": [],
                "bridged": [],
                "groups": 0,
                "entries": 0,
                "without": [],
            }
            assert told["groups"] == 8 and told["entries"] == 3 * 2 * (3 + 2 + 1)
            priced = views.quote(dispatcher, "h0", "a < 3")["failover"]
            assert all(each["groups"] == 2 and each["entries"] > 0 for each in priced.values())
            lives.fabric.set_link("s0", "s1", up=False)
            while not dispatcher.state.down:
                await asyncio.sleep(0.001)
            told = views.status(dispatcher, {})["failover"]
            assert told["bridged"] == [["s0", "s3", "s2", "s1"]]
            assert "in use: s0 - s3 - s2 - s1" in _failover_row(told)
            await lives.kill()

    asyncio.run(story())


def test_where_there_are_none_that_is_said() -> None:
    assert _failover_row({"on": False}) == "off: links that die are mended by the controller alone"
