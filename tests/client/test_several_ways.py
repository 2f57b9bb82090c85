"""Calls to controllers of which one leads: the first answer that says something counts, whoever is silent."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from flowsieve.client import several_ways
from flowsieve.client.control_session import transport_to
from flowsieve.client.several_ways import SeveralWays
from flowsieve.errors import BadInput, ControlLost
from flowsieve.protocol.answer import Answer, refusal

OK: Answer = {"ok": {}}
BUSY = refusal("busy", "this controller stands by")


class Way:
    """A controller that answers one thing, or is not there, or stays silent."""

    def __init__(self, name: str, answer: Answer | None) -> None:
        self.name, self.answer = name, answer
        self.calls = 0
        self.silent = self.closed = False

    async def call(self, message: Mapping[str, Any]) -> Answer:
        self.calls += 1
        if self.silent:
            await asyncio.Event().wait()
        if self.answer is None:
            raise ControlLost(f"no controller at {self.name}")
        return self.answer

    async def close(self) -> None:
        self.closed = True


def test_the_next_is_asked_where_one_is_gone_or_stands_by_and_stays_the_first() -> None:
    async def story() -> None:
        gone, busy, leads = Way("a", None), Way("b", BUSY), Way("c", OK)
        ways = SeveralWays([gone, busy, leads])
        assert await ways.call({}) == OK
        assert await ways.call({}) == OK
        assert (gone.calls, busy.calls, leads.calls) == (1, 1, 2)
        leads.answer, gone.answer = None, {"ok": {"by": "a"}}
        assert await ways.call({}) == {"ok": {"by": "a"}}
        await ways.close()
        assert gone.closed and busy.closed and leads.closed

    asyncio.run(story())


def test_one_that_is_silent_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(several_ways, "SILENCE_SECONDS", 0.02)

    async def story() -> None:
        stopped, leads = Way("a", OK), Way("b", OK)
        stopped.silent = True
        ways = SeveralWays([stopped, leads])
        for _ in range(3):
            async with asyncio.timeout(60):
                assert await ways.call({}) == OK
        assert (stopped.calls, leads.calls) == (1, 3)

    asyncio.run(story())


def test_where_nobody_leads_it_is_told_that_all_are_busy_or_gone() -> None:
    async def story() -> None:
        assert await SeveralWays([Way("a", BUSY), Way("b", None)]).call({}) == BUSY
        with pytest.raises(ControlLost, match="no controller at b"):
            await SeveralWays([Way("a", None), Way("b", None)]).call({})

    asyncio.run(story())


def test_several_addresses_have_commas_between_them() -> None:
    async def story() -> None:
        await transport_to("http://127.0.0.1:1, unix:/tmp/none").close()
        with pytest.raises(BadInput, match="'ftp:x' is no address of a controller"):
            transport_to("http://127.0.0.1:1,ftp:x")

    asyncio.run(story())
