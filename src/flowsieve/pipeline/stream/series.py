"""What the job found, as files: a row for each micro-batch, JSON lines and Parquet, and a table of subscriptions.

A batch that is seen again takes the place of its row.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

LINES, PARTS, SUBSCRIPTIONS, PLANS, ASIDE = (
    "series.jsonl",
    "series",
    "subscriptions.parquet",
    "plans",
    "aside.jsonl",
)
PART = 256  # batches of one Parquet file
MOST_PLANS = 50
MOST_ASIDE = 10_000  # lines
COLUMNS = pa.schema(
    [
        ("batch", pa.int64()),
        ("time", pa.timestamp("us", "UTC")),
        ("plan", pa.int64()),
        ("events", pa.int64()),
        ("events_per_s", pa.float64()),
        ("fpr", pa.float64()),
        ("fpr_measured", pa.float64()),
        ("fpr_computed", pa.float64()),
        ("drift", pa.map_(pa.string(), pa.float64())),
        ("subscriptions", pa.int64()),
        ("aside", pa.int64()),
        ("lag_s", pa.float64()),
        ("offer", pa.string()),
    ]
)


class Series:
    """The files of one job."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / PARTS).mkdir(parents=True, exist_ok=True)
        (folder / PLANS).mkdir(exist_ok=True)
        self._rows: list[dict[str, Any]] = []  # of the part that is not full
        self._last: int | None = None

    def add(self, row: Mapping[str, Any]) -> None:
        """Add the row of a batch; the first time, rows of it and of later ones that were left behind go."""
        batch = int(row["batch"])
        if self._last is None or batch <= self._last:
            self._resume(batch)
        with (self._folder / LINES).open("a") as file:
            file.write(json.dumps(row) + "\n")
        if batch // PART != (self._last or 0) // PART:
            self._rows = []
        self._rows.append(_columns(row))
        self._last = batch
        _write(self._part(batch), pa.Table.from_pylist(self._rows, COLUMNS))

    def write_subscriptions(self, rows: Sequence[Mapping[str, Any]]) -> None:
        names = ("id", "matches", "deliveries", "fpr")
        types = (pa.string(), pa.int64(), pa.int64(), pa.float64())
        columns = [
            pa.array([row[name] for row in rows], type) for name, type in zip(names, types, strict=True)
        ]
        _write(self._folder / SUBSCRIPTIONS, pa.table(columns, names=list(names)))

    def set_aside(self, batch: int, files: Sequence[Mapping[str, Any]]) -> None:
        """Name files that had rows set aside, with the first reasons; the oldest are forgotten."""
        path = self._folder / ASIDE
        lines = path.read_text().splitlines() if path.exists() else []
        if len(lines) > MOST_ASIDE or any(_batch(line) >= batch for line in lines[-1:]):
            kept = [line for line in lines if _batch(line) < batch]
            path.write_text("".join(f"{line}\n" for line in kept[-MOST_ASIDE // 2 :]))
        with path.open("a") as file:
            file.writelines(json.dumps({"batch": batch, **each}) + "\n" for each in files)

    def write_plan(self, batch: int, body: Mapping[str, Any]) -> Path:
        """Keep a plan, with how it was judged."""
        path = self._folder / PLANS / f"{batch:012d}.json"
        new = path.with_name(f".{path.name}")
        new.write_text(json.dumps(body) + "\n")
        new.replace(path)
        for old in sorted((self._folder / PLANS).glob("[0-9]*.json"))[:-MOST_PLANS]:
            old.unlink(missing_ok=True)
        return path

    def _part(self, batch: int) -> Path:
        return self._folder / PARTS / f"{batch // PART * PART:012d}.parquet"

    def _resume(self, batch: int) -> None:
        path = self._folder / LINES
        rows = []
        if path.exists():
            # A last line without its end was being written when the job was killed.
            lines = path.read_text().splitlines(keepends=True)
            kept = [line for line in lines if line.endswith("\n") and _batch(line) < batch]
            if kept != lines:
                path.write_text("".join(kept))
            rows = [json.loads(line) for line in kept[-PART:]]
        self._rows = [_columns(row) for row in rows if row["batch"] // PART == batch // PART]
        self._last = rows[-1]["batch"] if rows else None
        for old in (self._folder / PARTS).glob("[0-9]*.parquet"):
            if int(old.stem) > batch:
                old.unlink()


def _batch(line: str) -> int:
    return int(json.loads(line)["batch"])


def _columns(row: Mapping[str, Any]) -> dict[str, Any]:
    drift = {name: figures["drift"] for name, figures in row["dimensions"].items()}
    flat = {
        "time": row["micros"],
        "drift": [*drift.items()],
        "aside": sum(row["aside"].values()),
        "subscriptions": row["subscriptions"],
        "offer": row["offer"],
    }
    return {name: flat.get(name, row.get(name)) for name in COLUMNS.names}


def _write(path: Path, table: pa.Table) -> None:
    new = path.with_name(f".{path.name}")
    pq.write_table(table, new)
    new.replace(path)
