"""Events from CSV and Parquet files, by columns; and one event from words such as `price=60`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from flowsieve.config import files as source
from flowsieve.content.event import EventBatch, read_event
from flowsieve.content.schema import LARGEST_INT, Schema, nearest_of, shown
from flowsieve.errors import BadCell, BadInput, BadScenario, BadValue
from flowsieve.network.topology import Topology

# The first line with something on it, and what is before it.
HEAD = re.compile(rb"(?:\xef\xbb\xbf)?[\r\n]*[^\r\n]*")


@dataclass(frozen=True, slots=True, eq=False)
class EventFile:
    """The events of a file, which can still tell where each of them stands in it."""

    path: Path
    data: bytes
    events: EventBatch

    @classmethod
    def read(cls, path: Path, schema: Schema, hosts: Topology | None) -> EventFile:
        """The events in a file; with a network, each of them from a host of it."""
        data = source.read_bytes(path)
        columns = ("id", *(() if hosts is None else ("host",)), *schema.names)
        frame = (
            _parquet_frame(path, data, columns)
            if _is_parquet(path)
            else _csv_frame(path, data, columns, schema)
        )
        try:
            events = EventBatch.from_frame(schema, frame, needs_host=hosts is not None)
        except BadCell as error:
            right = "" if error.column in schema else "; right is a name"
            message = f"column {error.column}: {error.message}{right}"
            raise BadScenario(message, place=_place(path, data, error.row)) from None
        except BadInput as error:
            raise error.at(str(path)) from None
        file = cls(path, data, events)
        if hosts is not None:
            file._check_hosts(hosts)
        return file

    def place(self, row: int) -> str:
        """Where an event stands; it takes reading the file again, so that only errors ask."""
        return _place(self.path, self.data, row)

    def _check_hosts(self, topology: Topology) -> None:
        numbers, names = pd.factorize(self.events.hosts)
        for number, host in enumerate(names):
            if host not in topology.hosts:
                row = int(np.argmax(numbers == number))
                try:
                    topology.endpoint(host)
                except BadInput as error:
                    raise error.at(self.place(row)) from None


def read_events(path: str | Path, schema: Schema, *, hosts: Topology | None = None) -> EventBatch:
    """The events in a file, each with an id of its own; with a network, each of them from a host of it."""
    file = EventFile.read(Path(path), schema, hosts)
    check_ids([file])
    return file.events


def check_ids(files: Sequence[EventFile]) -> None:
    """Reject an id that two events have, in one file or in two."""
    ids = np.concatenate([file.events.ids for file in files] or [np.empty(0, dtype=object)])
    again = np.flatnonzero(pd.Series(ids).duplicated().to_numpy())
    if not len(again):
        return
    id = ids[again[0]]
    ends = np.cumsum([len(file.events) for file in files])
    first, second = (_stands(files, ends, int(at)) for at in (np.argmax(ids == id), again[0]))
    raise BadScenario(
        f"event {shown(id)} is there already, at {first}; right is an id of its own", place=second
    )


def parse_assignments(words: Iterable[str], schema: Schema) -> dict[str, object]:
    """An event from words such as `price=60`, one for each attribute."""
    cells: dict[str, str] = {}
    for word in words:
        name, equals, cell = word.partition("=")
        if not equals:
            raise BadValue(f"{shown(word)} is no ATTRIBUTE=VALUE; right is such as {schema.names[0]}=…")
        if name not in schema:
            right = nearest_of(name, schema.names) or f"; there are {', '.join(schema.names)}"
            raise BadValue(f"in {shown(word)}: there is no attribute {shown(name)}{right}")
        if name in cells:
            raise BadValue(
                f"{name} is given twice, as {shown(cells[name])} and as {shown(cell)}; right is once"
            )
        cells[name] = cell
    return read_event(schema, cells)


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() == ".parquet"


def _place(path: Path, data: bytes, row: int) -> str:
    if _is_parquet(path):
        return f"{path} row {row + 1}"
    rows = source.csv_rows(source.decode(data, path), path)
    return source.place(path, next(islice(rows, row + 1, None)).line)


def _stands(files: Sequence[EventFile], ends: Any, at: int) -> str:
    """Where the event stands that is the one `at` of all in the files."""
    number = int(np.searchsorted(ends, at, side="right"))
    return files[number].place(at - int(ends[number]) + len(files[number].events))


def _parquet_frame(path: Path, data: bytes, columns: Sequence[str]) -> pd.DataFrame:
    try:
        file = pq.ParquetFile(pa.BufferReader(data))
        source.check_columns(file.schema_arrow.names, columns, str(path))
        return file.read(columns=list(columns)).to_pandas(ignore_metadata=True)
    except (pa.ArrowException, OSError, ValueError, TypeError, NotImplementedError) as error:
        wrong = f"is not Parquet that can be read: {shown(str(error), 200)}"
        raise BadScenario(f"{wrong}; right are the columns {', '.join(columns)}", place=str(path)) from None


def _csv_frame(path: Path, data: bytes, columns: Sequence[str], schema: Schema) -> pd.DataFrame:
    quoted = b'"' in data
    if quoted or b"\0" in data:
        _check_csv(path, data, columns)  # Arrow would take a quote that is never closed, and a NUL
    else:
        head = HEAD.match(data)
        assert head is not None
        source.csv_header(source.csv_rows(source.decode(head[0], path), path), path, columns)
    try:
        table = pacsv.read_csv(
            pa.BufferReader(data if data.endswith(b"\n") else data + b"\n"),
            parse_options=pacsv.ParseOptions(newlines_in_values=quoted),
            convert_options=pacsv.ConvertOptions(
                include_columns=list(columns), column_types=dict.fromkeys(columns, pa.string())
            ),
        )
    except pa.ArrowException as error:
        _check_csv(path, data, columns)
        raise BadScenario(f"is not CSV that can be read: {shown(str(error), 200)}", place=str(path)) from None
    numeric = {attribute.name for attribute in schema if attribute.kind in ("int", "float")}
    return pd.DataFrame({name: _cells(table[name], name in numeric) for name in columns}, copy=False)


def _check_csv(path: Path, data: bytes, columns: Sequence[str]) -> None:
    """Read a file row by row, to find what is wrong with it."""
    rows = source.csv_rows(source.decode(data, path), path)
    header = source.csv_header(rows, path, columns)
    for line, fields in rows:
        if len(fields) != len(header):
            raise BadScenario(source.wrong_width(fields, header), place=source.place(path, line))


def _cells(column: Any, numeric: bool) -> Any:
    """A column of text for `EventBatch.from_frame`, as numbers already where it is plain that they are."""
    if numeric:
        try:
            numbers = pc.cast(pc.if_else(pc.equal(column, ""), None, column), pa.float64()).to_pandas()
        except pa.ArrowInvalid:
            return column.to_pandas()
        if not (numbers.abs() == LARGEST_INT).any():  # such a one may have been rounded to it
            return numbers
    return column.to_pandas()
