"""Events: points of the content space, one by one as mappings, or many at once as columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flowsieve.content.schema import Attribute, Schema, is_unicode, listed, nearest_of, shown
from flowsieve.errors import BadCell, BadValue

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, eq=False)
class EventBatch:
    """Many events as columns.

    A column of numbers is float64 on the attribute's number line, which holds every int exactly: NaN where
    there is no value or an unknown word, infinities kept. A column of strings has None where there is no
    value. `words` keeps the cells of those enum and bool columns in which some word is unknown, to name it.
    """

    schema: Schema
    ids: NDArray[np.object_]
    hosts: NDArray[np.object_]
    columns: dict[str, NDArray[Any]]
    words: dict[str, NDArray[np.object_]] = field(default_factory=dict)

    @classmethod
    def from_frame(cls, schema: Schema, frame: pd.DataFrame, *, needs_host: bool = True) -> EventBatch:
        """Events from a table with columns `id`, `host` and one per attribute; others are passed over.

        The columns may be text (`read_csv(dtype=str, keep_default_na=False)`) or native values of any sort.
        Without `needs_host` the table may lack `host`; the events then come from nowhere (""). A cell that
        cannot be read at all raises BadCell.
        """
        ids = _names(frame, "id")
        hosts = (
            _names(frame, "host") if needs_host or "host" in frame else np.full(len(ids), "", dtype=object)
        )
        return cls(schema, ids, hosts, *_read(schema, frame))

    @classmethod
    def from_events(
        cls,
        schema: Schema,
        host: str,
        events: Sequence[Mapping[str, object]],
        ids: Sequence[str] | None = None,
    ) -> EventBatch:
        """Events of one host, given as mappings; their ids count from 0 unless given."""
        for row, event in enumerate(events):
            for name in event:
                if name not in schema:
                    hint = nearest_of(str(name), schema.names)
                    raise BadCell(f"there is no attribute {shown(name)}{hint}", row=row, column=str(name))
        if ids is not None and len(ids) != len(events):
            raise BadValue(f"there are {len(events)} events and {len(ids)} ids")
        import pandas as pd  # it takes a while to be imported, and a controller has no use for it

        cells = {
            name: pd.Series([event.get(name) for event in events], dtype=object) for name in schema.names
        }
        named = np.array([str(i) for i in (range(len(events)) if ids is None else ids)], dtype=object)
        return cls(
            schema, named, np.full(len(events), host, dtype=object), *_read(schema, pd.DataFrame(cells))
        )

    @classmethod
    def joined(cls, batches: Sequence[EventBatch]) -> EventBatch:
        """Batches of one schema, one after the other; what their unknown words were is not kept."""
        first = batches[0]
        columns = {name: np.concatenate([batch.columns[name] for batch in batches]) for name in first.columns}
        ids, hosts = (
            np.concatenate([getattr(batch, name) for batch in batches]) for name in ("ids", "hosts")
        )
        return cls(first.schema, ids, hosts, columns)

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, rows: ArrayLike) -> EventBatch:
        """The events at some rows, given as indices or as a mask."""
        rows = np.asarray(rows)
        if rows.dtype != np.bool_:
            rows = rows.astype(np.intp)  # also an empty list, which NumPy takes for floats
        return EventBatch(
            self.schema,
            self.ids[rows],
            self.hosts[rows],
            {name: values[rows] for name, values in self.columns.items()},
            {name: cells[rows] for name, cells in self.words.items()},
        )

    def event(self, row: int) -> dict[str, object]:
        """One event without faults, as a mapping."""
        return {
            attribute.name: attribute.value(self.columns[attribute.name][row]) for attribute in self.schema
        }

    def faults(self) -> tuple[NDArray[np.bool_], Callable[[int], str]]:
        """Which events lie outside the content space, and a function that says of such a row why."""
        bad = np.zeros(len(self), dtype=np.bool_)
        for attribute in self.schema:
            bad |= _faulty(attribute, self.columns[attribute.name])
        return bad, self.reason

    def reason(self, row: int) -> str:
        """What is wrong with a faulty event: `price = 1200 is above 1023`."""
        for attribute in self.schema:
            values = self.columns[attribute.name][row : row + 1]
            if _faulty(attribute, values)[0]:
                return self._reason(attribute, row)
        raise ValueError(f"row {row} has no fault")

    def _reason(self, attribute: Attribute, row: int) -> str:
        name, value = attribute.name, self.columns[attribute.name][row]
        if attribute.kind == "string":
            return f"{name} is missing" if value is None else f"{name} = {shown(value)} is not valid Unicode"
        if attribute.kind in ("enum", "bool"):
            import pandas as pd

            word = self.words[name][row] if name in self.words else None
            if word is None or word is pd.NA or word != word:
                return f"{name} is missing"
            right = (
                f"is none of {listed(attribute.values)}" if attribute.values else "is neither true nor false"
            )
            return f"{name} = {shown(word)} {right}"
        if np.isnan(value):
            return f"{name} is missing or not a number"
        number = int(value) if value.is_integer() else float(value)
        if np.isinf(value):
            return f"{name} = {number} is not finite"
        if value > attribute.max:
            return f"{name} = {number} is above {attribute.max}"
        if value < attribute.min:
            return f"{name} = {number} is below {attribute.min}"
        return f"{name} = {number} is not a whole number"


def check_event(schema: Schema, event: Mapping[str, object]) -> dict[str, object]:
    """An event's values in the schema's order and types; whatever is wrong with it raises BadValue."""
    for name in event:
        if name not in schema:
            raise BadValue(f"there is no attribute {shown(name)}{nearest_of(str(name), schema.names)}")
    return {attribute.name: attribute.value(attribute.point_of(event)) for attribute in schema}


def read_event(schema: Schema, event: Mapping[str, str]) -> dict[str, object]:
    """`check_event` for values given as text, as in a file or on a command line."""
    for attribute in schema:
        if attribute.name not in event:
            raise BadValue(f"{attribute.name} is missing; it is {attribute.range_text}")
    try:
        batch = EventBatch.from_events(schema, "", [event])
    except BadCell as error:
        raise BadValue(error.message) from None
    (bad,), reason = batch.faults()
    if bad:
        raise BadValue(reason(0))
    return batch.event(0)


def _read(
    schema: Schema, frame: pd.DataFrame
) -> tuple[dict[str, NDArray[Any]], dict[str, NDArray[np.object_]]]:
    """A batch's columns and words."""
    from flowsieve.content import column

    columns: dict[str, NDArray[Any]] = {}
    words: dict[str, NDArray[np.object_]] = {}
    for attribute in schema:
        series = _series(frame, attribute.name)
        if attribute.kind == "string":
            columns[attribute.name] = column.strings(series)
        elif attribute.kind in ("enum", "bool"):
            columns[attribute.name], cells = column.places(attribute, series)
            if cells is not None:
                words[attribute.name] = cells
        else:
            columns[attribute.name] = column.numbers(attribute, series)
    return columns, words


def _series(frame: pd.DataFrame, name: str) -> pd.Series[Any]:
    if name not in frame:
        names = [str(known) for known in frame.columns]
        raise BadValue(f"there is no column {name!r}; there are {listed(names)}{nearest_of(name, names)}")
    series = frame[name]
    if series.ndim > 1:
        raise BadValue(f"column {name!r} stands twice")
    return series


def _names(frame: pd.DataFrame, name: str) -> NDArray[np.object_]:
    """The column that names events or hosts, in which no cell is empty."""
    import pandas as pd

    from flowsieve.content import column

    names = column.strings(_series(frame, name))
    empty = np.flatnonzero(np.asarray(pd.isna(names)) | (names == ""))
    if len(empty):
        raise BadCell(f"the {name} is missing", row=int(empty[0]), column=name)
    return names


def _faulty(attribute: Attribute, values: NDArray[Any]) -> NDArray[np.bool_]:
    if attribute.kind == "string":
        import pandas as pd

        bad = np.asarray(pd.isna(values))
        if not is_unicode("".join(values[~bad])):
            bad = bad | np.array([string is not None and not is_unicode(string) for string in values])
        return bad
    bad = ~((values >= attribute.min) & (values <= attribute.max))  # NaN too
    return bad | (values != np.floor(values)) if attribute.kind == "int" else bad
