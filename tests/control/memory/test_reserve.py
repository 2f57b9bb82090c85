"""What is kept while nothing can be written is there after a kill, until the journal has gone on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from flowsieve.content.schema import Schema
from flowsieve.control.memory.journal import Bounded, Rewired
from flowsieve.control.memory.reserve import HALF_BYTES, Reserve, kept_after
from flowsieve.control.memory.sqlite_journal import SqliteJournal, look, reserve_of

SCHEMA = Schema.parse({"a": {"type": "int", "min": 0, "max": 15}})
MEND = Rewired(frozenset({frozenset("ab")}), frozenset({frozenset("ab"), frozenset("bc")}))


def test_the_last_that_was_kept_counts_and_only_after_its_entry(tmp_path: Path) -> None:
    path = tmp_path / "reserve"
    assert kept_after(path, 0) == []
    for number, text in enumerate("abc"):
        reserve = Reserve(path)
        assert path.stat().st_size == 2 * HALF_BYTES
        reserve.keep(number, [text, text])
        reserve.close()
        assert [kept_after(path, each) for each in range(3)] == [
            [text, text] if each == number else [] for each in range(3)
        ]


def test_a_half_that_was_not_written_whole_leaves_the_other(tmp_path: Path) -> None:
    path = tmp_path / "reserve"
    reserve = Reserve(path)
    reserve.keep(7, ["old"])
    reserve.keep(7, ["new"])
    reserve.close()
    data = bytearray(path.read_bytes())
    where = data.index(b"new")
    data[where] ^= 1
    path.write_bytes(data)
    assert kept_after(path, 7) == ["old"]


def test_more_than_there_is_room_for_is_refused_and_what_was_kept_stays(tmp_path: Path) -> None:
    reserve = Reserve(tmp_path / "reserve")
    reserve.keep(1, ["kept"])
    with pytest.raises(OSError, match="more than there is room for"):
        reserve.keep(1, ["x" * HALF_BYTES])
    reserve.close()
    assert kept_after(tmp_path / "reserve", 1) == ["kept"]


@pytest.mark.parametrize("compacted", [False, True])
def test_a_journal_takes_up_what_was_kept_and_writes_it_first(tmp_path: Path, compacted: bool) -> None:
    path = tmp_path / "journal.db"

    async def story() -> None:
        journal = SqliteJournal(path, "base")
        await journal.append([Bounded("s", 1)])
        await journal.keep([MEND])
        await journal.keep([MEND, Bounded("s", 2)])
        await journal.close()
        everything = (Bounded("s", 1), MEND, Bounded("s", 2))
        assert look(path, SCHEMA).entries == everything
        journal = SqliteJournal(path, "base")
        assert (await journal.load(SCHEMA)).entries == everything
        await journal.keep([Bounded("s", 3)])
        await journal.close()
        assert look(path, SCHEMA).entries == (*everything, Bounded("s", 3))
        journal = SqliteJournal(path, "base")
        if compacted:
            await journal.compact({"all": "of it"}, journal.number)
            assert ((await journal.load(SCHEMA)).entries, journal.number, journal.length) == ((), 4, 0)
        assert await journal.append([Bounded("s", 4)]) == 5
        await journal.close()
        assert kept_after(reserve_of(path), 5) == []
        written = (Bounded("s", 4),) if compacted else (*everything, Bounded("s", 3), Bounded("s", 4))
        assert look(path, SCHEMA).entries == written

    asyncio.run(story())
