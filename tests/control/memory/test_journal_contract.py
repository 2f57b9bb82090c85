"""What every journal promises, wherever it is kept: one suite over the file and over etcd."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.memory.etcd_journal import EtcdJournal
from flowsieve.control.memory.journal import Asked, Bounded, Entry, Origin, Past, Rewired
from flowsieve.control.memory.sqlite_journal import SqliteJournal
from flowsieve.control.request import Op, Request
from flowsieve.control.shared.etcd import Etcd
from flowsieve.control.shared.leadership import Leadership
from flowsieve.errors import JournalError
from flowsieve.flow.owner import Owner
from flowsieve.index.dzset import DzSet
from flowsieve.testing.etcd_servers import EtcdServers, etcd_installed

SCHEMA = Schema.parse({"a": {"type": "int", "min": 0, "max": 15}})
CHEAP = Filter.parse("a < 3", SCHEMA)
LOW, HIGH = Owner(1, DzSet.of("0")), Owner(2, DzSet.of("1"))
AnyJournal = SqliteJournal | EtcdJournal
Story = Callable[[AnyJournal], Awaitable[None]]
Open = Callable[..., AbstractAsyncContextManager[AnyJournal]]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdServers]:
    with EtcdServers(tmp_path_factory.mktemp("etcd")) as made:
        yield made


@pytest.fixture(params=["file", "etcd"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Opens the journal of this test; again and again it is the same."""
    if request.param == "etcd" and not etcd_installed():
        pytest.skip("there is no etcd; apt-get install etcd-server")

    @asynccontextmanager
    async def in_file(base: str = "a network", owner: Owner | None = None) -> AsyncIterator[AnyJournal]:
        journal = SqliteJournal(tmp_path / "journal.db", base, **({"owner": owner} if owner else {}))
        try:
            yield journal
        finally:
            await journal.close()

    @asynccontextmanager
    async def in_etcd(base: str = "a network", owner: Owner | None = None) -> AsyncIterator[AnyJournal]:
        servers: EtcdServers = request.getfixturevalue("servers")
        etcd = Etcd(servers.addresses, tmp_path.name)
        leadership = Leadership(etcd, "a", {}, 30)
        try:
            await leadership.win()
            yield await EtcdJournal.opened(leadership, base, **({"owner": owner} if owner else {}))
        finally:
            await leadership.leave()
            await etcd.close()

    return in_file if request.param == "file" else in_etcd


def play(opened: Open, *stories: Story, **how: object) -> None:
    """Stories, each with the journal opened anew."""

    async def whole() -> None:
        async with asyncio.timeout(60):
            for story in stories:
                async with opened(**how) as journal:
                    await story(journal)

    asyncio.run(whole())


def some(first: int, last: int, length: int = 1) -> tuple[Entry, ...]:
    return tuple(
        Asked(Request(Op.SUBSCRIBE, f"{n}-{'x' * length}", "h", CHEAP), Origin("ann", n, 1.5))
        for n in range(first, last + 1)
    )


def test_what_was_written_is_there_in_its_order_and_numbers_go_on(opened: Open) -> None:
    mend = Rewired(frozenset({frozenset("ab")}))

    async def first(journal: AnyJournal) -> None:
        assert (journal.number, journal.length) == (0, 0)
        assert await journal.load(SCHEMA) == Past()
        assert await journal.append(some(1, 3)) == 3
        assert await journal.append([]) == 3
        assert await journal.append([mend]) == 4

    async def second(journal: AnyJournal) -> None:
        assert (journal.number, journal.length) == (4, 4)
        assert await journal.append([Bounded("s", 7)]) == 5
        assert await journal.load(SCHEMA) == Past(None, (*some(1, 3), mend, Bounded("s", 7)))

    play(opened, first, second)


def test_a_snapshot_takes_the_place_of_what_came_before_and_of_nothing_else(opened: Open) -> None:
    async def first(journal: AnyJournal) -> None:
        await journal.append(some(1, 2))
        await journal.append(some(3, 5))
        await journal.compact({"of": 4}, 4)  # in the middle of what was written together
        assert (await journal.load(SCHEMA), journal.length) == (Past({"of": 4}, some(5, 5)), 1)
        assert await journal.append(some(6, 6)) == 6

    async def second(journal: AnyJournal) -> None:
        assert (journal.number, journal.length) == (6, 2)
        assert await journal.load(SCHEMA) == Past({"of": 4}, some(5, 6))
        await journal.compact({"of": 6}, 6)
        await journal.compact({"of": "6 again"}, 6)
        assert await journal.append(some(7, 7)) == 7

    async def third(journal: AnyJournal) -> None:
        assert (journal.number, journal.length) == (7, 1)
        assert await journal.load(SCHEMA) == Past({"of": "6 again"}, some(7, 7))

    play(opened, first, second, third)


def test_large_snapshots_and_slices_are_kept_whole(opened: Open) -> None:
    large = {"rows": [f"{n * 7919:x}" * 20 for n in range(60_000)]}

    async def first(journal: AnyJournal) -> None:
        await journal.append(some(1, 2000, 60))
        await journal.compact(large, 1500)

    async def second(journal: AnyJournal) -> None:
        assert await journal.load(SCHEMA) == Past(large, some(1501, 2000, 60))

    play(opened, first, second)


def test_a_journal_of_something_else_is_not_taken_up(opened: Open) -> None:
    async def nothing(journal: AnyJournal) -> None:
        pass

    play(opened, nothing)
    with pytest.raises(JournalError, match="memory of another network or schema"):
        play(opened, nothing, base="another network")


def test_owners_have_journals_of_their_own(opened: Open) -> None:
    async def write(journal: AnyJournal) -> None:
        await journal.append(some(1, 2))

    play(opened, write, owner=LOW)
    with pytest.raises(JournalError, match="memory of owner '1 0'"):
        play(opened, write, owner=Owner(1, DzSet.of("1")))
