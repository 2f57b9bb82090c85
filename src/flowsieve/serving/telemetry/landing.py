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
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flowsieve.content.schema import Schema
from flowsieve.control.transition.served_index import ServedIndex
from flowsieve.flow.interest import Interest
from flowsieve.index.plan import plan_to_json
from flowsieve.serving.telemetry.retention import LandedFile, outdated
from flowsieve.serving.telemetry.rows import COUNTS, DELIVERIES, EVENTS, ROW_KINDS, ReportRows
from flowsieve.serving.telemetry.settings import Keep

if TYPE_CHECKING:
    import pyarrow as pa

Columns = Sequence[Sequence[Any]]
SUBSCRIPTIONS, INDEX = "subscriptions", "index"
KINDS = (*ROW_KINDS, SUBSCRIPTIONS, INDEX)
STANDING = {SUBSCRIPTIONS: 1, INDEX: 2}  # of which so many stay, however old: they say what is in force
HALF = re.compile(r"\.[0-9T.-]+\.(parquet|json)")  # what may be left of a controller that was killed
FOLDER_MODE = 0o700  # what hosts have published is not for everybody


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
        from flowsieve.serving.telemetry import (
            columns,
        )  # it takes a while, and is for those alone who want this

        landed, size = Counter[str](), 0
        if rows.events:
            table = columns.table_of(_event_columns(rows, schema, at), columns.event_schema(schema))
            size += self._parquet(EVENTS, self._name(at), table)
            landed[EVENTS] = len(rows.events)
        if rows.deliveries:
            table = columns.table_of(_delivery_columns(rows, at), columns.DELIVERY_SCHEMA)
            size += self._parquet(DELIVERIES, self._name(at), table)
            landed[DELIVERIES] = len(rows.deliveries)
        if rows.counts:
            table = columns.table_of(_count_columns(rows, at), columns.COUNTS_SCHEMA)
            size += self._parquet(COUNTS, self._name(at), table)
            landed[COUNTS] = len(rows.counts)
        return landed, size

    def land_subscriptions(self, interests: Sequence[Interest], at: int) -> int:
        """Write down all subscriptions that are held, under the next version; the bytes of that."""
        from flowsieve.serving.telemetry import columns

        if self._version is None:
            self._version = max(map(_version, (self.folder / SUBSCRIPTIONS).iterdir()), default=0)
        version = self._version + 1
        held = [each for each in interests if each.filter is not None]
        texts = [each.filter.text for each in held if each.filter is not None]
        names, hosts = [each.id for each in held], [each.endpoint for each in held]
        told = ([at] * len(held), [version] * len(held), names, hosts, texts)
        size = self._parquet(
            SUBSCRIPTIONS, f"{version:012d}", columns.table_of(told, columns.SUBSCRIPTION_SCHEMA)
        )
        self._version = version
        return size

    def land_index(self, index: ServedIndex, at: int) -> int:
        """Write down the index in force; the bytes of that.

        Readers take the highest version: higher ones, of a controller with another state, go.
        """
        told = {
            "version": index.version,
            "tag": str(index.tag.group),
            "at": datetime.fromtimestamp(at / 1e6, UTC).isoformat(),
            "schema": index.plan.schema.to_json(),
            "plan": plan_to_json(index.plan),
        }
        text = json.dumps(told).encode()
        size = self._write(INDEX, f"{index.version}.json", lambda path: path.write_bytes(text))
        for each in (self.folder / INDEX).glob("[!.]*.json"):
            if _version(each) > index.version:
                each.unlink(missing_ok=True)
        return size

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
        from pyarrow import parquet

        return self._write(kind, f"{name}.parquet", lambda path: parquet.write_table(table, path))

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


def _event_columns(rows: ReportRows, schema: Schema, at: int) -> Columns:
    ids, sent, hosts, weights, values = zip(*rows.events, strict=True)
    attributes = [[each[name] for each in values] for name in schema.names]
    return [ids, [at] * len(ids), sent, hosts, weights, *attributes]


def _delivery_columns(rows: ReportRows, at: int) -> Columns:
    ids, hosts, wanted, weights = zip(*rows.deliveries, strict=True)
    return [ids, [at] * len(ids), hosts, wanted, weights]


def _count_columns(rows: ReportRows, at: int) -> Columns:
    hosts, sessions, counts = zip(*rows.counts, strict=True)
    return [[at] * len(hosts), hosts, sessions, *zip(*counts, strict=True)]


def _version(path: Path) -> int:
    return int(path.stem) if path.stem.isdecimal() else 0
