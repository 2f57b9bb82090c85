"""A new plan for the recent window, by the batch planner's own code, judged against the running one."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from flowsieve.content.filter import Filter
from flowsieve.errors import BadInput, PipelineError
from flowsieve.index.dz import MAX_LENGTH
from flowsieve.index.dzset import DzSet
from flowsieve.index.plan import IndexPlan
from flowsieve.pipeline.evaluation.coverage import ListedCoverage
from flowsieve.pipeline.evaluation.covers import candidates_on
from flowsieve.pipeline.evaluation.evaluation import Candidate, Score, evaluate
from flowsieve.pipeline.matching.boxes import BoxTable
from flowsieve.pipeline.matching.subsample import subsample
from flowsieve.pipeline.planning.holdout import Holdout
from flowsieve.pipeline.planning.spark_planning import check_method, make_plan, workshop_on
from flowsieve.pipeline.reading.subscriptions import Subscriptions
from flowsieve.pipeline.runtime.job_tags import JobTag
from flowsieve.pipeline.runtime.spark_failure import failures

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HELD_BACK = 0.2  # of the window's events, the latest
PLANNING = 0.7  # of the deadline is for planning, the rest for judging
GRACE = 3.0  # deadlines after which it is given up, whatever it is at
AGAIN = 0.2  # seconds until what is still under way is given up once more
A_PART = 40_000  # events of a part
JUDGED_BY = 2_000  # subscriptions at most


@dataclass(frozen=True)
class PlanningOptions:
    """How plans are made: by which method, within how many seconds, of how many bits, for how many dz a filter."""

    method: str = "auto"
    deadline: float = 8.0
    bits: int | None = None  # None: as many as the running plan has
    max_dz: int = 32

    def __post_init__(self) -> None:
        check_method(self.method)
        if self.deadline <= 0:
            raise BadInput(f"--deadline is {self.deadline}; right is a number of seconds")
        if self.bits is not None and not 1 <= self.bits <= MAX_LENGTH:
            raise BadInput(f"--bits is {self.bits}; right is 1 to {MAX_LENGTH}")


@dataclass(frozen=True, eq=False)
class Replanned:
    """A plan, how it was made, and what it and the running one came to on events that neither was made from."""

    plan: IndexPlan
    method: str
    old: Score
    new: Score
    planned_on: int
    held_back: str
    portfolio: dict[str, Any] | None
    seconds: float


@dataclass(frozen=True, eq=False)
class WindowEvents:
    """Some `count` events, and which of them are held back."""

    frame: DataFrame
    count: int
    rule: Holdout

    def kept(self) -> DataFrame:
        """The events, kept by executors in few parts: what is prepared for each costs more than counting."""
        return self.frame.coalesce(1 + self.count // A_PART).persist()


def replan(
    spark: SparkSession,
    window: WindowEvents,
    wanted: Subscriptions,
    running: IndexPlan,
    covers: Mapping[str, DzSet],
    options: PlanningOptions,
) -> Replanned:
    """Make a plan for events and judge it; PipelineError where that is not done long after the deadline.

    `covers` are those under the running plan that are known already, by the texts of filters.
    """
    started, events = time.monotonic(), window.kept()
    try:
        with _given_up_after(spark, GRACE * options.deadline):
            planned_on = window.rule.planned_on(events)
            bits = options.bits or running.bits
            with workshop_on(planned_on, wanted, bits, options.max_dz, window.count) as shop:
                made = make_plan(options.method, shop, PLANNING * options.deadline, started)
            some = subsample(len(wanted), JUDGED_BY)
            judges = tuple(wanted.filters[i] for i in some)
            candidates = [
                _candidate(spark, running, judges, covers, options.max_dz),
                *candidates_on(spark, [made.plan], judges, options.max_dz),
            ]
            judged_on = window.rule.judged_on(events)
            old, new = evaluate(candidates, BoxTable.of(wanted.schema, judges), judged_on)
    except failures() as error:
        if time.monotonic() - started < GRACE * options.deadline:
            raise
        raise PipelineError(
            f"no plan after {time.monotonic() - started:.0f} s, where the deadline is {options.deadline:g} s"
        ) from error
    finally:
        events.unpersist()
    taken, planned = time.monotonic() - started, window.count - new.events
    return Replanned(
        made.plan, made.method, old, new, planned, window.rule.text, made.portfolio, round(taken, 3)
    )


def _candidate(
    spark: SparkSession,
    plan: IndexPlan,
    filters: Sequence[Filter],
    covers: Mapping[str, DzSet],
    max_dz: int,
) -> Candidate:
    """The running plan with what is known of its covers."""
    if not all(wanted.text in covers for wanted in filters):
        (made,) = candidates_on(spark, [plan], filters, max_dz)
        return made
    known = [covers[wanted.text] for wanted in filters]
    prefixes = np.array([len(cover) for cover in known], np.int64)
    return Candidate(plan, ListedCoverage.of(plan, known), prefixes)


@contextmanager
def _given_up_after(spark: SparkSession, seconds: float) -> Iterator[None]:
    """Cancel what the block has Spark do, again and again, once so many seconds are over."""
    tag, done = JobTag.of(spark), threading.Event()
    tag.put()

    def give_up() -> None:
        over = done.wait(seconds)
        while not over:
            tag.end()
            over = done.wait(AGAIN)

    watcher = threading.Thread(target=give_up, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
        spark.sparkContext.removeJobTag(tag.word)
