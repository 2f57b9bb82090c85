"""Planners of grids: regular, adaptive (ASI in [Expressive]), and level-wise: each level takes the best dimension."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from flowsieve.index.plans.learned import AdaptivePlan, LevelwisePlan
from flowsieve.index.plans.levels import round_robin
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.pipeline.matching.matcher import bit_rows
from flowsieve.pipeline.planning import level_kernel as kernel
from flowsieve.pipeline.planning.cutting import Halvings, avoiding, balancing
from flowsieve.pipeline.planning.selection import Chosen
from flowsieve.pipeline.planning.stabbing import CutPlaces, improved
from flowsieve.pipeline.planning.training_data import Edges, TrainingData

Halve = Callable[[TrainingData, int], Halvings]  # how a dimension is cut by itself
SIMULATED = 16_000  # events that a level is tried on


def regular_plan(training: TrainingData, bits: int, chosen: Chosen) -> RegularPlan:
    return RegularPlan.make(training.schema, bits, _names(training, chosen))


def adaptive_plan(training: TrainingData, bits: int, chosen: Chosen) -> AdaptivePlan:
    """Bits round robin over the dimensions, each halved where its matches balance."""
    halvings = [balancing(training, d) for d in chosen]
    widths = [halving.depth for halving in halvings]
    levels = round_robin(widths, min(bits, sum(widths)))
    cuts = {
        name: halving.numbers(levels.count(i))
        for i, (name, halving) in enumerate(zip(_names(training, chosen), halvings, strict=True))
        if levels.count(i)
    }
    return AdaptivePlan.make(training.schema, cuts, bits)


def levelwise_plan(
    training: TrainingData, bits: int, chosen: Chosen, anew: bool = True, halve: Halve = avoiding
) -> LevelwisePlan:
    """Each level halves the dimension that leaves fewest deliveries; then, if `anew`, all cuts are chosen once more."""
    halvings = {d: halve(training, d) for d in chosen}
    cells = {d: halving.cells for d, halving in halvings.items()}
    order = _order(training, bits, {d: (halving.depth, cells[d]) for d, halving in halvings.items()})
    names = training.schema.names
    if not anew:
        cuts = {names[d]: halvings[d].numbers(order.count(d)) for d in chosen if d in order}
        return LevelwisePlan.make(training.schema, cuts, [names[d] for d in order], bits)
    places = {d: np.sort(halvings[d].place[1 : 1 << order.count(d)]) for d in chosen if d in order}
    places = improved(training, places)
    order = _order(
        training,
        len(order),
        {d: (order.count(d), partial(_thin, training.lines[d], places[d])) for d in places},
    )
    cuts = {names[d]: training.lines[d].numbers(places[d]) for d in places}
    return LevelwisePlan.make(training.schema, cuts, [names[d] for d in order], bits)


def _thin(line: Edges, places: CutPlaces, bits: int) -> NDArray[np.int64]:
    """The cell of every place after the first so many halvings of some cuts."""
    step = (len(places) + 1) >> bits
    return np.searchsorted(places[step - 1 :: step], np.arange(line.places), side="right")


def _order(
    training: TrainingData, bits: int, axes: dict[int, tuple[int, Callable[[int], NDArray[np.int64]]]]
) -> list[int]:
    """The dimension of every level; of each is given how often it can be halved, and the cells that result."""
    points = training.points[:SIMULATED]
    boxes = len(training.first)
    current = np.full((len(points), (boxes + 63) // 64), ~np.uint64(0))
    if boxes % 64:
        current[:, -1] = (1 << boxes % 64) - 1
    order: list[int] = []
    tried: dict[int, tuple[NDArray[np.uint64], NDArray[np.int64]]] = {}
    while len(order) < bits:
        left: dict[int, int] = {}
        for d, (most, cells_after) in axes.items():
            depth = order.count(d) + 1
            if depth > most:
                continue
            if d not in tried:
                cells = cells_after(depth)
                table = bit_rows(cells[training.first[:, d]], cells[training.last[:, d]], 1 << depth)
                tried[d] = table, cells[points[:, d]]
            left[d] = int(kernel.left_with(current, *tried[d]))
        if not left:
            break
        best = min(left, key=lambda d: (left[d], order.count(d), d))
        kernel.keep_from(current, *tried.pop(best))
        order.append(best)
    return order


def _names(training: TrainingData, chosen: Chosen) -> list[str]:
    return [training.schema.names[d] for d in chosen]
