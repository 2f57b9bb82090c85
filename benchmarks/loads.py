"""Synthetic subscriptions and events, the same for the same seed.

`zipf`: interest popularity as in [Expressive]: hotspots of Zipf popularity, boxes and events around them, some
dimensions left open. `narrow`: boxes of half-width 1.5 % of the domain around uniform points, no dimension
left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema

TOP = 1023


@dataclass(frozen=True)
class Load:
    """A schema, boxes (rows of low, high per attribute) and events (rows of values)."""

    schema: Schema
    boxes: NDArray[np.int64]
    points: NDArray[np.int64]

    def taken(self, some: slice) -> Load:
        """The same with some of the boxes."""
        return Load(self.schema, self.boxes[some], self.points)

    def texts(self) -> list[str]:
        """The boxes as filters somebody could have written."""
        found = []
        for box in self.boxes:
            terms = [
                f"{low} <= {attribute.name} <= {high}"
                for attribute, (low, high) in zip(self.schema, box.tolist(), strict=True)
                if (low, high) != (0, TOP)
            ]
            found.append(" and ".join(terms) or "True")
        return found

    def filters(self) -> list[Filter]:
        return [Filter.parse(text, self.schema) for text in self.texts()]

    def events(self, host: str = "") -> EventBatch:
        n = len(self.points)
        columns = {attribute.name: self.points[:, i].astype(float) for i, attribute in enumerate(self.schema)}
        ids = np.array([f"e{i}" for i in range(n)], dtype=object)
        return EventBatch(self.schema, ids, np.full(n, host, dtype=object), columns)


def schema_of(dimensions: int) -> Schema:
    return Schema.parse({f"a{i}": {"type": "int", "min": 0, "max": TOP} for i in range(dimensions)})


def boxes_around(centres: NDArray[np.float64], half_widths: NDArray[np.float64]) -> NDArray[np.int64]:
    low = np.clip(np.floor(centres - half_widths), 0, TOP)
    high = np.clip(np.ceil(centres + half_widths), 0, TOP)
    return np.stack((low, high), axis=2).astype(np.int64)


def zipf(subscriptions: int, events: int, *, dimensions: int = 4, seed: int = 1) -> Load:
    rng = np.random.default_rng([seed, 11])
    hotspots, spread = rng.uniform(100, 900, (8, dimensions)), rng.uniform(20, 200, (8, dimensions))
    popularity = 1 / np.arange(1, 9)

    def around(n: int) -> NDArray[np.float64]:
        at = rng.choice(8, n, p=popularity / popularity.sum())
        return np.asarray(np.clip(rng.normal(hotspots[at], spread[at]), 0, TOP))

    boxes = boxes_around(around(subscriptions), rng.uniform(0.015, 0.06, (subscriptions, dimensions)) * TOP)
    boxes[rng.random((subscriptions, dimensions)) < 0.15] = (0, TOP)
    return Load(schema_of(dimensions), boxes, around(events).round().astype(np.int64))


def narrow(subscriptions: int, events: int, *, dimensions: int = 2, seed: int = 1) -> Load:
    rng = np.random.default_rng([seed, 12])
    centres = rng.uniform(0, TOP, (subscriptions, dimensions))
    boxes = boxes_around(centres, np.full(centres.shape, 0.015 * TOP))
    return Load(schema_of(dimensions), boxes, rng.integers(0, TOP + 1, (events, dimensions)))


LOADS = {"zipf": zipf, "narrow": narrow}
