"""Columns of landed files, made of plain lists.

`pyarrow.array` would do the same and import pandas for it, a second and 40 MB that a controller has no other use for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from flowsieve.content.schema import Schema

TIME = pa.timestamp("us", tz="UTC")
KINDS = {
    "int": pa.int64(),
    "float": pa.float64(),
    "enum": pa.string(),
    "string": pa.string(),
    "bool": pa.bool_(),
}
COUNTED = ("published", "received", "delivered", "unwanted")
DELIVERY_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("at", TIME),
        ("host", pa.string()),
        ("wanted", pa.bool_()),
        ("weight", pa.float64()),
    ]
)
COUNTS_SCHEMA = pa.schema(
    [("at", TIME), ("host", pa.string()), ("session", pa.string()), *((name, pa.int64()) for name in COUNTED)]
)
SUBSCRIPTION_SCHEMA = pa.schema(
    [("at", TIME), ("version", pa.int64()), *((name, pa.string()) for name in ("id", "host", "filter"))]
)


def event_schema(schema: Schema) -> pa.Schema:
    """The columns of landed events: the attributes under their own names, behind those that all events have."""
    own = [
        ("id", pa.string()),
        ("at", TIME),
        ("sent_at", TIME),
        ("host", pa.string()),
        ("weight", pa.float64()),
    ]
    return pa.schema([*own, *((each.name, KINDS[each.kind]) for each in schema)])


def table_of(columns: Sequence[Sequence[Any]], schema: pa.Schema) -> pa.Table:
    """A table of values that are all there; times are microseconds since 1970."""
    arrays = [_array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if kind == pa.string():
        encoded = [value.encode() for value in values]
        ends = np.zeros(len(encoded) + 1, np.int32)
        np.cumsum([len(each) for each in encoded], out=ends[1:])
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))]
    elif kind == pa.bool_():
        buffers = [None, pa.py_buffer(np.packbits(np.array(values, np.bool_), bitorder="little"))]
    else:
        buffers = [
            None,
            pa.py_buffer(np.array(values, np.float64 if kind == pa.float64() else np.int64)),
        ]
    return pa.Array.from_buffers(kind, len(values), buffers)
