"""The boxes of many subscriptions as arrays, and events as points that compare with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import product

import numpy as np
from numpy.typing import NDArray

from flowsieve.content.box import Constraint, Interval
from flowsieve.content.cuts import cuts_of, segments
from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.pipeline.matching.locality import near_order
from flowsieve.pipeline.runtime.batches import string_places


@dataclass(frozen=True, eq=False)
class BoxTable:
    """Boxes: `low[b, d] <= point <= high[b, d]` along every dimension d of the schema.

    `owner[b]` is the number of the subscription that box b is of, and never decreases. A string's point is its place
    among `cuts[d]`, all strings at which some constraint begins or ends, so that what a filter says of strings is kept
    exactly; a constraint with gaps (`s != "a"`) makes several boxes.
    """

    schema: Schema
    subscriptions: int
    owner: NDArray[np.int64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    cuts: dict[int, tuple[str, ...]]

    @classmethod
    def of(cls, schema: Schema, filters: Sequence[Filter]) -> BoxTable:
        texts = [i for i, attribute in enumerate(schema) if attribute.kind == "string"]
        cuts = {i: _all_cuts(schema, filters, i) for i in texts}
        owner, low, high = [], [], []
        for number, filter in enumerate(filters):
            for box in filter.boxes:
                for part in product(
                    *(_ranges(schema, cuts, i, constraint) for i, constraint in enumerate(box))
                ):
                    owner.append(number)
                    low.append([first for first, _ in part])
                    high.append([last for _, last in part])
        shape = (len(owner), len(schema))
        return cls(
            schema,
            len(filters),
            np.array(owner, np.int64),
            np.array(low, np.float64).reshape(shape),
            np.array(high, np.float64).reshape(shape),
            cuts,
        )

    def __len__(self) -> int:
        return len(self.owner)

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """The subscriptions' numbers, in an order in which those with common events are near each other."""
        low = np.full((self.subscriptions, len(self.schema)), np.inf)
        high = -low
        np.minimum.at(low, self.owner, self.low)
        np.maximum.at(high, self.owner, self.high)
        return near_order(low, high)

    @cached_property
    def digest(self) -> bytes:
        """A name for these very boxes."""
        digest = blake2b(self.schema.digest.encode(), digest_size=16)
        for array in (self.owner, self.low, self.high):
            digest.update(np.ascontiguousarray(array).tobytes())
        digest.update(repr(self.cuts).encode())
        return digest.digest()

    def points(self, events: EventBatch) -> NDArray[np.float64]:
        """A row per dimension, a column per event."""
        out = np.empty((len(self.schema), len(events)))
        for i, attribute in enumerate(self.schema):
            column = events.columns[attribute.name]
            out[i] = string_places(column, self.cuts[i]) if i in self.cuts else column
        return out

    def matches(self, points: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which subscription (a row each) matches which point: the definition, for tests and small numbers."""
        out = np.zeros((self.subscriptions, points.shape[1]), np.bool_)
        for box, owner in enumerate(self.owner):
            inside = (self.low[box][:, None] <= points) & (points <= self.high[box][:, None])
            out[owner] |= inside.all(axis=0)
        return out


def _all_cuts(schema: Schema, filters: Sequence[Filter], i: int) -> tuple[str, ...]:
    attribute = schema.attributes[i]
    constraints = {box[i] for filter in filters for box in filter.boxes}
    return tuple(sorted({cut for constraint in constraints for cut in cuts_of(attribute, constraint)}))


def _ranges(
    schema: Schema, cuts: dict[int, tuple[str, ...]], i: int, constraint: Constraint
) -> list[tuple[float, float]]:
    if isinstance(constraint, Interval):
        return [(constraint.low, constraint.high)]
    known = np.array(cuts[i], dtype=object)

    def place(string: str) -> float:
        return float(np.searchsorted(known, string, side="right"))

    return [
        (place(low), len(known) if high is None else place(high) - 1)
        for low, high in segments(cuts_of(schema.attributes[i], constraint))
    ]
