"""A landing folder filled as a controller fills it, for trials, tests and benchmarks."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from flowsieve.content.schema import Schema
from flowsieve.index.plan import IndexPlan, plan_to_json

TIME = pa.timestamp("us", "UTC")
TYPES = {
    "int": pa.int64(),
    "float": pa.float64(),
    "enum": pa.string(),
    "bool": pa.bool_(),
    "string": pa.string(),
}


def now() -> int:
    return time.time_ns() // 1000


class Lander:
    """Lands files in a folder, each under a dot-name first."""

    def __init__(self, folder: Path, schema: Schema) -> None:
        self.folder, self.schema = folder, schema
        for name in ("events", "deliveries", "counts", "subscriptions", "index"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        self._number = 0

    def index(self, version: int, plan: IndexPlan) -> None:
        told = {
            "version": version,
            "tag": "ff0e:f10e::/16",
            "at": now(),
            "schema": plan.schema.to_json(),
            "plan": plan_to_json(plan),
        }
        self._land(self.folder / "index" / f"{version}.json", json.dumps(told).encode())

    def subscriptions(self, version: int, filters: Mapping[str, str]) -> None:
        table = pa.table(
            {
                "at": pa.array([now()] * len(filters), TIME),
                "version": pa.array([version] * len(filters), pa.int64()),
                "id": pa.array(list(filters), pa.string()),
                "host": pa.array([f"h{i % 4}" for i in range(len(filters))], pa.string()),
                "filter": pa.array(list(filters.values()), pa.string()),
            }
        )
        self.table("subscriptions", table)

    def events(
        self,
        columns: Mapping[str, Sequence[Any]],
        at: Sequence[int] | None = None,
        weight: float = 1.0,
        waited: int = 1000,
        prefix: str = "e",
    ) -> Path:
        many = len(next(iter(columns.values())))
        times = np.full(many, now()) if at is None else np.array(at)
        cells = {
            "id": pa.array([f"{prefix}{self._number}-{i}" for i in range(many)], pa.string()),
            "at": pa.array(times, pa.int64()).cast(TIME),
            "sent_at": pa.array(times - waited, pa.int64()).cast(TIME),
            "host": pa.array(["h0"] * many, pa.string()),
            "weight": pa.array([weight] * many, pa.float64()),
        }
        given = {each.name: pa.array(columns[each.name], TYPES[each.kind]) for each in self.schema}
        return self.table("events", pa.table(cells | given))

    def deliveries(self, wanted: Sequence[bool], at: int | None = None, weight: float = 1.0) -> Path:
        many = len(wanted)
        cells = {
            "id": pa.array([f"d{i}" for i in range(many)], pa.string()),
            "at": pa.array([at or now()] * many, pa.int64()).cast(TIME),
            "host": pa.array(["h1"] * many, pa.string()),
            "wanted": pa.array(list(wanted), pa.bool_()),
            "weight": pa.array([weight] * many, pa.float64()),
        }
        return self.table("deliveries", pa.table(cells))

    def counts(self, at: int | None = None, **counts: int) -> Path:
        named = {name: counts.get(name, 0) for name in ("published", "received", "delivered", "unwanted")}
        cells = {
            "at": pa.array([at or now()], pa.int64()).cast(TIME),
            "host": pa.array(["h1"], pa.string()),
            "session": pa.array(["a" * 32], pa.string()),
            **{name: pa.array([count], pa.int64()) for name, count in named.items()},
        }
        return self.table("counts", pa.table(cells))

    def table(self, kind: str, table: pa.Table) -> Path:
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink)
        return self.file(kind, sink.getvalue().to_pybytes())

    def file(self, kind: str, content: bytes) -> Path:
        self._number += 1
        path = self.folder / kind / f"{self._number:08d}.parquet"
        self._land(path, content)
        return path

    def _land(self, path: Path, content: bytes) -> None:
        new = path.with_name(f".{path.name}")
        new.write_bytes(content)
        new.replace(path)
