"""A journal in etcd, for controllers of which one leads: an append is one transaction, fenced by its leadership.

What was appended together is one key, named by the number of its first entry. So an append whose outcome is unknown,
since etcd did not answer, is made again until it is known; it is the same key, and once another controller leads
nothing is written any more.
"""

from __future__ import annotations

import asyncio
import json
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flowsieve.content.schema import Schema
from flowsieve.control.memory.journal import Entry, Past, Snapshot, entry_from_json, entry_to_json
from flowsieve.control.shared.etcd import LARGEST, Etcd
from flowsieve.control.shared.leadership import Leadership
from flowsieve.errors import BadJournal, JournalError
from flowsieve.flow.owner import SOLE, Owner

FORMAT = 1
ABOUT, ENTRIES, SNAPSHOT, CHUNKS = "about", "entries/", "snapshot", "chunks/"
CHUNK = LARGEST // 2
_NO_SNAPSHOT = {"number": 0, "chunks": 0, "at": CHUNKS}
READS = 10  # of a journal that is made short meanwhile


class EtcdJournal:
    """The journal of whoever leads; `opened` makes one. Keys of an owner are below its number."""

    def __init__(
        self,
        leadership: Leadership,
        owner: Owner = SOLE,
        appended: Callable[[int, float], None] = lambda entries, seconds: None,
    ) -> None:
        self._leadership = leadership
        self._etcd = leadership.etcd
        self._root = _root(owner)
        self._appended = appended
        self._last = self._kept = self._bytes = 0
        self._firsts: list[int] = []  # of what was appended together, since the snapshot

    @classmethod
    async def opened(
        cls,
        leadership: Leadership,
        base: str,
        owner: Owner = SOLE,
        appended: Callable[[int, float], None] = lambda entries, seconds: None,
    ) -> EtcdJournal:
        """The journal that is there, or a new one; `base` names what it is about, and another one is not taken up."""
        journal = cls(leadership, owner, appended)
        about = {"format": FORMAT, "base": base, "owner": owner.name}
        await leadership.kept(journal._root + ABOUT, lambda: json.dumps(about).encode())
        await _check(journal._etcd, owner, base)
        found = await _read(journal._etcd, journal._root)
        journal._last, journal._kept, journal._bytes = found.last, found.number, found.bytes
        journal._firsts = list(found.slices)
        return journal

    @property
    def number(self) -> int:
        """That of the last entry that was written; 0 if there was none."""
        return self._last

    @property
    def length(self) -> int:
        """How many entries it holds since the last snapshot."""
        return self._last - self._kept

    @property
    def size(self) -> int:
        """How many bytes it takes."""
        return self._bytes

    async def load(self, schema: Schema) -> Past:
        """All that was written."""
        return (await _read(self._etcd, self._root)).past(schema)

    async def append(self, entries: Sequence[Entry]) -> int:
        """Write entries after all before; returns the number of the last when they are safe."""
        if not entries:
            return self._last
        packed = zlib.compress(json.dumps([entry_to_json(entry) for entry in entries]).encode(), 1)
        start, first = time.perf_counter(), self._last + 1
        await self._commit({_slice(first): packed})
        self._firsts.append(first)
        self._last += len(entries)
        self._bytes += len(packed)
        self._appended(len(entries), time.perf_counter() - start)
        return self._last

    async def keep(self, entries: Sequence[Entry]) -> None:
        """There is no other room: what etcd cannot take is not kept."""
        raise JournalError("nothing can be kept outside etcd, which other controllers read as well")

    async def compact(self, snapshot: Snapshot, number: int) -> None:
        """Keep a snapshot in the place of all entries up to that number; it is there when the last key says so."""
        body = await asyncio.to_thread(lambda: zlib.compress(json.dumps(snapshot).encode()))
        name = f"{CHUNKS}{number:016x}-{self._leadership.fence.number:x}/"
        chunks = [body[at : at + CHUNK] for at in range(0, len(body), CHUNK)]
        await self._commit({}, [(name, _end(name))])
        for n, chunk in enumerate(chunks):
            await self._commit({f"{name}{n:04x}": chunk})
        told = {"number": number, "chunks": len(chunks), "at": name, "checksum": zlib.crc32(body)}
        left = next(
            (n for n, first in enumerate(self._firsts) if self._end_of(n) > number), len(self._firsts)
        )
        whole = self._firsts[left] if left < len(self._firsts) else self._last + 1
        gone = [(ENTRIES, _slice(whole)), (CHUNKS, name), (_end(name), _end(CHUNKS))]
        await self._commit({SNAPSHOT: json.dumps(told).encode()}, gone)
        self._kept, self._bytes, self._firsts = number, len(body), self._firsts[left:]

    def _end_of(self, n: int) -> int:
        """The number of the last entry of the n-th slice."""
        return (self._firsts[n + 1] if n + 1 < len(self._firsts) else self._last + 1) - 1

    async def close(self) -> None:
        """Nothing is held here: the leadership is."""

    async def _commit(self, puts: Mapping[str, bytes], deletes: Sequence[tuple[str, str]] = ()) -> None:
        root = self._root
        whole = {root + path: value for path, value in puts.items()}
        await self._leadership.commit(whole, [(root + first, root + end) for first, end in deletes])


async def check_shared(etcd: Etcd, base: str, owner: Owner = SOLE) -> None:
    """Raise where the journal in etcd, if there is one, is about something else."""
    if await etcd.value(_root(owner) + ABOUT) is not None:
        await _check(etcd, owner, base)


async def since(
    etcd: Etcd, schema: Schema, number: int, owner: Owner = SOLE
) -> tuple[Snapshot | None, int, Sequence[Entry]]:
    """What came after an entry, and the number of the last; with a snapshot before it, where that one is gone."""
    root, last = _root(owner), number
    told = await etcd.value(root + SNAPSHOT)
    if told is None or json.loads(told)["number"] <= number:
        rows = await etcd.between(root + _slice(number + 1), root + _end(ENTRIES))
        entries: list[Entry] = []
        for path, value in rows.items():
            if int(path[len(root + ENTRIES) :], 16) != last + 1:
                break  # what came before it has gone into a snapshot meanwhile
            some = [entry_from_json(row, schema) for row in json.loads(zlib.decompress(value))]
            entries += some
            last += len(some)
        else:
            return None, last, entries
    found = await _read(etcd, root)
    past = found.past(schema)
    return past.snapshot, found.last, past.entries


async def look_shared(etcd: Etcd, schema: Schema, base: str | None = None, owner: Owner = SOLE) -> Past:
    """What a journal in etcd holds, also while a controller writes it; nothing if there is none."""
    if await etcd.value(_root(owner) + ABOUT) is None:
        return Past()
    await _check(etcd, owner, base)
    return (await _read(etcd, _root(owner))).past(schema)


@dataclass(frozen=True, slots=True)
class _Found:
    """What etcd holds: the snapshot and the number that it goes up to, and slices, by the number of their first."""

    snapshot: Snapshot | None
    number: int
    slices: Mapping[int, Sequence[Mapping[str, Any]]]
    bytes: int

    @property
    def last(self) -> int:
        return max((first + len(rows) - 1 for first, rows in self.slices.items()), default=self.number)

    def past(self, schema: Schema) -> Past:
        rows = [
            row
            for first, some in self.slices.items()
            for number, row in enumerate(some, first)
            if number > self.number
        ]
        if len(rows) != self.last - self.number:
            raise BadJournal(f"the journal in etcd lacks entries between {self.number} and {self.last}")
        return Past(self.snapshot, tuple(entry_from_json(row, schema) for row in rows))


async def _read(etcd: Etcd, root: str) -> _Found:
    """All of a journal; a snapshot that takes the place of what was being read is read instead."""
    for _ in range(READS):
        told = await etcd.value(root + SNAPSHOT)
        about: Mapping[str, Any] = json.loads(told) if told is not None else _NO_SNAPSHOT
        chunks = await etcd.below(root + about["at"]) if about["chunks"] else {}
        entries = await etcd.below(root + ENTRIES)
        if told == await etcd.value(root + SNAPSHOT):
            break
    else:
        raise JournalError("the journal in etcd changes faster than it can be read")
    body = b"".join(chunks.values())
    try:
        if about["chunks"] and (len(chunks), zlib.crc32(body)) != (about["chunks"], about["checksum"]):
            raise ValueError("its snapshot is not whole")
        snapshot = json.loads(zlib.decompress(body)) if about["chunks"] else None
        begin = len(root + ENTRIES)
        slices = {
            int(path[begin:], 16): json.loads(zlib.decompress(value)) for path, value in entries.items()
        }
    except (ValueError, KeyError, TypeError, zlib.error) as error:
        raise BadJournal(f"the journal in etcd is damaged ({error})") from None
    size = len(body) + sum(map(len, entries.values()))
    return _Found(snapshot, int(about["number"]), slices, size)


async def _check(etcd: Etcd, owner: Owner, base: str | None) -> None:
    """Raise where a journal is of another version, or about something else."""
    told = await etcd.value(_root(owner) + ABOUT)
    about = json.loads(told) if told is not None else {}
    where = f"the journal {etcd.name!r} in etcd"
    if about.get("format") != FORMAT:
        raise BadJournal(f"{where} is of format {about.get('format')}, and this version knows {FORMAT}")
    if about.get("owner") != owner.name:
        raise BadJournal(f"{where} is the memory of owner {about.get('owner')!r}, not of {owner.name!r}")
    if base is not None and about.get("base") != base:
        raise BadJournal(
            f"{where} is the memory of another network or schema (hosts or links in another order are another "
            "network); give this network another name in [control], or remove that one from etcd"
        )


def _root(owner: Owner) -> str:
    return f"journal/{owner.number}/"


def _slice(first: int) -> str:
    return f"{ENTRIES}{first:016x}"


def _end(path: str) -> str:
    """What comes after all keys that begin so."""
    return path[:-1] + chr(ord(path[-1]) + 1)
