"""The journal's file: what was acknowledged is there, or somebody is told why not."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.memory.journal import Asked, Bounded, Entry, Origin, Past
from flowsieve.control.memory.sqlite_journal import SqliteJournal, look
from flowsieve.control.request import Op, Request
from flowsieve.errors import JournalError

SCHEMA = Schema.parse({"a": {"type": "int", "min": 0, "max": 15}})
CHEAP = Filter.parse("a < 3", SCHEMA)
BASE = "a network"


def an_entry(n: int, length: int = 1) -> Entry:
    return Asked(Request(Op.SUBSCRIBE, f"{n}-{'x' * length}", "h", CHEAP), Origin("ann", n, 1.5))


def some(first: int, last: int) -> tuple[Entry, ...]:
    return tuple(an_entry(n) for n in range(first, last + 1))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


def play(path: Path, story: Callable[[SqliteJournal], Awaitable[None]]) -> None:
    """A story with the journal open."""

    async def whole() -> None:
        journal = SqliteJournal(path, BASE)
        try:
            await story(journal)
        finally:
            await journal.close()

    asyncio.run(whole())


def read(path: Path) -> Past:
    """What a controller that starts now finds."""
    found: list[Past] = []

    async def story(journal: SqliteJournal) -> None:
        found.append(await journal.load(SCHEMA))

    play(path, story)
    return found[0]


def copied(path: Path, folder: Path) -> Path:
    """The files as they are at this moment, as a power cut would leave them."""
    folder.mkdir(exist_ok=True)
    for end in ("", "-wal"):
        name = path.name + end
        shutil.copyfile(path.with_name(name), folder / name)
    (folder / (path.name + "-shm")).unlink(missing_ok=True)
    return folder / path.name


def test_two_controllers_do_not_write_one_journal(path: Path) -> None:
    async def story(journal: SqliteJournal) -> None:
        for _ in range(2):
            with pytest.raises(JournalError, match="in use by another controller"):
                SqliteJournal(path, BASE)
        await journal.append(some(1, 1))

    play(path, story)
    assert read(path).entries == some(1, 1)


def test_a_journal_of_something_else_is_not_taken_up_nor_held_on_to(path: Path) -> None:
    assert read(path) == Past()
    for _ in range(2):
        with pytest.raises(JournalError, match="memory of another network or schema"):
            SqliteJournal(path, "another network")
    assert read(path) == Past()
    with pytest.raises(JournalError, match="memory of another network"):
        look(path, SCHEMA, "another network")


def test_a_look_disturbs_nobody_and_sees_what_was_acknowledged(path: Path) -> None:
    async def story(journal: SqliteJournal) -> None:
        for n in range(1, 30):
            writing = asyncio.create_task(journal.append([an_entry(n)]))
            seen = len((await asyncio.to_thread(look, path, SCHEMA, BASE)).entries)
            await writing
            assert seen in (n - 1, n)
            assert look(path, SCHEMA).entries == some(1, n)

    assert look(path, SCHEMA) == Past()
    assert not path.exists()
    play(path, story)
    assert look(path, SCHEMA).entries == some(1, 29)


def test_a_torn_write_costs_nothing_that_was_acknowledged_before(path: Path, tmp_path: Path) -> None:
    async def story(journal: SqliteJournal) -> None:
        await journal.append(some(1, 2))
        wal = path.with_name(path.name + "-wal")
        safe = wal.stat().st_size
        await journal.append([an_entry(3, 3000), an_entry(4, 3000)])
        whole = wal.stat().st_size
        assert whole > safe + 4096
        for length in (*range(safe, whole, 397), safe + 1, whole - 1, whole):
            torn = copied(path, tmp_path / "torn")
            os.truncate(torn.with_name(torn.name + "-wal"), length)
            entries = (await asyncio.to_thread(read, torn)).entries
            assert len(entries) == (4 if length == whole else 2)
            assert entries[:2] == some(1, 2)

    play(path, story)


def test_a_file_cut_at_any_byte_is_whole_or_told_to_be_damaged(path: Path, tmp_path: Path) -> None:
    async def story(journal: SqliteJournal) -> None:
        await journal.append([an_entry(n, 60) for n in range(100)])
        await journal.compact({"some": list(range(3000))}, 50)

    play(path, story)
    assert not path.with_name(path.name + "-wal").exists()
    whole, cut = path.read_bytes(), tmp_path / "cut.db"
    expected = read(path)
    assert len(expected.entries) == 50
    told = 0
    for length in (*range(0, len(whole), 509), len(whole) - 1, len(whole)):
        for end in ("-wal", "-shm"):
            cut.with_name(cut.name + end).unlink(missing_ok=True)
        cut.write_bytes(whole[:length])
        try:
            assert read(cut) == expected, length
        except JournalError as error:
            told += 1
            assert "is damaged" in str(error), (length, error)
    assert told > len(whole) // 509 // 2


def test_bytes_that_changed_on_the_disk_are_noticed(path: Path, tmp_path: Path) -> None:
    play(path, lambda journal: journal.append([an_entry(n, 60) for n in range(20)]))
    whole = path.read_bytes()
    place = whole.index(b"7-xxxxx") + 4
    path.write_bytes(whole[:place] + b"y" + whole[place + 1 :])
    with pytest.raises(JournalError, match="damaged"):
        read(path)
    with pytest.raises(JournalError, match="damaged"):
        look(path, SCHEMA)


@pytest.mark.parametrize("content", [b"", b"no journal at all", bytes(8192)])
def test_a_file_of_another_kind_is_left_alone(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    for _ in range(2):
        with pytest.raises(JournalError, match=r"is damaged .* move it away to begin without it"):
            read(path)
    assert path.read_bytes() == content


def test_what_is_left_of_a_journal_whose_file_is_gone_is_not_taken_up(path: Path) -> None:
    async def story(journal: SqliteJournal) -> None:
        await journal.append(some(1, 2))
        copied(path, path.parent / "copy")

    play(path, story)
    (path.parent / "copy" / path.name).unlink()
    with pytest.raises(JournalError, match=r"journal\.db-wal, and no"):
        read(path.parent / "copy" / path.name)


def test_where_no_file_can_be_it_is_told_which(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalError, match=r"file/journal\.db cannot be used: .*File exists"):
        SqliteJournal(tmp_path / "file" / "journal.db", BASE)
    (tmp_path / "folder.db").mkdir()
    with pytest.raises(JournalError, match=r"folder\.db cannot be used: unable to open"):
        SqliteJournal(tmp_path / "folder.db", BASE)


def test_where_there_is_no_room_nothing_is_written_and_later_all_goes_on(path: Path) -> None:
    async def story(journal: SqliteJournal) -> None:
        await journal.append(some(1, 2))
        journal._database.execute("PRAGMA max_page_count = 8")
        large: Sequence[Entry] = [an_entry(n, 3000) for n in range(3, 20)]
        for _ in range(3):
            with pytest.raises(JournalError, match="full"):
                await journal.append(large)
            assert journal.number == 2
        with pytest.raises(JournalError, match="full"):
            await journal.compact({"much": os.urandom(100_000).hex()}, 2)
        assert await journal.load(SCHEMA) == Past(None, some(1, 2))
        journal._database.execute("PRAGMA max_page_count = 100000")
        assert await journal.append(large) == 19
        assert (await journal.load(SCHEMA)).entries == (*some(1, 2), *large)

    play(path, story)


FULL = """
import asyncio, resource, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_sqlite_journal import *

async def main():
    journal = SqliteJournal(Path(sys.argv[1]), BASE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, resource.RLIM_INFINITY))
    written = 0
    for n in range(1, 100):
        try:
            await journal.append([an_entry(2 * n - 1, 2000), an_entry(2 * n, 2000)])
        except JournalError as error:
            print(written, error)
            break
        written += 2
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print(await journal.append([Bounded("s", written)]) == written + 1)
    os._exit(0)

asyncio.run(main())
"""


def test_where_a_file_may_not_grow_a_killed_controller_leaves_what_was_acknowledged_and_no_more(
    path: Path,
) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", FULL, str(path), str(Path(__file__).parent)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    first, second = ran.stdout.splitlines()
    written = int(first.split()[0])
    assert written >= 4
    assert "cannot be used" in first
    assert second == "True"
    expected = *(an_entry(n, 2000) for n in range(1, written + 1)), Bounded("s", written)
    assert read(path).entries == expected


def test_its_size_is_known(path: Path) -> None:
    async def story(journal: SqliteJournal) -> None:
        before = journal.size
        await journal.append([an_entry(n, 500) for n in range(1, 40)])
        assert journal.size > before + 39 * 500

    play(path, story)


def test_whoever_asked_hears_what_was_written_and_how_long_it_took(path: Path) -> None:
    heard: list[tuple[int, float]] = []

    async def story() -> None:
        journal = SqliteJournal(path, BASE, lambda entries, seconds: heard.append((entries, seconds)))
        await journal.append([an_entry(n) for n in range(1, 4)])
        await journal.close()

    asyncio.run(story())
    ((entries, seconds),) = heard
    assert entries == 3
    assert seconds > 0
