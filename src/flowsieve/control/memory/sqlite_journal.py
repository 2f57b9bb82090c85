"""A journal in one SQLite file, safe against kill -9 and power cuts (write-ahead log, synchronous writes).

A thread of its own writes, one transaction for all the entries of an `append`. Beside it some room is set aside
(`reserve`), and what was kept there is the first to be written when that is possible again.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from itertools import chain
from pathlib import Path
from typing import TypeVar

from flowsieve.content.schema import Schema
from flowsieve.control.memory.journal import Entry, Past, Snapshot, entry_from_json, entry_to_json
from flowsieve.control.memory.reserve import Reserve, kept_after
from flowsieve.errors import BadJournal, JournalError
from flowsieve.flow.owner import SOLE, Owner

T = TypeVar("T")

FORMAT = 1
BUSY_SECONDS = 1.0
AT_ONCE = 64  # rows of a statement: with each, this thread and that of all else wait for each other
_TABLES = """
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE entries (number INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT NOT NULL, checksum INTEGER NOT NULL);
CREATE TABLE snapshots (number INTEGER PRIMARY KEY, body BLOB NOT NULL);
"""


class SqliteJournal:
    """The journal of one controller; a second one that opens the same file is told so.

    `base` names what the entries are about (schema, network, tag): a journal of something else is not taken up.
    `appended` hears how many entries were written, and how many seconds that took.
    """

    def __init__(
        self,
        path: Path,
        base: str,
        appended: Callable[[int, float], None] = lambda entries, seconds: None,
        owner: Owner = SOLE,
    ) -> None:
        self.path = path
        self._appended = appended
        self._last = self._kept = 0  # the number of the last entry, and of that which the snapshot goes up to
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="journal")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with ExitStack() as undo:
                self._lock = _locked(path.with_name(path.name + "-lock"))
                undo.callback(os.close, self._lock)
                if not path.exists():
                    _make(path, base, owner)
                elif not path.stat().st_size:
                    raise sqlite3.DatabaseError("malformed: it is empty")
                self._database = _opened(path)
                undo.callback(self._database.close)
                _check(self._database, path, base, owner)
                self._last, self._kept = (
                    int(self._database.execute(f"SELECT max({what}) FROM {table}").fetchone()[0] or 0)
                    for what, table in (("seq", "sqlite_sequence"), ("number", "snapshots"))
                )
                self._reserve = Reserve(reserve_of(path))
                undo.callback(self._reserve.close)
                self._before = kept_after(reserve_of(path), self._last)  # it was not written in a former life
                undo.pop_all()
        except (sqlite3.Error, OSError) as error:
            raise _trouble(path, error) from None

    @property
    def number(self) -> int:
        """That of the last entry that was written; 0 if there was none."""
        return self._last

    @property
    def length(self) -> int:
        """How many entries it holds since the last snapshot."""
        return self._last - self._kept

    async def load(self, schema: Schema) -> Past:
        """All that was written."""
        return _with(_read(self._database, self.path, schema), self._before, schema)

    async def append(self, entries: Sequence[Entry]) -> int:
        """Write entries after all before; returns the number of the last when they are safe."""
        rows = [json.dumps(entry_to_json(entry)) for entry in entries]
        start = time.perf_counter()
        last = await self._run(lambda: self._write(rows))
        self._appended(len(rows), time.perf_counter() - start)
        return last

    async def keep(self, entries: Sequence[Entry]) -> None:
        """Keep entries that cannot be written now in the room that is set aside, in the place of those kept before."""
        rows = [json.dumps(entry_to_json(entry)) for entry in entries]
        await self._run(lambda: self._reserve.keep(self._last, self._before + rows))

    async def compact(self, snapshot: Snapshot, number: int) -> None:
        """Keep a snapshot in the place of all entries up to that number."""
        await self._run(lambda: self._compact(snapshot, number))

    async def close(self) -> None:
        """Let go of the file, once all is written."""
        await asyncio.to_thread(self._thread.shutdown)
        self._database.close()
        self._reserve.close()
        os.close(self._lock)

    @property
    def size(self) -> int:
        """How many bytes it takes."""
        files = (self.path, self.path.with_name(self.path.name + "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    async def _run(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except (sqlite3.Error, OSError) as error:
            raise _trouble(self.path, error) from None

    def _write(self, bodies: Sequence[str]) -> int:
        bodies = [*self._before, *bodies]
        rows = [(number, body, _checksum(number, body)) for number, body in enumerate(bodies, self._last + 1)]
        if 0 < len(rows) <= AT_ONCE:  # a statement is a transaction
            self._database.execute(_inserting(len(rows)), list(chain.from_iterable(rows)))
        else:
            with self._transaction() as run:
                for start in range(0, len(rows), AT_ONCE):
                    some = rows[start : start + AT_ONCE]
                    run(_inserting(len(some)), list(chain.from_iterable(some)))
        self._last += len(bodies)
        self._before = []
        return self._last

    def _compact(self, snapshot: Snapshot, number: int) -> None:
        body = zlib.compress(json.dumps(snapshot).encode())
        if self._before:
            number = self._write(())  # all of which is in the snapshot
        with self._transaction() as run:
            run("INSERT OR REPLACE INTO snapshots VALUES (?, ?)", (number, body))
            run("DELETE FROM snapshots WHERE number < ?", (number,))
            run("DELETE FROM entries WHERE number <= ?", (number,))
        self._kept = number

    @contextmanager
    def _transaction(self) -> Iterator[Callable[..., sqlite3.Cursor]]:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield self._database.execute
            self._database.execute("COMMIT")
        except BaseException:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise


def look(path: Path, schema: Schema, base: str | None = None) -> Past:
    """What a journal holds, also while a controller writes it; nothing if there is none.

    With a `base`, a journal of something else is not looked at.
    """
    if not path.exists():
        return Past()
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            _check(database, path, base)
            ((last,),) = database.execute("SELECT max(seq) FROM sqlite_sequence").fetchall()
            return _with(_read(database, path, schema), kept_after(reserve_of(path), last or 0), schema)
    except sqlite3.Error as error:
        raise _trouble(path, error) from None


def reserve_of(path: Path) -> Path:
    """Where the room beside a journal is."""
    return path.with_name(path.name + "-reserve")


def _with(past: Past, bodies: Sequence[str], schema: Schema) -> Past:
    """A past with what was kept after it."""
    more = (entry_from_json(json.loads(body), schema) for body in bodies)
    return Past(past.snapshot, (*past.entries, *more))


def _opened(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
    except BaseException:
        database.close()
        raise
    return database


def _make(path: Path, base: str, owner: Owner) -> None:
    """Begin a journal; what has its name is whole, so an empty file there was emptied by somebody."""
    wal, new = (path.with_name(path.name + end) for end in ("-wal", "-new"))
    if wal.exists():
        raise BadJournal(
            f"there is {wal}, and no {path}, which it belongs to; bring that back, or move it away"
        )
    for left in (new, new.with_name(new.name + "-journal")):
        left.unlink(missing_ok=True)
    with closing(sqlite3.connect(new, isolation_level=None)) as database:
        database.executescript(_TABLES)
        rows = [("format", str(FORMAT)), ("base", base), ("owner", owner.name)]
        database.executemany("INSERT INTO about VALUES (?, ?)", rows)
    new.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _check(database: sqlite3.Connection, path: Path, base: str | None, owner: Owner = SOLE) -> None:
    """Raise where a file is damaged, of another version, or about something else."""
    wrong = database.execute("PRAGMA quick_check(1)").fetchone()[0]
    if wrong != "ok":
        raise sqlite3.DatabaseError(f"malformed: {wrong}")
    tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
    if not {"about", "entries", "snapshots"} <= tables:
        raise sqlite3.DatabaseError("not a database of a journal")
    about = dict(database.execute("SELECT name, value FROM about").fetchall())
    if about.get("format") != str(FORMAT):
        raise BadJournal(f"{path} is of format {about.get('format')}, and this version knows {FORMAT}")
    if about.get("owner", SOLE.name) != owner.name:
        raise BadJournal(
            f"{path} is the memory of owner {about['owner']!r}, not of {owner.name!r}; each has a journal of its own"
        )
    if base is not None and about.get("base") != base:
        raise BadJournal(
            f"{path} is the memory of another network or schema (hosts or links in another order are another network); "
            "name another file, or move it away to begin without what was asked for there"
        )


def _read(database: sqlite3.Connection, path: Path, schema: Schema) -> Past:
    """All that was written; where something of it is missing or not as it was written, BadJournal is raised."""
    try:
        database.execute("BEGIN")
        try:
            found = database.execute("SELECT number, body FROM snapshots ORDER BY number DESC").fetchone()
            after = found[0] if found else 0
            rows = database.execute(
                "SELECT number, body, checksum FROM entries WHERE number > ? ORDER BY number", (after,)
            ).fetchall()
            ((last,),) = database.execute("SELECT max(seq) FROM sqlite_sequence").fetchall()
        finally:
            database.execute("ROLLBACK")
        for expected, (number, body, checksum) in enumerate(rows, after + 1):
            if number != expected or checksum != _checksum(number, body):
                raise ValueError(f"entry {expected} is malformed or missing")
        if after + len(rows) != (last or 0):
            raise ValueError(f"the entries up to {last} are malformed or missing")
        snapshot = json.loads(zlib.decompress(found[1])) if found else None
        return Past(snapshot, tuple(entry_from_json(json.loads(body), schema) for _, body, _ in rows))
    except (sqlite3.Error, ValueError, TypeError, AttributeError, zlib.error) as error:
        raise _trouble(path, error) from None


def _inserting(count: int) -> str:
    """What writes so many entries; SQLite remembers what it has prepared by these texts."""
    return f"INSERT INTO entries VALUES {', '.join(['(?, ?, ?)'] * count)}"


def _checksum(number: int, body: str) -> int:
    return zlib.crc32(body.encode(), number & 0xFFFFFFFF)


def _locked(path: Path) -> int:
    """A file that one process holds; the kernel lets go of it when that ends, however it ends."""
    held = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(held)
        raise sqlite3.OperationalError("locked") from None
    return held


def _trouble(path: Path, error: Exception) -> JournalError:
    text = str(error)
    if "locked" in text:
        return JournalError(f"the journal {path} is in use by another controller")
    if isinstance(error, zlib.error) or "malformed" in text or "not a database" in text:
        return BadJournal(
            f"the journal {path} is damaged ({text}); bring back a copy, or move it away to begin without it"
        )
    return JournalError(f"the journal {path} cannot be used: {text}")
