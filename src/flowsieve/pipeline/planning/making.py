"""From events on Spark and subscriptions to a plan."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from flowsieve.index.plan import IndexPlan
from flowsieve.pipeline.planning.methods import AUTO, Method, Workshop, make
from flowsieve.pipeline.planning.portfolio import auto
from flowsieve.pipeline.planning.sampling import SAMPLE, sample
from flowsieve.pipeline.planning.simulation import Simulation, simulated
from flowsieve.pipeline.statistics import Statistics, statistics
from flowsieve.pipeline.subscriptions import Subscriptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Made(NamedTuple):
    """A plan, how it was made, and what else was tried."""

    plan: IndexPlan
    method: str
    portfolio: dict[str, Any] | None


def check_method(text: str) -> None:
    """Raise what is wrong with the name of a method."""
    if text != AUTO:
        Method.parse(text)


def workshop_on(
    events: DataFrame,
    wanted: Subscriptions,
    bits: int,
    max_dz: int,
    count: int,
    dimensions: int | None = None,
    seed: int = 0,
    most: int = SAMPLE,
) -> Workshop:
    """Everything that methods need of some `count` events: a bounded sample, and counts over all of them."""

    @cache
    def figures() -> Statistics:
        return statistics(events, wanted.boxes)

    return Workshop(
        wanted.schema,
        wanted.filters,
        bits,
        max_dz,
        sample(events, wanted.schema, count, most),
        figures,
        simulated(events, Simulation.of(wanted.schema, wanted.filters, bits)),
        dimensions,
        seed,
    )


def make_plan(
    text: str,
    shop: Workshop,
    deadline: float = 120.0,
    started: float | None = None,
    tell: Callable[[str, int, int], None] = lambda name, done, of: None,
) -> Made:
    """The plan of a method by name; `auto` keeps a deadline, counted from `started` on the monotonic clock.

    `tell` hears which candidate `auto` tries, and how many it has tried, of how many.
    """
    if text == AUTO:
        outcome = auto(shop, deadline, started, tell)
        return Made(outcome.plan, f"{AUTO}: {outcome.name}", outcome.to_json())
    method = Method.parse(text)
    return Made(make(method, shop), str(method), None)
