"""What guards cost and have refused, as people and their tools see it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from office import SECONDS, Office

from flowsieve.errors import BadInput
from flowsieve.flow.guard import GuardSettings, Refusals
from flowsieve.serving.guard_counts import FRESH_SECONDS, GuardCounts
from flowsieve.serving.http import views


def play(folder: Path, story: Callable[[Office], Awaitable[None]]) -> None:
    async def whole() -> None:
        office = Office(folder, guarding=lambda topology: GuardSettings(prefixes=2))
        async with asyncio.timeout(SECONDS), office.open():
            await story(office)

    asyncio.run(whole())


def test_an_advertisement_is_priced_with_what_its_guard_takes(tmp_path: Path) -> None:
    async def story(office: Office) -> None:
        dispatcher = office.dispatcher
        before = dispatcher.guards
        priced = views.quote(dispatcher, "ann", "price < 512", "adv")
        assert (priced["guard"], priced["entries"], priced["fits"]) == ({"s1": 1}, {}, True)
        assert views.quote(dispatcher, "ann", "price < 512")["guard"] == {}  # who listens sends nothing
        await dispatcher.settled()
        assert dispatcher.guards == before and not dispatcher.state.advertisements
        with pytest.raises(BadInput, match="right is sub or adv"):
            views.quote(dispatcher, "ann", "True", "unadv")

    play(tmp_path, story)


def test_those_who_were_refused_something_are_named(tmp_path: Path) -> None:
    async def story(office: Office) -> None:
        told = views.guard(office.dispatcher, {"ann": Refusals(), "bob": Refusals(3, 4), "cy": Refusals(1)})
        assert told == {
            "on": True,
            "entries": 3 + 4 + 4,  # one for each switch, end of a link, and host
            "unguarded": [],
            "outside": 4,
            "over_rate": 4,
            "hosts": {"bob": {"outside": 3, "over_rate": 4}, "cy": {"outside": 1, "over_rate": 0}},
        }

    play(tmp_path, story)


def test_all_who_look_share_a_reading(tmp_path: Path) -> None:
    async def story(office: Office) -> None:
        now, asked, read = [0.0], [0], office.fabric.refusals

        async def counted(switch: str) -> object:
            asked[0] += 1
            return await read(switch)

        office.fabric.refusals = counted  # type: ignore[assignment,method-assign]
        counts = GuardCounts(office.dispatcher, lambda: now[0])
        seen = await asyncio.gather(*(counts.now() for _ in range(100)))
        assert asked[0] == 3 and all(each == seen[0] for each in seen)
        assert set(seen[0]) == {"ann", "bob", "cy", "dee"}
        await counts.now()
        assert asked[0] == 3
        now[0] += FRESH_SECONDS
        office.fabric.disconnect("s3")
        assert set(await counts.now()) == {"ann", "bob"} and asked[0] == 5

    play(tmp_path, story)
