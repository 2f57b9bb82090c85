"""The validated portfolio: no planner wins everywhere, so many are tried and judged on events that none has seen.

Every candidate is made from most of the sample and judged on the rest, the latest events if they have times; the
result is made once more, from the whole sample. Candidates know nothing of each other and may be tried side by
side. A deadline bounds it all: what may not be finished in time is not begun, and what is not finished is given up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from flowsieve.content.schema import Schema
from flowsieve.index.plan import IndexPlan
from flowsieve.pipeline.planning.cutting import balancing
from flowsieve.pipeline.planning.gridded import adaptive_plan, levelwise_plan, regular_plan
from flowsieve.pipeline.planning.kd_planner import kd_plan
from flowsieve.pipeline.planning.methods import Workshop
from flowsieve.pipeline.planning.ordering import ordered_plan
from flowsieve.pipeline.planning.selection import Chosen, is_indivisible, select
from flowsieve.pipeline.planning.simulation import Simulation, simulate_here
from flowsieve.pipeline.planning.training_data import TrainingData

Make = Callable[[TrainingData], IndexPlan]
InTime = Callable[[], bool]
SMALL_TREE = 1 << 11
MARGIN = 1.5  # how much longer than the slowest so far something may take
RESERVED = 0.95  # of the deadline may be planned with; the rest is a reserve, and for writing the plan
SEARCHED = 0.6  # of the time left a search may take
AGAIN = 0.2  # seconds until what is still under way is given up once more
SELECTED_ON = 16_000  # events
REGULAR = "ri"


@dataclass(frozen=True, eq=False)
class PlannerTrial:
    """A candidate, how it did on the events kept back, how long that took, and its plan for the whole sample."""

    name: str
    fpr: float
    seconds: float
    plan: IndexPlan


@dataclass(frozen=True, eq=False)
class PortfolioOutcome:
    """The plan that was chosen, and all that was tried."""

    plan: IndexPlan
    name: str
    trials: tuple[PlannerTrial, ...]
    passed_over: tuple[str, ...]  # for lack of time

    def to_json(self) -> dict[str, Any]:
        return {
            "chosen": self.name,
            "tried": {trial.name: {"fpr": trial.fpr, "seconds": trial.seconds} for trial in self.trials},
            "passed_over": list(self.passed_over),
        }


Attempt = Callable[[str, float], PlannerTrial]  # a candidate's name, and the seconds that are left
TellTrial = Callable[[str, int, int], None]  # what is tried, how many were, of how many


def auto(
    names: Sequence[str],
    attempt: Attempt,
    deadline: float,
    started: float | None = None,
    tell: TellTrial = lambda name, done, of: None,
    clock: Callable[[], float] = time.monotonic,
    at_once: int = 1,
    give_up: Callable[[], None] = lambda: None,
) -> PortfolioOutcome:
    """The best of the candidates, within so many seconds from the start; one is tried however little time there is.

    `give_up` ends the attempts that are under way when the time is over.
    """
    start = clock() if started is None else started
    waiting, trials = list(names), dict[str, PlannerTrial]()
    running: dict[Future[PlannerTrial], str] = {}

    def left() -> float:
        return RESERVED * deadline + start - clock()

    with ThreadPoolExecutor(at_once) as pool:
        try:
            while waiting or running:
                while waiting and len(running) < at_once:
                    name, room = waiting.pop(0), left()
                    longest = max((t.seconds for t in trials.values() if t.name not in SEARCHES), default=0.0)
                    if room > MARGIN * longest or not (trials or running):
                        tell(name, len(trials), len(names))
                        running[pool.submit(attempt, name, room)] = name
                done = wait(running, max(0.0, left()), return_when=FIRST_COMPLETED).done
                if running and not done:
                    break
                trials |= {running.pop(future): future.result() for future in done}
        finally:
            while wait(running, AGAIN).not_done:  # one may just be beginning
                give_up()
    trials |= {name: future.result() for future, name in running.items() if future.exception() is None}
    if not trials:
        trials[names[0]] = attempt(names[0], 0.0)
    tried = tuple(trials[name] for name in names if name in trials)
    best = min(tried, key=lambda trial: trial.fpr)
    return PortfolioOutcome(best.plan, best.name, tried, tuple(name for name in names if name not in trials))


def auto_here(
    shop: Workshop,
    deadline: float,
    clock: Callable[[], float] = time.monotonic,
) -> PortfolioOutcome:
    """The best of the portfolio, tried one after the other in this process."""
    names = candidate_names(shop.schema, shop.max_dz)
    return auto(names, partial(attempt, shop, clock=clock), deadline, clock=clock)


def candidate_names(schema: Schema, max_dz: int) -> tuple[str, ...]:
    """What is tried, the most promising first, except that a search that takes all the time it gets comes late.

    Where no attribute has more than one value there is nothing to choose.
    """
    if is_indivisible(schema):
        return (REGULAR,)
    return tuple(name for name in PORTFOLIO if max_dz or name not in SEARCHES)


def attempt(
    shop: Workshop, name: str, seconds: float, clock: Callable[[], float] = time.monotonic
) -> PlannerTrial:
    """Try a candidate of the portfolio; if it searches, it does not take all of the seconds."""
    began = clock()
    learn, kept = shop.halves()
    make = PORTFOLIO[name](shop, learn, lambda: clock() - began < SEARCHED * seconds)
    rate = shop.rate(make(learn), learn.events, kept)
    plan = make(shop.training)
    return PlannerTrial(name, rate, round(clock() - began, 3), plan)


def _over_the_best(make: Callable[[TrainingData, int, Chosen], IndexPlan]) -> Callable[..., Make]:
    """A plan over the dimensions that the greedy selection chooses."""

    def of(shop: Workshop, learn: TrainingData, in_time: InTime) -> Make:
        some = learn.events.take(np.arange(min(SELECTED_ON, len(learn.events))))
        simulate = simulate_here(some, Simulation.of(shop.schema, shop.filters, shop.bits))
        chosen = select("gs", shop.schema, shop.statistics, simulate, shop.dimensions)
        return lambda training: make(training, shop.bits, chosen)

    return of


def _over_all(make: Callable[[TrainingData, int, Chosen], IndexPlan]) -> Callable[..., Make]:
    return lambda shop, learn, in_time: lambda training: make(training, shop.bits, shop.everything)


def _ordered(shop: Workshop, learn: TrainingData, in_time: InTime) -> Make:
    order = shop.judge.order(learn, shop.bits, shop.everything, in_time)
    return lambda training: ordered_plan(training, shop.bits, order)


# What takes a workshop, what to learn from and whether there is time left to search, and gives what makes plans.
PORTFOLIO: dict[str, Callable[[Workshop, TrainingData, InTime], Make]] = {
    "lw": _over_all(levelwise_plan),
    "gs+asi": _over_the_best(adaptive_plan),
    "gs+ri": _over_the_best(regular_plan),
    "lw, nested": _over_all(partial(levelwise_plan, anew=False)),
    "lw, balanced": _over_all(partial(levelwise_plan, anew=False, halve=balancing)),
    "asi": _over_all(adaptive_plan),
    REGULAR: _over_all(regular_plan),
    "kd, small": _over_all(partial(kd_plan, nodes=SMALL_TREE)),
    "lw, for the budget": _ordered,
    "kd": _over_all(kd_plan),
}
SEARCHES = frozenset({"lw, for the budget"})  # which take the time that they get, and need a budget
