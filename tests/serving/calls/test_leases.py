"""How long what clients asked for outlives them, also when their operator changes his mind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import patience
import pytest

from flowsieve.client.control_session import ControlConnection
from flowsieve.control.memory.journal import NoJournal
from flowsieve.control.memory.scribe import Scribe
from flowsieve.control.requests.ledger import Ledger
from flowsieve.errors import BadInput, ControlLost
from flowsieve.protocol.answer import refusal
from flowsieve.serving.calls import leases as module
from flowsieve.serving.calls.leases import Leases, Promises


def test_a_session_ends_when_it_is_not_heard_of_for_a_lease() -> None:
    leases = Leases(10)
    leases.renew("ann", now=0)
    leases.renew("bob", now=5)
    assert leases.ended(now=10) == ("ann",)
    leases.renew("ann", now=11)
    assert leases.ended(now=15) == ("bob",)
    leases.end("bob")
    assert leases.ended(now=20.5) == ()


def test_a_shorter_lease_does_not_end_what_was_promised_for_longer() -> None:
    leases = Leases(30)
    leases.renew("ann", now=0)
    leases.seconds = 5
    leases.renew("bob", now=1)
    leases.renew("ann", now=10)
    assert leases.ended(now=6) == ("bob",)
    assert "ann" not in leases.ended(now=29)
    leases.renew("ann", now=29)
    assert "ann" in leases.ended(now=34)


def test_a_longer_lease_holds_from_the_next_word_on() -> None:
    leases = Leases(5)
    leases.renew("ann", now=0)
    leases.seconds = 30
    leases.renew("bob", now=1)
    leases.renew("ann", now=4)
    assert leases.ended(now=33) == ("bob",)


def test_what_was_promised_before_a_restart_holds_after_it() -> None:
    leases = Leases(5)
    leases.renew("ann", now=0, promised=30)
    leases.renew("bob", now=0)
    leases.renew("ann", now=10)
    assert leases.ended(now=29) == ("bob",)
    assert leases.longest(now=10) == 20
    assert leases.ended(now=30) == ("ann", "bob")


@asynccontextmanager
async def promising(leases: Leases, ledger: Ledger, now: list[float]) -> AsyncIterator[Promises]:
    scribe = Scribe(NoJournal())
    promises = Promises(leases, ledger, scribe, lambda: now[0])
    tasks = [asyncio.create_task(scribe.run()), asyncio.create_task(promises.run())]
    try:
        yield promises
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def test_a_longer_lease_is_written_down_before_it_is_given() -> None:
    async def story() -> None:
        ledger = Ledger()
        async with promising(Leases(30), ledger, [0.0]) as promises:
            await promises.allow(30)
            assert ledger.promised == 30
            await promises.allow(5)
            assert ledger.promised == 30

    asyncio.run(story())


def test_a_longer_lease_stays_written_down_while_it_is_gone_over_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """That takes a while, and may fail; only then is it a lease that nobody counts on."""
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.0)

    async def story() -> None:
        ledger, leases = Ledger(), Leases(30)
        async with promising(leases, ledger, [0.0]) as promises:
            await promises.allow(30)
            with pytest.raises(BadInput):
                async with promises.allowing(300):
                    await looked()
                    assert ledger.promised == 300
                    raise BadInput("no room")
            await looked()
            assert ledger.promised == 30
            async with promises.allowing(300):
                await looked()
                leases.seconds = 300
            await looked()
            assert ledger.promised == 300

    asyncio.run(story())


def test_a_lease_is_not_taken_for_promised_while_a_shorter_one_is_being_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.0)

    async def story() -> None:
        ledger, leases = Ledger(), Leases(30)
        ledger.promise(60)
        async with promising(leases, ledger, [0.0]) as promises:
            writing, write = asyncio.Event(), promises._write

            async def slow(seconds: float) -> None:
                writing.set()
                await looked()
                await write(seconds)

            promises._write = slow  # type: ignore[method-assign]
            await writing.wait()
            async with promises.allowing(50):
                leases.seconds = 50
            await looked()
            assert ledger.promised == 50

    asyncio.run(story())


async def looked() -> None:
    for _ in range(40):
        await asyncio.sleep(0)


def test_a_shorter_lease_is_written_down_when_nobody_counts_on_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock is ours: a session that was promised 30 s keeps them, however often it is looked."""
    now = [100.0]
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.0)

    async def story() -> None:
        ledger, leases = Ledger(), Leases(5)
        ledger.promise(30)
        leases.renew("ann", now[0], ledger.promised)
        async with promising(leases, ledger, now):
            now[0] = 124.0
            leases.renew("ann", now[0])
            await looked()
            assert ledger.promised == 30
            now[0] = 125.0
            await looked()
            assert ledger.promised == 5

    asyncio.run(story())


# The client's side.


@pytest.mark.parametrize("trouble", ["lost", "busy"])
def test_a_client_whose_controller_cannot_answer_for_minutes_renews_soon_after(trouble: str) -> None:
    lease, away = 6000.0, 300.0
    renewed: list[float] = []

    class Transport:
        async def call(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
            now = asyncio.get_running_loop().time()
            if lease / 4 < now < lease / 3 + away:
                if trouble == "busy":
                    return refusal("busy", "ask again later")
                raise ControlLost("nobody is there")
            renewed.append(now)
            return {"ok": {"holds": 1, "lease": lease}}

        async def close(self) -> None: ...

    async def story() -> None:
        connection = ControlConnection(Transport(), "ann")
        connection.held = 1
        connection.keep(lease)
        await asyncio.sleep(lease / 2)
        assert not connection.lost.done()
        await connection.close()

    patience.run(story())
    assert lease / 3 + away <= renewed[0] < lease / 3 + away + 60
