"""The order of a level-wise plan's bits, chosen for a budget.

Without a budget the order of levels changes nothing. Under one it changes nearly everything: a cover can afford to go
deep only along what comes first. So the order is searched for by what covers under the budget really deliver: level by
level the best dimension, then small changes at random, kept where they do not hurt.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from flowsieve.index.plans.learned import LevelwisePlan
from flowsieve.pipeline.planning.cutting import Halvings, avoiding
from flowsieve.pipeline.planning.selection import Chosen
from flowsieve.pipeline.planning.training_data import TrainingData

CHANGES = 300  # tried
Order = tuple[int, ...]  # a dimension for every level


def ordered_plan(training: TrainingData, bits: int, order: Order) -> LevelwisePlan:
    """The level-wise plan of an order, its dimensions cut where that avoids most deliveries."""
    return _plan(training, {d: avoiding(training, d) for d in set(order)}, order)


def best_order(
    training: TrainingData,
    bits: int,
    chosen: Chosen,
    rate: Callable[[LevelwisePlan], float],
    in_time: Callable[[], bool] = lambda: True,
) -> Order:
    """The order whose plan has the lowest rate that a search finds; the same for the same data.

    When it is no longer in time the search ends with what it has, and levels not yet chosen go round the dimensions.
    """
    halvings = {d: avoiding(training, d) for d in chosen}

    def rated(order: Sequence[int]) -> float:
        return rate(_plan(training, halvings, order))

    order: list[int] = []
    while len(order) < bits:
        rates = {
            d: rated([*order, d]) if in_time() else 0.0 for d in chosen if order.count(d) < halvings[d].depth
        }
        if not rates:
            break
        if not in_time():
            rates = dict.fromkeys(rates, 0.0)
        order.append(min(rates, key=lambda d: (rates[d], order.count(d), d)))
    if not in_time():
        return tuple(order)
    best, rng = rated(order), np.random.default_rng(0)
    for _ in range(CHANGES):
        if not in_time():
            break
        changed = _changed(order, chosen, rng)
        allowed = all(changed.count(d) <= halvings[d].depth for d in set(changed))
        if changed != order and allowed and (found := rated(changed)) <= best:
            order, best = changed, found
    return tuple(order)


def _changed(order: Sequence[int], chosen: Chosen, rng: np.random.Generator) -> list[int]:
    """A level elsewhere, another dimension for it, or two of them swapped."""
    out = list(order)
    kind, one, other = (int(rng.integers(n)) for n in (3, len(out), len(out)))
    if kind == 0:
        out.insert(other, out.pop(one))
    elif kind == 1:
        out[one] = chosen[int(rng.integers(len(chosen)))]
    else:
        out[one], out[other] = out[other], out[one]
    return out


def _plan(training: TrainingData, halvings: dict[int, Halvings], order: Sequence[int]) -> LevelwisePlan:
    names = training.schema.names
    cuts = {names[d]: halvings[d].numbers(order.count(d)) for d in sorted(set(order))}
    return LevelwisePlan.make(training.schema, cuts, [names[d] for d in order])
