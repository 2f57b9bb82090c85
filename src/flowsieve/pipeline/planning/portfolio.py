"""The validated portfolio: no planner wins everywhere, so many are tried, and events that none has seen choose.

Every candidate is made from most of the sample and judged on the rest, the latest events if they have times. The best
is made once more from the whole sample. A deadline bounds it all: what may not be finished in time is not begun.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from flowsieve.index.plan import IndexPlan
from flowsieve.pipeline.planning.cutting import balancing
from flowsieve.pipeline.planning.gridded import adaptive_plan, levelwise_plan, regular_plan
from flowsieve.pipeline.planning.material import Material
from flowsieve.pipeline.planning.methods import Workshop
from flowsieve.pipeline.planning.ordering import Order, ordered_plan
from flowsieve.pipeline.planning.selection import Chosen, select
from flowsieve.pipeline.planning.simulation import Simulation, simulate_here
from flowsieve.pipeline.planning.tree import kd_plan

Make = Callable[[Material, int], IndexPlan]
SMALL_TREE = 1 << 11
MARGIN = 1.5  # how much longer than the last time something may take
RESERVED = 0.95  # of the deadline may be planned with; the rest is for writing down and for the unforeseen
SEARCHED = 0.6  # of the time left a search may take
SELECTED_ON = 16_000  # events


class Trial(NamedTuple):
    """A candidate, how it did on the events kept back, and how long that took."""

    name: str
    fpr: float
    seconds: float


@dataclass(frozen=True, eq=False)
class Outcome:
    """The plan that was chosen, and all that was tried."""

    plan: IndexPlan
    name: str
    trials: tuple[Trial, ...]
    passed_over: tuple[str, ...]  # for lack of time

    def to_json(self) -> dict[str, Any]:
        return {
            "chosen": self.name,
            "tried": {trial.name: {"fpr": trial.fpr, "seconds": trial.seconds} for trial in self.trials},
            "passed_over": list(self.passed_over),
        }


class Entry(NamedTuple):
    """What is tried. A search is made once; to make its plan again takes no time to speak of."""

    name: str
    make: Make
    searches: bool = False


def auto(
    shop: Workshop,
    deadline: float,
    started: float | None = None,
    tell: Callable[[str, int, int], None] = lambda name, done, of: None,
    clock: Callable[[], float] = time.monotonic,
) -> Outcome:
    """The best of the portfolio, within so many seconds from the start."""
    start = clock() if started is None else started

    def left() -> float:
        return RESERVED * deadline + start - clock()

    learn, kept = shop.halves()
    trials: list[Trial] = []
    passed_over: list[str] = []
    makers: dict[str, Make] = {}
    longest = 0.0  # of what takes as long again
    entries = list(_portfolio(shop, learn, left))
    for entry in entries:
        tell(entry.name, len(trials), len(entries))
        # The winner has to be made again, which may take as long as the slowest so far.
        if trials and left() < MARGIN * longest + longest:
            passed_over.append(entry.name)
            continue
        began = clock()
        (score,) = shop.judge.score([entry.make(learn, shop.bits)], kept)
        seconds = clock() - began
        if not entry.searches:
            longest = max(longest, seconds)
        makers[entry.name] = entry.make
        trials.append(Trial(entry.name, score.fpr, round(seconds, 3)))
    best = min(trials, key=lambda trial: trial.fpr)
    return Outcome(makers[best.name](shop.material, shop.bits), best.name, tuple(trials), tuple(passed_over))


def _portfolio(shop: Workshop, learn: Material, left: Callable[[], float]) -> Iterator[Entry]:
    """What is tried, the most promising first, except that a search that takes all the time it gets comes late."""
    everything = shop.everything
    known: dict[str, Chosen] = {}

    def greedy() -> Chosen:
        if not known:
            events = learn.events
            some = events.take(np.arange(min(SELECTED_ON, len(events))))
            simulate = simulate_here(some, Simulation.of(shop.schema, shop.filters, shop.bits))
            known["gs"] = select("gs", shop.schema, shop.statistics, simulate, shop.dimensions)
        return known["gs"]

    orders: list[Order] = []

    def ordered(material: Material, bits: int) -> IndexPlan:
        if not orders:
            at_the_end = (1 - SEARCHED) * left()
            found = shop.judge.order(material, bits, everything, lambda: left() > at_the_end)
            orders.append(found)
        return ordered_plan(material, bits, orders[0])

    def balanced(material: Material, bits: int) -> IndexPlan:
        return levelwise_plan(material, bits, everything, anew=False, halve=balancing)

    yield Entry("lw", lambda material, bits: levelwise_plan(material, bits, everything))
    yield Entry("gs+asi", lambda material, bits: adaptive_plan(material, bits, greedy()), searches=True)
    yield Entry("gs+ri", lambda material, bits: regular_plan(material, bits, greedy()))
    yield Entry("lw, nested", lambda material, bits: levelwise_plan(material, bits, everything, anew=False))
    yield Entry("lw, balanced", balanced)
    yield Entry("asi", lambda material, bits: adaptive_plan(material, bits, everything))
    yield Entry("ri", lambda material, bits: regular_plan(material, bits, everything))
    yield Entry("kd, small", lambda material, bits: kd_plan(material, bits, everything, SMALL_TREE))
    if shop.max_dz:
        yield Entry("lw, for the budget", ordered, searches=True)
    yield Entry("kd", lambda material, bits: kd_plan(material, bits, everything))
