"""The planner of kd plans: every cell is cut on the dimension, and at the cut, that avoids most deliveries.

The cuts are those of a level-wise plan of more bits than there are: few enough that a tree does not chase single
events, and below the tree, where cells go on to be cut where most cuts lie, as good as that plan.
"""

from __future__ import annotations

import numpy as np

from flowsieve.index.plans.kd import KdPlan
from flowsieve.pipeline.planning import tree_kernel as kernel
from flowsieve.pipeline.planning.gridded import levelwise_plan
from flowsieve.pipeline.planning.selection import Chosen
from flowsieve.pipeline.planning.training_data import STRING_BITS, TrainingData

NODES = 1 << 14
MORE_BITS = 4  # of the grid than of the plan
LEAST_EVENTS = 8  # in a cell that is cut by what its events say


def kd_plan(training: TrainingData, bits: int, chosen: Chosen, nodes: int = NODES) -> KdPlan:
    """A tree of at most so many cuts on a grid."""
    grid = levelwise_plan(training, bits + MORE_BITS, chosen)
    positions = [training.schema.positions[name] for name in grid.dimensions]
    cells = []
    for d, cuts in zip(positions, grid.cuts, strict=True):
        line = training.lines[d]
        if isinstance(cuts, int):
            cells.append(np.arange(line.places) >> (STRING_BITS - cuts))
        else:
            begins = np.concatenate([[line.attribute.min], line.cuts])
            cells.append(np.searchsorted(np.array(cuts), begins, side="right"))
    points, first, last = (
        np.ascontiguousarray(
            np.stack([cell[places[:, d]] for cell, d in zip(cells, positions, strict=True)], axis=1)
        )
        for places in (training.points, training.first, training.last)
    )
    sizes = np.array([1 << cuts if isinstance(cuts, int) else len(cuts) + 1 for cuts in grid.cuts], np.int64)
    allowed = np.ones(len(positions), np.bool_)
    tree = kernel.grow(points, first, last, sizes, allowed, nodes, bits, LEAST_EVENTS)
    return KdPlan(
        training.schema, grid.dimensions, grid.cuts, *_preorder(*(column.tolist() for column in tree)), bits
    )


def _preorder(
    axis: list[int], place: list[int], low: list[int], high: list[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The nodes as plans have them."""
    order, waiting = [], [0]
    while waiting:
        node = waiting.pop()
        order.append(node)
        if axis[node] >= 0:
            waiting += [high[node], low[node]]
    return tuple(axis[node] for node in order), tuple(place[node] if axis[node] >= 0 else 0 for node in order)
