"""Files of telemetry, as the pipeline reads them. All of it blocks: it belongs in a thread.

A file is written under a name that begins with a dot, which readers pass over, and then renamed: so nobody reads half
of one, whatever dies when. What a controller that was killed has left of such files is removed by the next one.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from flowsieve.content.schema import Schema
from flowsieve.flow.interest import Interest
from flowsieve.header.tag import Tag
from flowsieve.index.plan import IndexPlan, plan_to_json
from flowsieve.serving.telemetry.retention import LandedFile, outdated
from flowsieve.serving.telemetry.rows import COUNTS, DELIVERIES, EVENTS, ROW_KINDS, ReportRows
from flowsieve.serving.telemetry.settings import Keep

SUBSCRIPTIONS, INDEX = "subscriptions", "index"
KINDS = (*ROW_KINDS, SUBSCRIPTIONS, INDEX)
STANDING = {SUBSCRIPTIONS: 1, INDEX: 2}  # of which so many stay, however old: they say what is in force
HALF = re.compile(r"\.[0-9T.-]+\.(parquet|json)")  # what may be left of a controller that was killed
FOLDER_MODE = 0o700  # what hosts have published is not for everybody

TIME = pa.timestamp("us", tz="UTC")
TYPES = {
    "int": pa.int64(),
    "float": pa.float64(),
    "enum": pa.string(),
    "string": pa.string(),
    "bool": pa.bool_(),
}
DELIVERY_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("at", TIME),
        ("host", pa.string()),
        ("wanted", pa.bool_()),
        ("weight", pa.float64()),
    ]
)
COUNTED = ("published", "received", "delivered", "unwanted")
COUNTS_SCHEMA = pa.schema(
    [("at", TIME), ("host", pa.string()), ("session", pa.string()), *((name, pa.int64()) for name in COUNTED)]
)
SUBSCRIPTION_SCHEMA = pa.schema(
    [("at", TIME), ("version", pa.int64()), *((name, pa.string()) for name in ("id", "host", "filter"))]
)


@dataclass(frozen=True, slots=True)
class LandedIndex:
    """The index in force: what events are addressed by."""

    version: int
    tag: Tag
    plan: IndexPlan


def event_schema(schema: Schema) -> pa.Schema:
    """The columns of landed events: the attributes under their own names, behind those that all events have."""
    own = [
        ("id", pa.string()),
        ("at", TIME),
        ("sent_at", TIME),
        ("host", pa.string()),
        ("weight", pa.float64()),
    ]
    return pa.schema([*own, *((each.name, TYPES[each.kind]) for each in schema)])


class TelemetryFolder:
    """A folder with one folder for each kind of file; times are microseconds since 1970."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._number = 0  # of this controller's files: two of one microsecond have different names
        self._version: int | None = None  # of the last file of subscriptions

    def prepare(self) -> None:
        """Have all folders, and none of a dead controller's halves in them."""
        self.folder.mkdir(mode=FOLDER_MODE, exist_ok=True)
        for kind in KINDS:
            inside = self.folder / kind
            inside.mkdir(exist_ok=True)
            for each in inside.iterdir():
                if HALF.fullmatch(each.name):
                    each.unlink(missing_ok=True)

    def land(self, rows: ReportRows, schema: Schema, at: int) -> tuple[Counter[str], int]:
        """Write rows down; how many of each kind there were, and their bytes."""
        landed, size = Counter[str](), 0
        tables: dict[str, Callable[[], pa.Table]] = {
            EVENTS: lambda: _events(rows, schema, at),
            DELIVERIES: lambda: _deliveries(rows, at),
            COUNTS: lambda: _counts(rows, at),
        }
        for kind, table in tables.items():
            count = len(getattr(rows, kind))
            if count:
                size += self._parquet(kind, self._name(at), table())
                landed[kind] = count
        return landed, size

    def land_subscriptions(self, interests: Sequence[Interest], at: int) -> int:
        """Write down all subscriptions that are held, under the next version; the bytes of that."""
        if self._version is None:
            self._version = max(map(_version, (self.folder / SUBSCRIPTIONS).iterdir()), default=0)
        version = self._version + 1
        held = [each for each in interests if each.filter is not None]
        texts = [each.filter.text for each in held if each.filter is not None]
        names, hosts = [each.id for each in held], [each.endpoint for each in held]
        columns = ([at] * len(held), [version] * len(held), names, hosts, texts)
        size = self._parquet(SUBSCRIPTIONS, f"{version:012d}", _table(columns, SUBSCRIPTION_SCHEMA))
        self._version = version
        return size

    def land_index(self, index: LandedIndex, at: int) -> int:
        """Write down the index in force; the bytes of that."""
        told = {
            "version": index.version,
            "tag": str(index.tag.group),
            "at": datetime.fromtimestamp(at / 1e6, UTC).isoformat(),
            "schema": index.plan.schema.to_json(),
            "plan": plan_to_json(index.plan),
        }
        text = json.dumps(told).encode()
        return self._write(INDEX, f"{index.version}.json", lambda path: path.write_bytes(text))

    def sweep(self, keep: Keep, now: float) -> tuple[int, int]:
        """Remove what is kept no longer; how many files went, and how many are left."""
        files = list(self.files())
        gone = outdated(files, keep, now, STANDING)
        for file in gone:
            (self.folder / file.kind / file.name).unlink(missing_ok=True)
        return len(gone), len(files) - len(gone)

    def files(self) -> Iterable[LandedFile]:
        """All files that are landed."""
        for kind in KINDS:
            try:
                entries = list(os.scandir(self.folder / kind))
            except FileNotFoundError:
                continue
            for entry in entries:
                try:
                    if not entry.name.startswith(".") and entry.is_file(follow_symlinks=False):
                        there = entry.stat(follow_symlinks=False)
                        yield LandedFile(there.st_mtime, kind, entry.name, there.st_size)
                except FileNotFoundError:
                    continue  # somebody else removes files as well

    def _name(self, at: int) -> str:
        self._number += 1
        when = datetime.fromtimestamp(at / 1e6, UTC)
        return f"{when:%Y%m%dT%H%M%S.%f}-{self._number:06d}"

    def _parquet(self, kind: str, name: str, table: pa.Table) -> int:
        return self._write(kind, f"{name}.parquet", lambda path: pq.write_table(table, path))

    def _write(self, kind: str, name: str, write: Callable[[Path], object]) -> int:
        inside = self.folder / kind
        half, whole = inside / f".{name}", inside / name
        try:
            write(half)
            with half.open("rb") as written:
                os.fsync(written.fileno())
                size = os.fstat(written.fileno()).st_size
            half.rename(whole)
        except BaseException:
            half.unlink(missing_ok=True)
            raise
        return size


def _events(rows: ReportRows, schema: Schema, at: int) -> pa.Table:
    columns: list[Sequence[Any]] = [
        [row.id for row in rows.events],
        [at] * len(rows.events),
        [row.sent_at_us for row in rows.events],
        [row.host for row in rows.events],
        [row.weight for row in rows.events],
    ]
    columns += [[row.values[name] for row in rows.events] for name in schema.names]
    return _table(columns, event_schema(schema))


def _deliveries(rows: ReportRows, at: int) -> pa.Table:
    ids, hosts, wanted, weights = zip(*rows.deliveries, strict=True)
    return _table([ids, [at] * len(ids), hosts, wanted, weights], DELIVERY_SCHEMA)


def _counts(rows: ReportRows, at: int) -> pa.Table:
    hosts, sessions, counts = zip(*rows.counts, strict=True)
    return _table([[at] * len(hosts), hosts, sessions, *zip(*counts, strict=True)], COUNTS_SCHEMA)


def _table(columns: Sequence[Sequence[Any]], schema: pa.Schema) -> pa.Table:
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.table(arrays, schema=schema)


def _version(path: Path) -> int:
    return int(path.stem) if path.stem.isdecimal() else 0
