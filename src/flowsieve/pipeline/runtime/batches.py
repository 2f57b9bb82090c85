"""Events as executors see them: Arrow batches with the columns that `IngestedEvents.events` has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from flowsieve.content.event import EventBatch
from flowsieve.content.schema import Attribute, Schema


def column_values(attribute: Attribute, cells: pa.Array) -> NDArray[Any]:
    """An attribute of many events as `EventBatch.columns` has it: points on its line, or the strings themselves."""
    if attribute.kind == "string":
        strings: NDArray[Any] = cells.to_numpy(zero_copy_only=False)
        return strings
    if attribute.kind == "enum":
        cells = pc.index_in(cells, value_set=pa.array(attribute.values, cells.type))
    numbers: NDArray[Any] = pc.cast(cells, pa.float64()).to_numpy(zero_copy_only=False)
    return numbers


def event_batch(schema: Schema, batch: pa.RecordBatch, ids: bool = False) -> EventBatch:
    """A batch as the core has it, for plans to encode; ids and hosts are left empty unless asked for."""
    empty = np.full(batch.num_rows, "", dtype=object)
    names = batch.schema.names
    id, host = (
        batch.column(name).to_numpy(zero_copy_only=False) if ids and name in names else empty
        for name in ("id", "host")
    )
    columns = {attribute.name: column_values(attribute, batch.column(attribute.name)) for attribute in schema}
    return EventBatch(schema, id, host, columns)


def string_places(strings: NDArray[Any], cuts: Sequence[str]) -> NDArray[np.float64]:
    """Between which cuts each string stands: how many of the sorted cuts are not after it."""
    coded = pa.array(strings, pa.string()).dictionary_encode()
    words = coded.dictionary.to_numpy(zero_copy_only=False)
    places = np.searchsorted(np.array(cuts, dtype=object), words, side="right").astype(np.float64)
    found: NDArray[np.float64] = places[coded.indices.to_numpy(zero_copy_only=False)]
    return found
