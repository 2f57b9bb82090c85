"""From events on Spark and subscriptions to a plan.

Selections count over all events, a pass for each question. Planners look at a sample again and again, which stays with
one executor; each candidate of `auto` is a job of its own there, so that several are tried at once.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from flowsieve.content.event import EventBatch
from flowsieve.index.plan import IndexPlan
from flowsieve.pipeline.matching.statistics import Statistics, statistics
from flowsieve.pipeline.planning.methods import AUTO, Method, Workshop, make_over
from flowsieve.pipeline.planning.portfolio import PlannerTrial, TellTrial, attempt, auto, candidate_names
from flowsieve.pipeline.planning.selection import Chosen, divisible, select
from flowsieve.pipeline.planning.simulation import Simulated, Simulation
from flowsieve.pipeline.reading.subscriptions import Subscriptions
from flowsieve.pipeline.runtime.job_tags import JobTag
from flowsieve.pipeline.runtime.spark_sample import SAMPLE, SparkSample

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

AT_ONCE = 4  # candidates that wait for executors or are tried by them


class Made(NamedTuple):
    """A plan, how it was made, and what else was tried."""

    plan: IndexPlan
    method: str
    portfolio: dict[str, Any] | None


def check_method(text: str) -> None:
    """Raise what is wrong with the name of a method."""
    if text != AUTO:
        Method.parse(text)


@dataclass(frozen=True, eq=False)
class SparkWorkshop:
    """All that methods need of events that stay on Spark: counts over all of them, and work on a sample."""

    events: DataFrame
    wanted: Subscriptions
    bits: int
    max_dz: int
    sample: SparkSample
    simulate: Simulated
    dimensions: int | None = None
    seed: int = 0
    table: int | None = None

    @cached_property
    def statistics(self) -> Statistics:
        return statistics(self.events, self.wanted.boxes)

    @cached_property
    def sampled(self) -> int:
        """How many events the sample has."""
        return self.sample.ask(len)

    @cached_property
    def fitted(self) -> bytes:
        """What makes a workshop on the executor that has the sample; pickled once for all tasks."""
        known = (self.wanted.schema, self.wanted.filters, self.bits, self.max_dz)
        return pickle.dumps(
            partial(Workshop, *known, dimensions=self.dimensions, seed=self.seed, table=self.table)
        )

    def select(self, selection: str | None) -> Chosen:
        """The dimensions that a rule chooses by all events."""
        schema = self.wanted.schema
        if selection is None:
            return divisible(schema)
        return select(selection, schema, lambda: self.statistics, self.simulate, self.dimensions, self.seed)

    def make(self, method: Method) -> IndexPlan:
        return self.sample.ask(partial(_make, self.fitted, method.indexer, self.select(method.selection)))

    def try_out(self, name: str, seconds: float) -> PlannerTrial:
        """Try a candidate of the portfolio."""
        return self.sample.ask(partial(_attempt, self.fitted, name, seconds))


@contextmanager
def workshop_on(
    events: DataFrame,
    wanted: Subscriptions,
    bits: int,
    max_dz: int,
    count: int,
    dimensions: int | None = None,
    seed: int = 0,
    most: int = SAMPLE,
    table: int | None = None,
) -> Iterator[SparkWorkshop]:
    """A workshop for some `count` events; executors keep what it needs of them until the block ends."""
    sample = SparkSample.of(events, wanted.schema, count, most)
    simulate = Simulated(events, Simulation.of(wanted.schema, wanted.filters, bits))
    try:
        yield SparkWorkshop(events, wanted, bits, max_dz, sample, simulate, dimensions, seed, table)
    finally:
        sample.forget()
        simulate.forget()


def make_plan(
    text: str,
    shop: SparkWorkshop,
    deadline: float = 120.0,
    started: float | None = None,
    tell: TellTrial = lambda name, done, of: None,
) -> Made:
    """The plan of a method by name; `auto` keeps a deadline, counted from `started` on the monotonic clock.

    `tell` hears which candidate `auto` tries, and how many it has tried, of how many.
    """
    if text != AUTO:
        method = Method.parse(text)
        return Made(shop.make(method), str(method), None)
    tag = JobTag.of(shop.events.sparkSession)

    def try_out(name: str, seconds: float) -> PlannerTrial:
        tag.put()
        return shop.try_out(name, seconds)

    names = candidate_names(shop.wanted.schema, shop.max_dz)
    outcome = auto(names, try_out, deadline, started, tell, at_once=AT_ONCE, give_up=tag.end)
    return Made(outcome.plan, f"{AUTO}: {outcome.name}", outcome.to_json())


@lru_cache(maxsize=1)
def _workshop(fitted: bytes) -> Callable[[EventBatch], Workshop]:
    """What makes a workshop, kept for the tasks that follow in the same process."""
    opens: Callable[..., Workshop] = pickle.loads(fitted)
    return lambda events: opens(events=events)


def _make(fitted: bytes, indexer: str, chosen: Chosen, events: EventBatch) -> IndexPlan:
    shop = _workshop(fitted)(events)
    return make_over(indexer, shop.training, shop.bits, chosen, shop.judge)


def _attempt(fitted: bytes, name: str, seconds: float, events: EventBatch) -> PlannerTrial:
    return attempt(_workshop(fitted)(events), name, seconds)
