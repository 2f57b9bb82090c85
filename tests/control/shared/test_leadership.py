"""Who leads, on a real etcd: one at a time, and whoever led before writes nothing any more."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from flowsieve.content.schema import Schema
from flowsieve.control.memory.etcd_journal import EtcdJournal
from flowsieve.control.memory.journal import Bounded, Past
from flowsieve.control.shared.etcd import Etcd
from flowsieve.control.shared.leadership import Leadership, NotLeading
from flowsieve.control.shared.servers import Server
from flowsieve.control.shared.shared_claim import SharedClaim
from flowsieve.errors import BadInput, JournalError
from flowsieve.testing.etcd_servers import EtcdServers, etcd_installed

pytestmark = pytest.mark.skipif(not etcd_installed(), reason="there is no etcd; apt-get install etcd-server")

SCHEMA = Schema.parse({"a": {"type": "int", "min": 0, "max": 15}})
PATIENCE = 60.0


@asynccontextmanager
async def nodes(servers: EtcdServers, *names: str) -> AsyncIterator[list[Leadership]]:
    async with AsyncExitStack() as stack:
        made = []
        for name in names:
            etcd = Etcd(servers.addresses, "network")
            stack.push_async_callback(etcd.close)
            made.append(Leadership(etcd, name, {"calls": [name]}))
            stack.push_async_callback(made[-1].leave)
        yield made


def play(
    folder: Path, count: int, story: Callable[[EtcdServers, Leadership, Leadership], Awaitable[None]]
) -> None:
    async def whole(servers: EtcdServers) -> None:
        async with asyncio.timeout(4 * PATIENCE), nodes(servers, "a", "b") as (one, other):
            await story(servers, one, other)

    with EtcdServers(folder, count) as servers:
        asyncio.run(whole(servers))


def silenced(leadership: Leadership) -> None:
    """Have it renew its lease no more, as a process that is stopped does not."""
    assert leadership._lease is not None
    leadership._lease._ending.set()


def test_one_leads_until_it_falls_silent_and_writes_nothing_afterwards(tmp_path: Path) -> None:
    async def story(servers: EtcdServers, one: Leadership, other: Leadership) -> None:
        await one.win()
        await one.win()  # it does already
        assert (one.doubt, other.doubt) == (None, "another controller leads")
        journal = await EtcdJournal.opened(one, "base")
        await journal.append([Bounded("s", 1)])
        waiting = asyncio.create_task(other.win())
        while len(await one.nodes()) < 2:
            await asyncio.sleep(0.01)
        assert [each["node"] for each in await one.nodes()] == ["a", "b"]
        assert not waiting.done()
        silenced(one)
        await waiting
        assert other.fence.number > one.fence.number
        assert one.doubt is not None
        with pytest.raises(NotLeading):
            await journal.append([Bounded("s", 2)])
        assert one.lost.is_set()
        after = await EtcdJournal.opened(other, "base")
        assert (await after.load(SCHEMA)).entries == (Bounded("s", 1),)
        await after.append([Bounded("s", 3)])
        await other.leave()  # gives it back, so that nobody waits
        await one.win()
        third = await EtcdJournal.opened(one, "base")
        assert await third.load(SCHEMA) == Past(None, (Bounded("s", 1), Bounded("s", 3)))

    play(tmp_path, 1, story)


def test_servers_of_etcd_may_die_and_stand_still_one_after_the_other(tmp_path: Path) -> None:
    async def story(servers: EtcdServers, one: Leadership, other: Leadership) -> None:
        await one.win()
        journal = await EtcdJournal.opened(one, "base")
        for fault in (signal.SIGKILL, signal.SIGSTOP):
            hit = servers.leader
            servers.signal(hit, fault)
            assert await journal.append([Bounded(fault.name, 1)]) == journal.number
            if fault == signal.SIGKILL:
                servers.start(hit)
                await asyncio.to_thread(servers.wait)
            else:
                servers.signal(hit, signal.SIGCONT)
        if not one.lost.is_set():  # on a busy machine a second may be too short, and then another may lead
            names = [
                each.switch for each in (await journal.load(SCHEMA)).entries if isinstance(each, Bounded)
            ]
            assert names == ["SIGKILL", "SIGSTOP"]

    play(tmp_path, 3, story)


def test_without_any_etcd_nothing_is_written_and_later_all_of_it_once(tmp_path: Path) -> None:
    async def story(servers: EtcdServers, one: Leadership, other: Leadership) -> None:
        await one.win()
        journal = await EtcdJournal.opened(one, "base")
        await journal.append([Bounded("s", 1)])
        servers.signal(0, signal.SIGKILL)
        writing = asyncio.create_task(journal.append([Bounded("s", 2)]))
        while one.doubt is None:
            await asyncio.sleep(0.05)
        assert not writing.done()
        servers.start(0)
        await asyncio.to_thread(servers.wait)
        try:
            assert await writing == 2
        except NotLeading:  # its lease was over; then nothing of it is there
            assert (await other.etcd.holder("leader")) is None
        await one.leave()
        await other.win()
        found = (await (await EtcdJournal.opened(other, "base")).load(SCHEMA)).entries
        assert found[:1] == (Bounded("s", 1),) and len(found) == journal.number

    play(tmp_path, 1, story)


def test_switches_are_claimed_with_a_higher_number_by_each_who_leads(tmp_path: Path) -> None:
    async def story(servers: EtcdServers, one: Leadership, other: Leadership) -> None:
        await one.win()
        claim = await SharedClaim.opened(one)
        first = await claim.above(None)
        assert await claim.above(first) == first and claim.covers(first)
        await one.leave()
        await other.win()
        after = await SharedClaim.opened(other)
        assert after.covers(first)  # it is the same controller to them
        second = await after.above(first)
        assert second > first
        assert not claim.covers(second)  # which has left, and keeps off

    play(tmp_path, 1, story)


def test_an_etcd_that_is_not_there_is_told(tmp_path: Path) -> None:
    async def ask() -> None:
        etcd = Etcd(["127.0.0.1:1", "127.0.0.1:2"], "network", 0.3)
        try:
            with pytest.raises(JournalError, match=r"no server of etcd answers \(127.0.0.1:"):
                await etcd.value("leader")
        finally:
            await etcd.close()

    asyncio.run(ask())


@pytest.mark.parametrize("text", ["", "host:", "host:0", "host:70000", "http://a/b:1", "host:x"])
def test_a_bad_address_is_told(text: str) -> None:
    with pytest.raises(BadInput, match=r"is no server of etcd; right is HOST:PORT"):
        Server.parse(text)


def test_many_who_ask_at_once_outlive_the_server_that_they_ask(tmp_path: Path) -> None:
    """Whoever finds out first that a server is gone lets go of it, while others wait for its answer."""

    async def story(servers: EtcdServers, one: Leadership, other: Leadership) -> None:
        etcd = one.etcd
        await etcd.commit({"key": b"value"})

        async def ask(pause: float) -> None:
            for _ in range(10):
                await asyncio.sleep(pause)
                assert await etcd.value("key") == b"value"

        asking = [asyncio.create_task(ask(0.01 * n)) for n in range(30)]
        await asyncio.sleep(0.3)
        address = str(etcd.servers[etcd._next])
        servers.signal(servers.addresses.index(address), signal.SIGSTOP)
        await asyncio.wait(asking)
        assert not any(task.cancelled() or task.exception() for task in asking)

    play(tmp_path, 3, story)


def test_a_loop_that_is_busy_for_longer_than_a_lease_wins_all_the_same(tmp_path: Path) -> None:
    async def story(servers: EtcdServers, one: Leadership, other: Leadership) -> None:
        async def recovering() -> None:
            for _ in range(40):
                await asyncio.sleep(0)
                time.sleep(0.08)  # as the loop does while it makes a large state

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(recovering())
            await one.win()
        assert one.doubt is None
        silenced(one)
        while one.doubt is None:
            await asyncio.sleep(0.05)
        await asyncio.sleep(1.5)  # its lease is over, and it has not heard of it
        one._fence = None
        await one.win()
        assert one.doubt is None

    play(tmp_path, 1, story)
