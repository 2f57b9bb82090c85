"""The planner of selective plans (SI in [Expressive]): clusters of subscriptions, and the boxes around them.

Clusters are found by k-means on the middles and
widths of boxes, from a start that depends on the data alone. `methods` tries several numbers of clusters.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from flowsieve.index.plans.selective import SelectivePlan
from flowsieve.pipeline.matching.boxes import BoxTable
from flowsieve.pipeline.planning.selection import Chosen
from flowsieve.pipeline.planning.training_data import TrainingData

ROUNDS = 30
NUMBERS = (1, 3, 7, 15, 31)  # parts to try; with the rest they are a power of two


def selective_plan(training: TrainingData, bits: int, chosen: Chosen, number: int) -> SelectivePlan:
    """A plan of at most so many parts, which hold all subscriptions; what lies outside is one more."""
    schema = training.schema
    table = BoxTable.of(schema, training.filters)
    numeric = [d for d in chosen if schema.attributes[d].kind != "string"]
    names = [schema.names[d] for d in chosen]
    if not numeric:
        return SelectivePlan.make(schema, [], bits, names)
    low, high = table.low[:, numeric], table.high[:, numeric]
    width = np.array(
        [max(float(schema.attributes[d].max) - float(schema.attributes[d].min), 1e-300) for d in numeric]
    )
    features = np.concatenate([(low + high) / 2 / width, (high - low) / width], axis=1)
    cluster = clusters(features, number)
    parts = []
    for c in np.unique(cluster):
        inside = cluster == c
        ends = zip(low[inside].min(axis=0).tolist(), high[inside].max(axis=0).tolist(), strict=True)
        parts.append({schema.names[d]: both for d, both in zip(numeric, ends, strict=True)})
    unique = {tuple(part.values()): part for part in parts}
    return SelectivePlan.make(schema, list(unique.values()), bits, names)


def clusters(features: NDArray[np.float64], number: int) -> NDArray[np.int64]:
    """k-means that starts from rows far from each other."""
    number = min(number, len(features))
    centres = [features.mean(axis=0)]
    far = ((features - centres[0]) ** 2).sum(axis=1)
    centres = [features[int(np.argmax(far))]]
    nearest = ((features - centres[0]) ** 2).sum(axis=1)
    while len(centres) < number and nearest.max() > 0:
        centres.append(features[int(np.argmax(nearest))])
        nearest = np.minimum(nearest, ((features - centres[-1]) ** 2).sum(axis=1))
    middles = np.array(centres)
    label = np.zeros(len(features), np.int64)
    for _ in range(ROUNDS):
        distance = (
            (features**2).sum(axis=1)[:, None] - 2 * features @ middles.T + (middles**2).sum(axis=1)[None]
        )
        new = distance.argmin(axis=1)
        if np.array_equal(new, label):
            break
        label = new
        for c in range(len(middles)):
            if (label == c).any():
                middles[c] = features[label == c].mean(axis=0)
    return label
