"""The folder where a controller lands telemetry: the running index and the subscriptions, as the driver reads them.

Events, deliveries and counts are for executors. The highest version counts; a file that cannot be read is passed over,
and what was known before stays.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.errors import BadInput
from flowsieve.index.plan import IndexPlan, plan_from_json
from flowsieve.pipeline.reading.subscriptions import Subscriptions
from flowsieve.pipeline.stream.landed_files import KINDS

INDEX, SUBSCRIPTIONS = "index", "subscriptions"
MOST = 1_000_000  # subscriptions
NUMBER = re.compile(r"(\d+)\D*$")


@dataclass(frozen=True, eq=False)
class RunningIndex:
    """What publishers address events by now."""

    version: int
    schema: Schema
    plan: IndexPlan


@dataclass(frozen=True, eq=False)
class HeldSubscriptions:
    """The subscriptions that a controller held at a version, and how many of them could not be read."""

    version: int
    wanted: Subscriptions
    aside: int = 0

    @cached_property
    def texts(self) -> tuple[str, ...]:
        return tuple(wanted.text for wanted in self.wanted.filters)


class LandingFolder:
    """One landing folder; it remembers what it has read, and why it has not read what it could not."""

    def __init__(self, folder: str) -> None:
        self.folder = folder.rstrip("/")
        if "://" in folder:
            self._system, self._root = fs.FileSystem.from_uri(self.folder)
        else:
            self._system, self._root = fs.LocalFileSystem(), self.folder
        self.troubles: dict[str, str] = {}
        self._index: RunningIndex | None = None
        self._versions: dict[str, int] = {}  # of files of subscriptions
        self._held: tuple[str, str, HeldSubscriptions] | None = (
            None  # the file, and the schema it was read by
        )
        self._filters: dict[str, Filter | None] = {}
        self._filters_of = ""

    @property
    def glob(self) -> str:
        """The files that stream, as Spark names them."""
        return f"{self.folder}/{{{','.join(KINDS)}}}/*.parquet"

    def is_there(self) -> bool:
        return bool(self._system.get_file_info(self._root).type is fs.FileType.Directory)

    def present(self, paths: list[str]) -> list[str]:
        """Those of some files that are still there."""
        named = [_own_path(path) for path in paths]
        found = self._system.get_file_info(named)
        return [path for path, info in zip(paths, found, strict=True) if info.type is fs.FileType.File]

    def index(self) -> RunningIndex | None:
        """The running index; None as long as there is none that can be read."""
        named = {path: _number(path) for path in self._files(INDEX, ".json")}
        for path, version in sorted(named.items(), key=lambda item: item[1], reverse=True):
            if self._index is not None and version <= self._index.version:
                break
            try:
                self._index = _read_index(self._bytes(path))
                self.troubles.pop(INDEX, None)
                break
            except (BadInput, ValueError, KeyError, TypeError, OSError) as error:
                self.troubles[INDEX] = f"{path}: {_line(error)}"
        return self._index

    def subscriptions(self, schema: Schema) -> HeldSubscriptions:
        """All subscriptions that are held; none as long as no file says otherwise."""
        files = self._files(SUBSCRIPTIONS, ".parquet")
        self._versions = {path: self._versions.get(path, -1) for path in files}
        for path in files:
            if self._versions[path] < 0:
                self._versions[path] = self._version(path)
        for path in sorted(files, key=lambda path: (self._versions[path], path), reverse=True):
            if self._held is not None and self._held[:2] == (path, schema.digest):
                return self._held[2]
            try:
                self._held = path, schema.digest, self._read(path, schema)
                self.troubles.pop(SUBSCRIPTIONS, None)
                return self._held[2]
            except (BadInput, pa.ArrowException, OSError, ValueError, KeyError) as error:
                self.troubles[SUBSCRIPTIONS] = f"{path}: {_line(error)}"
        if self._held is not None and self._held[1] == schema.digest:
            return self._held[2]
        return HeldSubscriptions(0, Subscriptions(schema, (), ()))

    def _files(self, folder: str, ending: str) -> list[str]:
        selector = fs.FileSelector(f"{self._root}/{folder}", allow_not_found=True)
        names = [info for info in self._system.get_file_info(selector) if info.type is fs.FileType.File]
        return [
            info.path for info in names if info.path.endswith(ending) and not info.base_name.startswith(".")
        ]

    def _bytes(self, path: str) -> bytes:
        with self._system.open_input_stream(path) as file:
            return bytes(file.read())

    def _version(self, path: str) -> int:
        """The version that a file of subscriptions says; one without rows says it by its name."""
        try:
            with self._system.open_input_file(path) as file:
                versions = pq.ParquetFile(file).read(columns=["version"]).column("version")
                return int(versions[0].as_py()) if len(versions) else _number(path)
        except (pa.ArrowException, OSError, ValueError, TypeError, KeyError):
            return _number(path)

    def _read(self, path: str, schema: Schema) -> HeldSubscriptions:
        with self._system.open_input_file(path) as file:
            table = pq.ParquetFile(file).read(columns=["version", "id", "host", "filter"])
        if table.num_rows > MOST:
            raise BadInput(f"has {table.num_rows:,} subscriptions; right are {MOST:,} at most")
        if self._filters_of != schema.digest:
            self._filters, self._filters_of = {}, schema.digest
        rows = {}
        for id, host, text in zip(
            *(table.column(name).to_pylist() for name in ("id", "host", "filter")), strict=True
        ):
            if id and isinstance(text, str) and (filter := self._parsed(text, schema)) is not None:
                rows[str(id)] = (filter, str(host))
        self._filters = {filter.text: filter for filter, _ in rows.values()}
        wanted = Subscriptions(
            schema,
            tuple(rows),
            tuple(filter for filter, _ in rows.values()),
            tuple(host for _, host in rows.values()),
        )
        return HeldSubscriptions(self._versions[path], wanted, table.num_rows - len(rows))

    def _parsed(self, text: str, schema: Schema) -> Filter | None:
        """A filter; None if it cannot be read, or nothing can match it."""
        if text not in self._filters:
            try:
                self._filters[text] = Filter.parse(text, schema)
            except BadInput:
                self._filters[text] = None
        return self._filters[text]


def _read_index(content: bytes) -> RunningIndex:
    data: Any = json.loads(content)
    schema = Schema.parse(data["schema"])
    return RunningIndex(int(data["version"]), schema, plan_from_json(data["plan"], schema))


def _number(path: str) -> int:
    """The number that a file is called by; 0 if it has none."""
    found = NUMBER.search(path.rsplit("/", 1)[-1].partition(".")[0])
    return int(found[1]) if found else 0


def _own_path(path: str) -> str:
    """A path as its file system has it: Spark's own begin with the kind of file system."""
    if path.startswith("file:"):
        return "/" + path.removeprefix("file:").lstrip("/")
    return path.partition("://")[2] or path


def _line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:300]
