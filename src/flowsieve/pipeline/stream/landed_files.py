"""What one landed file holds: rows that count, and rows that are set aside with the reason.

A file is read from its bytes, and whatever is wrong with it is said, never raised: one that is cut off or of another
shape is set aside whole, and the files beside it count all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from flowsieve.content.event import EventBatch
from flowsieve.content.schema import Attribute, Schema, listed
from flowsieve.errors import BadInput
from flowsieve.pipeline.runtime.batches import column_values

EVENTS, DELIVERIES, COUNTS = "events", "deliveries", "counts"
KINDS = (EVENTS, DELIVERIES, COUNTS)
BROKEN, MISSING, OUTSIDE, LATE = "broken", "missing", "outside", "late"
ASIDE = (BROKEN, MISSING, OUTSIDE, LATE)
COUNTED = ("published", "received", "delivered", "unwanted")
COLUMNS = {  # beside the attributes of events
    EVENTS: ("id", "at", "sent_at", "host", "weight"),
    DELIVERIES: ("id", "at", "host", "wanted", "weight"),
    COUNTS: ("at", "host", "session", *COUNTED),
}
MOST_ROWS = 5_000_000  # of one file
SHOWN = 3  # reasons that are told of a file
AHEAD = 3_600_000_000  # microseconds by which the clock of whoever lands files may be before ours


@dataclass(frozen=True)
class TimeLimits:
    """Which times count, in microseconds since 1970: nothing before `since`, nothing far beyond `now`.

    An event that was sent more than `late` before it landed tells of traffic that is over.
    """

    since: int
    now: int
    late: int


@dataclass(frozen=True)
class FileAccount:
    """What became of a file's rows; `first` and `last` are the times of those that count."""

    path: str
    kind: str
    rows: int = 0
    broken: int = 0
    missing: int = 0
    outside: int = 0
    late: int = 0
    first: int | None = None
    last: int | None = None
    unreadable: bool = False  # the file as such
    reasons: tuple[str, ...] = ()

    @property
    def good(self) -> int:
        return self.rows - self.broken - self.missing - self.outside - self.late


class LandedRows(NamedTuple):
    """The rows of a file that count, as columns, with their times; of events, as the core has them too."""

    account: FileAccount
    table: pa.Table
    at: NDArray[np.int64]
    events: EventBatch | None = None


def read_landed(path: str, content: Any, schema: Schema, limits: TimeLimits) -> LandedRows:
    """Read a file by its bytes; its folder tells of what kind it is."""
    kind = path.rstrip("/").split("/")[-2]
    columns = (*COLUMNS[kind], *(schema.names if kind == EVENTS else ()))
    rows = 0
    try:
        file = pq.ParquetFile(pa.BufferReader(content))
        rows = file.metadata.num_rows
        _check_shape(file, columns, rows)
        table = file.read(columns=list(columns)).combine_chunks()
        return _judged(path, kind, table, schema, limits)
    except (BadInput, pa.ArrowException, OSError, ValueError, OverflowError) as error:
        why = (str(error).strip() or type(error).__name__).splitlines()[0][:300]
        account = FileAccount(path, kind, rows, broken=rows, unreadable=True, reasons=(why,))
        return LandedRows(account, pa.table({}), np.empty(0, np.int64))


def _check_shape(file: pq.ParquetFile, columns: Sequence[str], rows: int) -> None:
    names = file.schema_arrow.names
    lacking = [name for name in columns if names.count(name) != 1]
    if lacking:
        raise BadInput(f"has no column {lacking[0]!r}, or several; it has {listed(names)}")
    if rows > MOST_ROWS:
        raise BadInput(f"has {rows:,} rows; right are {MOST_ROWS:,} at most")


def _judged(path: str, kind: str, table: pa.Table, schema: Schema, limits: TimeLimits) -> LandedRows:
    at = _micros(table, "at")
    broken = np.zeros(len(at), np.bool_)
    says: list[tuple[NDArray[np.bool_], Callable[[int], str]]] = []

    def found(bad: NDArray[np.bool_], why: str) -> None:
        broken[bad] = True
        says.append((bad, lambda row: why))

    for name in ("id", "host", "session"):
        if name in table.column_names:
            if not _is_text(table.column(name).type):
                raise BadInput(f"column {name} holds {table.column(name).type}; right is a text")
            found(_null(table.column(name)), f"{name} is missing")
    found(_null(table.column("at")), "at is missing")
    found(at > limits.now + AHEAD, "at is in the future")
    if "weight" in table.column_names:
        weight = _numbers(table, "weight")
        found(~((weight > 0) & np.isfinite(weight)), "weight is not a number above 0")
    if kind == DELIVERIES:
        if not pa.types.is_boolean(table.column("wanted").type):
            raise BadInput(f"column wanted holds {table.column('wanted').type}; right is bool")
        found(_null(table.column("wanted")), "wanted is missing")
    if kind == COUNTS:
        for name in COUNTED:
            found(~(_numbers(table, name) >= 0), f"{name} is not a number from 0 on")
    late = ~broken & (at < limits.since)
    says.append((late, lambda row: "landed in a window that is over"))
    missing, outside = np.zeros(len(at), np.bool_), np.zeros(len(at), np.bool_)
    events = None
    if kind == EVENTS:
        sent = _micros(table, "sent_at")
        waited = ~broken & ~late & (at - sent > limits.late) & ~_null(table.column("sent_at"))
        says.append((waited, lambda row: f"was sent {(at[row] - sent[row]) / 1e6:.0f} s before it landed"))
        late = late | waited
        events = _events(table, schema)
        faulty, reason = events.faults()
        absent = np.zeros(len(at), np.bool_)
        for attribute in schema:
            absent |= _absent(table.column(attribute.name))
        missing, outside = absent & ~broken, faulty & ~absent & ~broken
        late = late & ~(missing | outside)
        says += [(missing, reason), (outside, reason)]
    good = ~(broken | missing | outside | late)
    reasons = [f"row {row + 1}: {say(int(row))}" for bad, say in says for row in np.flatnonzero(bad)[:SHOWN]]
    counts: dict[str, Any] = {
        name: int(bad.sum()) for name, bad in zip(ASIDE, (broken, missing, outside, late), strict=True)
    }
    kept = at[good]
    ends = (int(kept.min()), int(kept.max())) if len(kept) else (None, None)
    account = FileAccount(
        path, kind, len(at), **counts, first=ends[0], last=ends[1], reasons=tuple(reasons[:SHOWN])
    )
    return LandedRows(
        account, table.filter(pa.array(good)), kept, None if events is None else events.take(good)
    )


def _events(table: pa.Table, schema: Schema) -> EventBatch:
    columns, words = {}, {}
    for attribute in schema:
        cells = _cells(attribute, table.column(attribute.name))
        columns[attribute.name] = column_values(attribute, cells)
        if attribute.kind == "enum" and np.isnan(columns[attribute.name]).any():
            words[attribute.name] = cells.to_numpy(zero_copy_only=False)
    empty = np.full(table.num_rows, "", dtype=object)
    return EventBatch(schema, empty, empty, columns, words)


def _cells(attribute: Attribute, column: pa.ChunkedArray) -> pa.Array:
    """A column as one array, of a type that holds such an attribute."""
    type = column.type
    cells = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if attribute.kind in ("enum", "string"):
        fits = _is_text(type)
        cells = pc.cast(cells, pa.string()) if fits else cells
    elif attribute.kind == "bool":
        fits = pa.types.is_boolean(type)
    else:
        fits = pa.types.is_integer(type) or pa.types.is_floating(type)
        cells = pc.cast(cells, pa.float64(), safe=False) if fits else cells
    if not fits:
        raise BadInput(f"column {attribute.name} holds {type}; {attribute.name} is {attribute.range_text}")
    return cells


def _is_text(type: pa.DataType) -> bool:
    if pa.types.is_dictionary(type):
        type = type.value_type
    return bool(pa.types.is_string(type) or pa.types.is_large_string(type))


def _micros(table: pa.Table, name: str) -> NDArray[np.int64]:
    """Times in microseconds since 1970; 0 where there is none."""
    column = table.column(name)
    if not pa.types.is_timestamp(column.type):
        raise BadInput(f"column {name} holds {column.type}; right is a time")
    micros = pc.cast(pc.cast(column, pa.timestamp("us", "UTC"), safe=False), pa.int64())
    found: NDArray[np.int64] = pc.fill_null(micros, 0).to_numpy()
    return found


def _numbers(table: pa.Table, name: str) -> NDArray[np.float64]:
    column = table.column(name)
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise BadInput(f"column {name} holds {column.type}; right are numbers")
    found: NDArray[np.float64] = pc.cast(column, pa.float64(), safe=False).to_numpy()
    return found


def _null(column: pa.ChunkedArray) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = pc.is_null(column).to_numpy()
    return found


def _absent(column: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Where there is no value: null, or NaN."""
    found: NDArray[np.bool_] = pc.is_null(column, nan_is_null=True).to_numpy()
    return found
