"""Whole numbers of several attributes side by side in one column, for the transfer from Spark to Python.

What a value costs there does not depend on how long it is. Attributes of few bits share a column of 63, which
Spark fills and NumPy takes apart again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from flowsieve.content.event import EventBatch
from flowsieve.content.schema import Schema
from flowsieve.errors import BadValue
from flowsieve.pipeline.runtime.batches import column_values

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROOM = 63  # the sign is left alone
WHOLE = ("tinyint", "smallint", "int", "bigint")


class Field(NamedTuple):
    """An attribute in a column: so many bits, after a shift, above its least value."""

    name: str
    least: int
    bits: int
    shift: int

    def unpacked(self, cells: NDArray[np.int64]) -> NDArray[np.float64]:
        found: NDArray[np.float64] = ((cells >> self.shift) & ((1 << self.bits) - 1)).astype(np.float64)
        found += self.least
        return found


@dataclass(frozen=True)
class Packing:
    """Which attributes share a column; the others have one each."""

    schema: Schema
    columns: tuple[tuple[Field, ...], ...]

    @classmethod
    def of(cls, schema: Schema, types: dict[str, str]) -> Packing:
        """Pack what columns of these types (Spark's names for them) allow, in the schema's order."""
        columns: list[list[Field]] = []
        for attribute in schema:
            if attribute.kind != "int" or types.get(attribute.name) not in WHOLE:
                continue
            bits = max(1, (int(attribute.max) - int(attribute.min)).bit_length())
            if bits > ROOM // 2:
                continue
            used = columns[-1][-1].shift + columns[-1][-1].bits if columns else ROOM
            if used + bits > ROOM:
                columns.append([])
                used = 0
            columns[-1].append(Field(attribute.name, int(attribute.min), bits, used))
        return cls(schema, tuple(tuple(fields) for fields in columns if len(fields) > 1))

    @property
    def _packed(self) -> set[str]:
        return {field.name for fields in self.columns for field in fields}

    def packed(self, events: DataFrame) -> DataFrame:
        """The attributes of some events; null where a value is missing or beyond the bits that it has."""
        return events.selectExpr(
            *(f"`{name}`" for name in self.schema.names if name not in self._packed),
            *(f"{_text(fields)} as `{_name(i)}`" for i, fields in enumerate(self.columns)),
        )

    def event_batch(self, batch: pa.RecordBatch) -> EventBatch:
        """The events of a packed batch; one outside the schema raises BadValue."""
        columns: dict[str, NDArray[Any]] = {}
        for i, fields in enumerate(self.columns):
            cells = batch.column(_name(i))
            if cells.null_count:
                names = ", ".join(field.name for field in fields)
                raise BadValue(
                    f"{cells.null_count} events have no value for one of {names}, or one beyond its range; "
                    "reading events by the schema sets such rows aside"
                )
            numbers = cells.to_numpy()
            columns |= {field.name: field.unpacked(numbers) for field in fields}
        for attribute in self.schema:
            if attribute.name not in columns:
                columns[attribute.name] = column_values(attribute, batch.column(attribute.name))
        empty = np.full(batch.num_rows, "", dtype=object)
        return EventBatch(self.schema, empty, empty, {name: columns[name] for name in self.schema.names})


def _name(number: int) -> str:
    return f"packed {number}"  # no attribute is called so: their names have no spaces


def _text(fields: tuple[Field, ...]) -> str:
    """A column of them in SQL."""
    above = [f"(cast(`{field.name}` as bigint) - {field.least}L)" for field in fields]
    beyond = " | ".join(
        f"shiftright({text}, {field.bits})" for text, field in zip(above, fields, strict=True)
    )
    value = " | ".join(f"shiftleft({text}, {field.shift})" for text, field in zip(above, fields, strict=True))
    return f"case when ({beyond}) = 0L then {value} end"
