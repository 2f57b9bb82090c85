"""All planners by name: `ri`, `si`, `asi`, `lw`, `kd`, and any of them behind a selection, as in `gs+asi`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.errors import BadInput, nearest
from flowsieve.index.plan import IndexPlan
from flowsieve.pipeline.evaluation.cut_coverage import candidate_of
from flowsieve.pipeline.evaluation.evaluation import Candidate, Score, evaluate_here
from flowsieve.pipeline.evaluation.table_cut import cut_table
from flowsieve.pipeline.matching.boxes import BoxTable
from flowsieve.pipeline.matching.matcher import Matcher
from flowsieve.pipeline.matching.statistics import Statistics, add_events, empty_sums, of_sums
from flowsieve.pipeline.matching.subsample import subsample
from flowsieve.pipeline.planning.gridded import adaptive_plan, levelwise_plan, regular_plan
from flowsieve.pipeline.planning.kd_planner import kd_plan
from flowsieve.pipeline.planning.ordering import Order, best_order, ordered_plan
from flowsieve.pipeline.planning.selection import (
    SELECTIONS,
    Chosen,
    Simulate,
    divisible,
    is_indivisible,
    select,
)
from flowsieve.pipeline.planning.selective_planner import NUMBERS, selective_plan
from flowsieve.pipeline.planning.simulation import Simulation, simulate_here
from flowsieve.pipeline.planning.training_data import TrainingData

INDEXERS = ("ri", "si", "asi", "lw", "kd")
AUTO = "auto"
KEPT_BACK = 0.25  # of the sample, to choose by
TRIED = 400  # subscriptions whose covers are tried under a budget
ORDERED_BY, ORDERED_ON = 200, 4_000  # subscriptions and events that an order is searched with
PROBED = 8_000  # events that parts are tried on


@dataclass(frozen=True)
class Method:
    """A selection of dimensions, or none, and what makes a plan over them."""

    selection: str | None
    indexer: str

    @classmethod
    def parse(cls, text: str) -> Method:
        *before, indexer = text.split("+")
        known = (
            f"right is {', '.join(INDEXERS)}, one of these behind {', '.join(SELECTIONS)} (gs+asi), or {AUTO}"
        )
        if indexer not in INDEXERS or len(before) > 1:
            raise BadInput(f"there is no method {text!r}{nearest(text, (*INDEXERS, AUTO))}; {known}")
        if before and before[0] not in SELECTIONS:
            raise BadInput(f"there is no selection {before[0]!r}{nearest(before[0], SELECTIONS)}; {known}")
        return cls(before[0] if before else None, indexer)

    def __str__(self) -> str:
        return f"{self.selection}+{self.indexer}" if self.selection else self.indexer


@dataclass(frozen=True, eq=False)
class Workshop:
    """All that methods need, made when it is first asked for, from subscriptions and a sample of events."""

    schema: Schema
    filters: tuple[Filter, ...]
    bits: int
    max_dz: int  # the budget to plan for; 0: any number
    events: EventBatch  # in the order of time
    dimensions: int | None = None  # how many a selection takes; None: as many as are best
    seed: int = 0
    table: int | None = None  # the entries of a whole table to plan for, in place of a budget

    @cached_property
    def training(self) -> TrainingData:
        return TrainingData.of(self.schema, self.filters, self.events)

    @property
    def everything(self) -> Chosen:
        return divisible(self.schema)

    def select(self, selection: str | None) -> Chosen:
        """The dimensions that a rule chooses by the sample alone."""
        if selection is None:
            return self.everything
        return select(selection, self.schema, self.statistics, self.simulate, self.dimensions, self.seed)

    @cached_property
    def boxes(self) -> BoxTable:
        return BoxTable.of(self.schema, self.filters)

    def statistics(self) -> Statistics:
        sums = empty_sums(self.boxes)
        add_events(self.boxes, Matcher.of(self.boxes), self.events, sums)
        return of_sums(self.boxes, sums)

    @cached_property
    def simulate(self) -> Simulate:
        return simulate_here(self.events, Simulation.of(self.schema, self.filters, self.bits))

    def halves(self) -> tuple[TrainingData, EventBatch]:
        """What to learn from and what to choose by: the latest events of the sample, if they have times."""
        cut = max(1, int(len(self.events) * (1 - KEPT_BACK)))
        kept = np.arange(cut, len(self.events)) if cut < len(self.events) else np.arange(cut)
        return replace(self.training, events=self.events.take(np.arange(cut))), self.events.take(kept)

    @cached_property
    def judge(self) -> Judge:
        return Judge.of(self.schema, self.filters, self.max_dz)

    def rate(self, plan: IndexPlan, learned: EventBatch, kept: EventBatch) -> float:
        """The false-positive rate of a plan on events that it was not made from: with dz as planned for.

        A table is cut by what the plan was made from, and has all subscriptions: they share its entries.
        """
        if self.table is None:
            return self.judge.score([plan], kept)[0].fpr
        cut = cut_table(plan, self.filters, learned, self.table)
        (score,) = evaluate_here([candidate_of(cut, self.filters)], self.boxes, kept)
        return score.fpr


@dataclass(frozen=True, eq=False)
class Judge:
    """Scores plans on events, under the budget to plan for; with a budget, by a subsample of the subscriptions."""

    filters: tuple[Filter, ...]
    max_dz: int
    boxes: BoxTable

    @classmethod
    def of(cls, schema: Schema, filters: Sequence[Filter], max_dz: int) -> Judge:
        some = tuple(filters[i] for i in subsample(len(filters), TRIED)) if max_dz else tuple(filters)
        return cls(some, max_dz, BoxTable.of(schema, some))

    def fewer(self, most: int) -> Judge:
        """A judge by at most so many of the subscriptions."""
        some = tuple(self.filters[i] for i in subsample(len(self.filters), most))
        return Judge(some, self.max_dz, BoxTable.of(self.boxes.schema, some))

    def score(self, plans: Sequence[IndexPlan], events: EventBatch) -> list[Score]:
        candidates = [Candidate.of(plan, self.filters, self.max_dz, count=False) for plan in plans]
        return evaluate_here(candidates, self.boxes, events)

    def order(
        self, training: TrainingData, bits: int, chosen: Chosen, in_time: Callable[[], bool] = lambda: True
    ) -> Order:
        """The best order of a level-wise plan under the budget, by fewer subscriptions and events than decide later."""
        fewer = self.fewer(ORDERED_BY)
        events = training.events
        some = events.take(np.arange(0, len(events), max(1, len(events) // ORDERED_ON)))

        def rate(plan: IndexPlan) -> float:
            return fewer.score([plan], some)[0].fpr

        return best_order(training, bits, chosen, rate, in_time=in_time)


def make(method: Method, shop: Workshop) -> IndexPlan:
    """The plan that a method makes by the sample alone."""
    return make_over(method.indexer, shop.training, shop.bits, shop.select(method.selection), shop.judge)


def make_over(indexer: str, training: TrainingData, bits: int, chosen: Chosen, judge: Judge) -> IndexPlan:
    if indexer == "ri" or is_indivisible(training.schema):
        return regular_plan(training, bits, chosen)
    if indexer == "asi":
        return adaptive_plan(training, bits, chosen)
    if indexer == "lw" and judge.max_dz:
        return ordered_plan(training, bits, judge.order(training, bits, chosen))
    if indexer == "lw":
        return levelwise_plan(training, bits, chosen)
    if indexer == "kd":
        return kd_plan(training, bits, chosen)
    return _best_parts(training, bits, chosen, judge)


def _best_parts(training: TrainingData, bits: int, chosen: Chosen, judge: Judge) -> IndexPlan:
    """The selective plan of the number of parts that does best; each is tried on events of the sample."""
    probe = training.events.take(np.arange(0, len(training.events), max(1, len(training.events) // PROBED)))
    plans = [
        selective_plan(training, bits, chosen, number)
        for number in NUMBERS
        if number < len(training.filters) and number.bit_length() <= bits
    ]
    plans = plans or [selective_plan(training, bits, chosen, 1)]
    scores = judge.fewer(TRIED).score(plans, probe)
    return plans[min(range(len(plans)), key=lambda i: (scores[i].fpr, i))]
